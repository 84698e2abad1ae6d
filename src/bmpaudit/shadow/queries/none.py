"""No edges."""

from dataclasses import dataclass, replace

import numpy as np

from bmpaudit.graph import Graph


@dataclass(frozen=True)
class NoEdges:
    """Asks about each node by itself."""

    def graph(self, graph: Graph) -> Graph:
        """See `interfaces.Query`."""
        indptr, indices = np.zeros_like(graph.indptr), np.empty(0, dtype=graph.indices.dtype)
        return replace(graph, indptr=indptr, indices=indices, cleaning=replace(graph.cleaning, num_edges=0))
