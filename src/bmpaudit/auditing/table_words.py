"""Sentences about nodes of a graph, for data that are the rows of a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmpaudit.graph import Graph

TABLE_NOTE = "The data are a table without edges: where pages and files say node, they mean a row."
# The command keeps its name.
REPLACED = (("training graph", "training data"), (r"(?<!bmpaudit )\bnode(s?)\b", r"row\1"))


def in_words_of(graph: Graph, text: str) -> str:
    """A sentence as it fits the data: about nodes, or about rows if there are no edges.

    >>> from bmpaudit.graph import Graph
    >>> table = Graph.from_table([[0.5], [0.1]], [0, 1])
    >>> in_words_of(table, "2 nodes of the training graph: bmpaudit nodes DIR")
    '2 rows of the training data: bmpaudit nodes DIR'
    """
    if graph.num_edges:
        return text
    for pattern, replacement in REPLACED:
        text = re.sub(pattern, replacement, text)
    return text
