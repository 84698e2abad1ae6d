"""Which edges models are trained on, where the sampler says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Ints
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.interfaces import TrainingEdges
from bmpaudit.samplers.any_sampler import AnySampler
from bmpaudit.streams import Purpose, stream


def training_edges(graph: Graph, sampler: AnySampler, indices: Ints, seed: int) -> npt.NDArray[np.object_] | None:
    """The edges that each of some models is trained on.

    Args:
        graph: The whole graph.
        sampler: Any sampler.
        indices: Numbers of the models.
        seed: Random seed of the samples.

    Returns:
        An array of node pairs for each model, of shape (num_edges, 2); None if models are trained on all edges among
        their nodes.

    Raises:
        InputError: if the sampler gives something else.
    """
    if not isinstance(sampler, TrainingEdges):
        return None
    drawn = np.empty(len(indices), dtype=object)
    for row, index in enumerate(indices.tolist()):
        edges = sampler.training_edges(graph, stream(seed, index, Purpose.SAMPLE))
        if edges is None:
            return None
        drawn[row] = _checked(np.asarray(edges), graph.num_nodes)
    return drawn


def _checked(edges: npt.NDArray[Any], num_nodes: int) -> Ints:
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise InputError(
            f"training_edges must be whole numbers of shape (num_edges, 2), got {edges.dtype} of shape {edges.shape}"
        )
    wrong = edges[(edges < 0) | (edges >= num_nodes)]
    if len(wrong):
        raise InputError(f"training_edges must be node ids in [0, {num_nodes}), got {wrong[0]}")
    return edges.astype(np.int64)


def compressed_rows(edges: Ints, num_nodes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Undirected edges in compressed rows, `indptr` and `indices`; what is there twice, or both ways, counts once."""
    both = np.concatenate([edges, edges[:, ::-1]])
    rows, columns = np.divmod(np.unique(both[:, 0] * num_nodes + both[:, 1]), num_nodes)
    indptr = np.concatenate([[0], np.bincount(rows, minlength=num_nodes).cumsum()])
    return indptr.astype(np.int64), columns.astype(np.int32)
