"""Where to draw the nodes of a graph."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.csgraph

Floats = npt.NDArray[np.float64]

STEPS = 300
MOST_STRETCH = 1.6


def graph_layout(adjacency: scipy.sparse.csr_array) -> Floats:
    """Positions in the unit square, shape (num_nodes, 2).

    Each component by itself, by forces (Fruchterman and Reingold 1991); components side by side, the largest first,
    with room in proportion to their size. The same graph is always drawn in the same way.
    """
    num_components, label = scipy.sparse.csgraph.connected_components(adjacency, directed=False)
    order = np.argsort(-np.bincount(label), kind="stable")
    sides = np.empty(num_components)
    positions = np.zeros((adjacency.shape[0], 2))
    for component in order:
        nodes = np.flatnonzero(label == component)
        sides[component] = np.sqrt(len(nodes)) + 1.0
        positions[nodes] = _component_layout(adjacency[nodes][:, nodes]) * (sides[component] - 1.0) + 0.5
    corners = _shelves(sides[order])
    for corner, component in zip(corners, order, strict=True):
        positions[label == component] += corner
    extent = positions.max() if positions.max() > 0 else 1.0
    return positions / extent


def _component_layout(adjacency: scipy.sparse.csr_array) -> Floats:
    import igraph

    num_nodes = adjacency.shape[0]
    if num_nodes == 1:
        return np.full((1, 2), 0.5)
    source, target = scipy.sparse.triu(adjacency, k=1).nonzero()
    graph = igraph.Graph(num_nodes, np.column_stack([source, target]).tolist())
    # The start decides how it ends: a spiral, so that nothing is left to chance.
    turn = np.arange(num_nodes) * 2.399963229728653
    start = np.sqrt(np.arange(num_nodes) + 0.5)[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    igraph.set_random_number_generator(random.Random(0))  # noqa: S311 - else it takes Python's own, in any state
    try:
        found = np.array(graph.layout_fruchterman_reingold(niter=STEPS, seed=start.tolist()).coords)
    finally:
        igraph.set_random_number_generator(random)
    found -= found.min(axis=0)
    extent = found.max(axis=0)
    # A flat drawing may be stretched, so that it fills its square, but not out of all proportion.
    return found / np.maximum(extent, max(extent.max() / MOST_STRETCH, 1e-9))


def _shelves(sides: Floats) -> Floats:
    """Lower left corners of squares, largest first, that are put on shelves one above the other."""
    width = max(sides.max(), 1.1 * np.sqrt((sides**2).sum()))
    corners = np.empty((len(sides), 2))
    x, y, height = 0.0, 0.0, 0.0
    for number, side in enumerate(sides):
        if x + side > width and x > 0:
            x, y, height = 0.0, y + height, 0.0
        corners[number] = x, y
        x, height = x + side, max(height, side)
    return corners
