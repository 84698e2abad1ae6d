"""The graph, and its conversion from and to other libraries and files."""

from bmpaudit.graph.graph import DataIgnoredWarning, EdgeCleaning, Features, Graph, GraphCleanedWarning

__all__ = ["DataIgnoredWarning", "EdgeCleaning", "Features", "Graph", "GraphCleanedWarning"]
