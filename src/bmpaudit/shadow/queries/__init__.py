"""How the adversary asks: one file for each query."""

from bmpaudit.shadow.queries.full import FullEdges
from bmpaudit.shadow.queries.none import NoEdges

__all__ = ["FullEdges", "NoEdges"]
