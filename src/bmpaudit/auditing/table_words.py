"""Sentences about nodes of a graph, for data that are the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bmpaudit.report.words import TABLE_WORDS, in_other_words

if TYPE_CHECKING:
    from bmpaudit.graph import Graph

TABLE_NOTE = "The data are a table without edges: where pictures and files say node, they mean a row."


def words_of(graph: Graph) -> Mapping[str, str]:
    """What the usual words are replaced by: none if there are edges."""
    return {} if graph.num_edges else TABLE_WORDS


def in_words_of(graph: Graph, text: str) -> str:
    """A sentence as it fits the data: about nodes, or about rows if there are no edges.

    >>> from bmpaudit.graph import Graph
    >>> table = Graph.from_table([[0.5], [0.1]], [0, 1])
    >>> in_words_of(table, "2 nodes of the training graph: bmpaudit nodes DIR")
    '2 rows of the training data: bmpaudit nodes DIR'
    """
    return in_other_words(text, words_of(graph))
