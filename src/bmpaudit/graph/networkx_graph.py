"""Graphs from and to networkx."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import InputError
from bmpaudit.graph.graph import Graph

if TYPE_CHECKING:
    import networkx


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
