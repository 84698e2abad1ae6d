"""Graphs from and to networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit.errors import InputError
from bmpaudit.graph.graph import Graph

if TYPE_CHECKING:
    import networkx


def from_networkx(graph: networkx.Graph[Any], features: str, label: str) -> Graph:
    """See `Graph.from_networkx`."""
    for node, attributes in graph.nodes(data=True):
        for name in (features, label):
            if name not in attributes:
                raise InputError(f"every node must have an attribute {name!r}, node {node!r} has none")
    order = {node: index for index, node in enumerate(graph)}
    rows = [np.atleast_1d(attributes[features]) for _, attributes in graph.nodes(data=True)]
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise InputError(f"attribute {features!r} must have the same length on every node, got {sorted(lengths)}")
    pairs = [(order[u], order[v]) for u, v in graph.edges()]
    return Graph.from_edges(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.stack(rows) if rows else np.empty((0, 0)),
        np.array([attributes[label] for _, attributes in graph.nodes(data=True)]),
        node_names=None if list(order) == list(range(len(order))) else [str(node) for node in order],
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
