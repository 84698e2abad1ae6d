"""No edges."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from bmpaudit.graph import Graph


@dataclass(frozen=True)
class NoEdges:
    """Asks about each node by itself."""

    def graph(self, graph: Graph) -> Graph:
        """See `interfaces.Query`."""
        indptr, indices = np.zeros_like(graph.indptr), np.empty(0, dtype=graph.indices.dtype)
        for array in (indptr, indices):
            array.setflags(write=False)
        return dataclasses.replace(graph, indptr=indptr, indices=indices)
