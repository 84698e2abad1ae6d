"""The file of samples for models that are trained elsewhere."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from bmpaudit.graph import Graph
from bmpaudit.samplers import draw_memberships
from bmpaudit.samplers.any_sampler import AnySampler
from bmpaudit.tables import model_blocks


def write_samples(
    path: Path, *, graph: Graph, sampler: AnySampler, num_samples: int, seed: int, num_threads: int | None
) -> None:
    """Writes `memberships`, shape (J, N), as `numpy.savez_compressed` does, drawing some samples at a time."""
    shape = num_samples, graph.num_nodes
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.bool_)), "fortran_order": False, "shape": shape}
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("memberships.npy", "w", force_zip64=True) as file,
    ):
        np.lib.format.write_array_header_1_0(file, header)
        for rows in model_blocks(*shape):
            number = rows.stop - rows.start
            some = draw_memberships(graph, sampler, number, seed, first=rows.start, num_threads=num_threads)
            file.write(np.ascontiguousarray(some).data)
