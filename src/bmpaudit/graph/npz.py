"""Graphs in NumPy archives, without pickles (docs/formats.md)."""

from pathlib import Path

import numpy as np
import scipy.sparse

from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.graph.graph import Graph
from bmpaudit.reading.archive import Arrays, archive_names, read_archive

ALWAYS = ("y",)
DENSE, SPARSE = ("x",), ("x_indptr", "x_indices", "x_shape")
SOMETIMES = ("edges", "num_nodes", "x_data", "node_names", "class_names")


def read_npz(path: Path) -> Graph:
    """See `Graph.from_npz`."""
    names = archive_names(path, all_members=True)
    features = SPARSE if "x" not in names and not set(SPARSE).isdisjoint(names) else DENSE
    # Without edges, an array of another name might be the edges.
    is_whole = "edges" in names or set(names) <= {*ALWAYS, *features, *SOMETIMES}
    arrays = read_archive(path, SOMETIMES, required=(*ALWAYS, *features, *(() if is_whole else ("edges",))))
    try:
        labels = arrays["y"]
        num_nodes = arrays.get("num_nodes", np.array(labels.size))
        if num_nodes.size != 1 or num_nodes.item() != labels.size:
            got = " ".join(str(num_nodes).split())
            raise InputError(f"num_nodes must be {labels.size}, the length of y, got {got}")
        return Graph.from_edges(
            arrays.get("edges", np.empty((0, 2), dtype=np.int64)),
            arrays["x"] if "x" in arrays else _sparse_features(arrays),
            labels,
            node_names=_names(arrays, "node_names"),
            class_names=_names(arrays, "class_names"),
        )
    except InputError as wrong:
        raise DataError(f"{path}: {wrong}") from None


def write_npz(graph: Graph, path: Path) -> None:
    """See `Graph.to_npz`."""
    arrays: Arrays = {
        "edges": graph.edges.astype(np.int32),
        "y": graph.labels,
        "num_nodes": np.array(graph.num_nodes),
    }
    if isinstance(graph.features, np.ndarray):
        arrays["x"] = graph.features
    else:
        arrays["x_indptr"] = graph.features.indptr
        arrays["x_indices"] = graph.features.indices
        arrays["x_shape"] = np.array(graph.features.shape)
        if (graph.features.data != 1).any():
            arrays["x_data"] = graph.features.data
    if graph.node_names is not None:
        arrays["node_names"] = np.array(graph.node_names)
    if graph.class_names is not None:
        arrays["class_names"] = np.array(graph.class_names)
    with atomic_write(path) as temporary, temporary.open("wb") as archive:
        np.savez_compressed(archive, allow_pickle=False, **arrays)


def _sparse_features(arrays: Arrays) -> scipy.sparse.csr_array:
    indices, indptr, shape = arrays["x_indices"], arrays["x_indptr"], arrays["x_shape"]
    data = arrays.get("x_data", np.ones(indices.shape, dtype=np.float32))
    for name, array in (("x_indices", indices), ("x_indptr", indptr), ("x_shape", shape)):
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise InputError(f"{name} must be a list of whole numbers, got {array.dtype} of shape {array.shape}")
    try:
        return scipy.sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    except ValueError as failure:
        raise InputError(f"features must be a valid sparse matrix: {failure}") from None


def _names(arrays: Arrays, key: str) -> list[str] | None:
    return [str(name) for name in arrays[key].ravel()] if key in arrays else None
