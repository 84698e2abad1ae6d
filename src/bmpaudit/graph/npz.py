"""Graphs in NumPy archives, without pickles (docs/formats.md)."""

import zipfile
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.graph.graph import Graph

Arrays = dict[str, npt.NDArray[np.generic]]


def read_npz(path: Path) -> Graph:
    """See `Graph.from_npz`."""
    arrays = _load_arrays(path)
    try:
        features: npt.NDArray[np.generic] | scipy.sparse.csr_array
        features = arrays["x"] if "x" in arrays else _sparse_features(arrays)
        edges, labels = arrays["edges"], arrays["y"]
    except KeyError as missing:
        raise DataError(f"{path}: key {missing} is missing; found {', '.join(sorted(arrays))}") from None
    except ValueError as wrong:
        raise DataError(f"{path}: the features are not valid compressed rows: {wrong}") from None
    if "num_nodes" in arrays and int(arrays["num_nodes"]) != len(labels):
        raise DataError(f"{path}: num_nodes is {int(arrays['num_nodes'])}, but y has {len(labels)} labels")
    try:
        return Graph.from_edges(
            edges,
            features,
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


def _load_arrays(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as damage:
        if isinstance(damage, DataError):
            raise
        reason = "it holds pickled objects, which are never loaded" if "allow_pickle" in str(damage) else str(damage)
        raise DataError(f"{path}: damaged or not an .npz archive: {reason}") from None


def _sparse_features(arrays: Arrays) -> scipy.sparse.csr_array:
    indices, indptr = arrays["x_indices"], arrays["x_indptr"]
    data = arrays.get("x_data", np.ones(len(indices), dtype=np.float32))
    rows, columns = (int(extent) for extent in arrays["x_shape"])
    features = scipy.sparse.csr_array((data, indices, indptr), shape=(rows, columns))
    # An index that points outside would make compiled code read foreign memory.
    features.check_format(full_check=True)
    return features


def _names(arrays: Arrays, key: str) -> list[str] | None:
    return [str(name) for name in arrays[key]] if key in arrays else None
