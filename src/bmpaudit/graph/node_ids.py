"""Nodes of a graph by what a file calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bmpaudit.arrays import Ints
from bmpaudit.errors import DataError
from bmpaudit.graph.graph import Graph


def node_ids(nodes: Sequence[Any], graph: Graph, place: str) -> Ints:
    """Numbers of distinct nodes given by name or, if it is nobody's name, by number.

    Args:
        nodes: Names or numbers.
        graph: The graph.
        place: What errors call the source of `nodes`.

    Raises:
        DataError: if a node is unknown or there twice.

    >>> named = Graph.from_edges([(0, 1)], [[1.0], [2.0]], [0, 1], node_names=["Rex", "Tom"])
    >>> node_ids(["Tom", "0"], named, "pets.csv")
    array([1, 0])
    """
    by_name = {str(number): number for number in range(graph.num_nodes)}
    by_name |= {name: number for number, name in enumerate(graph.node_names or ())}
    seen: set[int] = set()
    ids = np.empty(len(nodes), dtype=np.int64)
    for position, node in enumerate(nodes):
        name = str(int(node)) if isinstance(node, float) and node.is_integer() else str(node)
        number = by_name.get(name, by_name.get(name.strip(), -1))
        if number < 0:
            raise DataError(f"{place}: there is no node {node!r} among the graph's {graph.num_nodes:,}")
        if number in seen:
            raise DataError(f"{place}: node {node!r} is there twice")
        seen.add(number)
        ids[position] = number
    return ids
