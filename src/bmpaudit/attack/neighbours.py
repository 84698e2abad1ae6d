"""The mean statistic of each node's neighbours: a member changes the answers about its neighbours too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit import _native
from bmpaudit.tables import FloatTable, ScratchTable, model_blocks, new_table

if TYPE_CHECKING:
    from bmpaudit.graph import Graph


class NeighbourMeans:
    """Tables of means, each made when it is first asked for.

    Args:
        statistics: By query, the statistic of every node under every model, shape (J, N).
        kept: Where to keep the tables, by query, with the graph that they are about.
    """

    def __init__(self, statistics: Mapping[str, FloatTable], kept: dict[str, tuple[Graph, FloatTable]]) -> None:
        self._statistics, self._kept = statistics, kept

    @property
    def num_models(self) -> int:
        """J."""
        return len(next(iter(self._statistics.values())))

    @property
    def folders(self) -> set[Path]:
        """Folders that the statistics are read from."""
        found = (getattr(table, "folder", None) for table in self._statistics.values())
        return {folder for folder in found if isinstance(folder, Path)}

    def share(self) -> None:
        """Moves tables from temporary files to the folder that the statistics are read from, if they are."""
        for query, (_, table) in self._kept.items():
            folder = getattr(self._statistics.get(query), "folder", None)
            if isinstance(table, ScratchTable) and isinstance(folder, Path):
                table.share(folder)

    def __getstate__(self) -> dict[str, Any]:
        """Without tables that only this process can read, or that nobody will ask for."""
        kept = {
            query: (graph, table)
            for query, (graph, table) in self._kept.items()
            if query in self._statistics and not (isinstance(table, ScratchTable) and not table.is_shared)
        }
        return {"_statistics": self._statistics, "_kept": kept}

    def get(self, query: str, graph: Graph, num_threads: int) -> FloatTable:
        """The means under one query, shape (J, N)."""
        known, table = self._kept.get(query, (None, None))
        if table is None or known is not graph:
            table = neighbour_means(self._statistics[query], graph, num_threads)
            self._kept[query] = graph, table
        return table


def neighbour_means(statistics: FloatTable, graph: Graph, num_threads: int) -> FloatTable:
    """Mean over the neighbours of each node, 0 without neighbours, from shape (J, N) to (J, N).

    Takes some models at a time, with all nodes, so that work and memory do not depend on who the neighbours are.
    """
    means = new_table(*statistics.shape)
    indptr, indices = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    for rows in model_blocks(*statistics.shape):
        values = np.ascontiguousarray(statistics[rows])
        block = np.empty_like(values)
        _native.neighbour_means(indptr, indices, values, num_threads, block)
        means[rows, :] = block
    return means
