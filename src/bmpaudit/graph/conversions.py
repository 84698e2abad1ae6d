"""Graphs from and to PyTorch Geometric, networkx and SciPy."""

from __future__ import annotations

import textwrap
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.graph.graph import NEEDED, Graph, check_sparse
from bmpaudit.util.errors import InputError

if TYPE_CHECKING:
    import networkx


IGNORED = ("train_mask", "val_mask", "test_mask", "edge_weight", "edge_attr")


class DataIgnoredWarning(UserWarning):
    """Parts of the data were left out, because a `Graph` has no place for them; the message names them."""


def from_pyg(data: Any) -> Graph:
    """See `Graph.from_pyg`."""
    for name in ("x", "edge_index", "y"):
        if getattr(data, name, None) is None:
            remedy = f": {NEEDED}" if name == "x" else ""
            raise InputError(f"the PyG data must have {name}, got none{remedy}")
    edge_index = _to_numpy(data.edge_index)
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise InputError(f"edge_index must have shape (2, num_edges), got {edge_index.shape}")
    labels = _to_numpy(data.y)
    if labels.ndim == 2 and labels.shape[1] == 1:  # OGB stores labels as a column
        labels = labels[:, 0]
    graph = Graph.from_edges(edge_index.T, _features(data.x), labels, both_ways_expected=True)
    ignored = [name for name in IGNORED if getattr(data, name, None) is not None]
    if ignored:
        reason = " (a sampler chooses the training nodes)" if ignored[0].endswith("_mask") else ""
        warnings.warn(f"PyG data: {', '.join(ignored)} ignored{reason}", DataIgnoredWarning, stacklevel=3)
    return graph


def to_pyg(graph: Graph) -> Any:
    """See `Graph.to_pyg`."""
    try:
        import torch
        from torch_geometric.data import Data
    except ImportError as missing:
        raise InputError(f"to_pyg needs PyTorch Geometric: pip install 'bmpaudit[torch]' ({missing})") from None
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    return Data(
        x=torch.tensor(graph.dense_features),
        edge_index=torch.tensor(np.stack([source, graph.indices.astype(np.int64)])),
        y=torch.tensor(graph.labels),
    )


def _features(x: Any) -> Any:
    if not (getattr(x, "is_sparse", False) or str(getattr(x, "layout", "")) == "torch.sparse_csr"):
        return _to_numpy(x)
    entries = x.detach().cpu().to_sparse_coo().coalesce()
    rows, columns = entries.indices().numpy()
    return scipy.sparse.coo_array((_to_numpy(entries.values()), (rows, columns)), shape=tuple(x.shape))


def _to_numpy(tensor: Any) -> npt.NDArray[Any]:
    if not hasattr(tensor, "detach"):  # an array or a list
        return np.asarray(tensor)
    tensor = tensor.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()  # NumPy has no bfloat16


# Graphs from and to networkx.


def from_networkx(graph: networkx.Graph[Any], features: str, label: str) -> Graph:
    """See `Graph.from_networkx`."""
    rows, labels = [], []
    for node, attributes in graph.nodes(data=True):
        for name in (features, label):
            if name not in attributes:
                raise InputError(f"every node must have an attribute {name!r}, node {node!r} has none")
        rows.append(_vector(features, attributes[features], node))
        if len(rows[-1]) != len(rows[0]):
            raise InputError(
                f"attribute {features!r} must have the same length on every node, "
                f"got {len(rows[0])} on node {next(iter(graph))!r} and {len(rows[-1])} on node {node!r}"
            )
        labels.append(_whole_number(label, attributes[label], node))
    number_of = {node: number for number, node in enumerate(graph)}
    pairs = [(number_of[u], number_of[v]) for u, v in graph.edges()]
    return Graph.from_edges(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.stack(rows) if rows else np.empty((0, 0)),
        np.array(labels, dtype=np.int64),
        node_names=None if list(number_of) == list(range(len(number_of))) else [str(node) for node in number_of],
        both_ways_expected=graph.is_directed(),
    )


def to_networkx(graph: Graph) -> networkx.Graph[Any]:
    """See `Graph.to_networkx`."""
    try:
        import networkx
    except ImportError:
        raise InputError("to_networkx needs networkx: pip install networkx") from None
    result: networkx.Graph[Any] = networkx.Graph()
    names = graph.node_names or range(graph.num_nodes)
    for name, x, y in zip(names, graph.dense_features, graph.labels, strict=True):
        result.add_node(name, x=x, y=int(y))
    result.add_edges_from((names[u], names[v]) for u, v in graph.edges)
    return result


def _brief(value: Any) -> str:
    return textwrap.shorten(repr(value), 60, placeholder="…")


def _vector(attribute: str, value: Any, node: Any) -> npt.NDArray[np.float64]:
    try:
        vector = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"attribute {attribute!r} must be numbers, got {_brief(value)} on node {node!r}") from None
    if vector.ndim != 1:
        raise InputError(f"attribute {attribute!r} must be a vector, got shape {vector.shape} on node {node!r}")
    return vector


def _whole_number(attribute: str, value: Any, node: Any) -> int:
    array = np.asarray(value)
    if array.ndim != 0 or not np.issubdtype(array.dtype, np.integer) or array > np.iinfo(np.int64).max:
        raise InputError(f"attribute {attribute!r} must be a whole number, got {_brief(value)} on node {node!r}")
    return int(array)


# Graphs from SciPy sparse matrices.


def from_scipy(adjacency: Any, features: Any, labels: npt.ArrayLike) -> Graph:
    """See `Graph.from_scipy`; `Graph.adjacency` is the inverse."""
    if not scipy.sparse.issparse(adjacency):
        raise InputError(f"adjacency must be a SciPy sparse matrix, got {type(adjacency).__name__}")
    if adjacency.ndim != 2:
        raise InputError(f"adjacency must be a matrix, got shape {adjacency.shape}")
    rows, columns = adjacency.shape
    num_labels = np.size(labels)
    if rows != columns or rows != num_labels:
        raise InputError(
            f"adjacency must be square with one row for each of {num_labels} labels, got {rows} × {columns}"
        )
    check_sparse("adjacency", adjacency)
    entries = scipy.sparse.coo_array(adjacency)
    is_edge = entries.data != 0
    pairs = np.column_stack([entries.row[is_edge], entries.col[is_edge]])
    return Graph.from_edges(pairs, features, labels, both_ways_expected=True)
