"""The graph, and its way in from and out to other libraries and files."""

from bmpaudit.graph.edges import EdgeCleaning, GraphCleanedWarning
from bmpaudit.graph.graph import Features, Graph

__all__ = ["EdgeCleaning", "Features", "Graph", "GraphCleanedWarning"]
