"""All edges."""

from dataclasses import dataclass

from bmpaudit.graph import Graph


@dataclass(frozen=True)
class FullEdges:
    """Asks about every node with all edges of the graph."""

    def graph(self, graph: Graph) -> Graph:
        """See `interfaces.Query`."""
        return graph
