"""The graph, and its conversion from and to other libraries and files."""

from bmpaudit.graph.edges import EdgeCleaning, GraphCleanedWarning
from bmpaudit.graph.features import Features
from bmpaudit.graph.graph import Graph
from bmpaudit.graph.pyg import DataIgnoredWarning

__all__ = ["DataIgnoredWarning", "EdgeCleaning", "Features", "Graph", "GraphCleanedWarning"]
