"""A graph that any audit takes a moment for."""

from __future__ import annotations

import numpy as np

from bmpaudit.graph.graph import Graph

NUM_NODES = 40


def small_graph() -> Graph:
    """Features that tell all nodes apart, and labels that have nothing to do with the edges."""
    rng = np.random.default_rng(7)
    pairs = rng.integers(0, NUM_NODES, size=(60, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return Graph.from_edges(pairs, np.eye(NUM_NODES, dtype=np.float32), np.arange(NUM_NODES) % 3)
