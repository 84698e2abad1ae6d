"""Where to draw the nodes of a graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from bmpaudit.arrays import Floats
from bmpaudit.report.force_layout import force_layout

MAX_STRETCH = 1.6


def graph_layout(adjacency: scipy.sparse.csr_array) -> Floats:
    """Positions in the unit square, shape (num_nodes, 2); the same graph is always drawn in the same way.

    Connected components are drawn separately and put side by side, the largest first, with room in proportion to
    their size.

    Args:
        adjacency: Symmetric adjacency matrix without self-loops.
    """
    num_components, component_of = scipy.sparse.csgraph.connected_components(adjacency, directed=False)
    nodes_by_component = np.argsort(component_of, kind="stable")
    sizes = np.bincount(component_of, minlength=num_components)
    components = np.split(nodes_by_component, np.cumsum(sizes)[:-1])
    order = np.argsort(-sizes, kind="stable")
    sides = np.sqrt(sizes[order]) + 1.0
    positions = np.empty((adjacency.shape[0], 2))
    for component, side, corner in zip(order, sides, _shelves(sides), strict=True):
        nodes = components[component]
        positions[nodes] = corner + 0.5 + (side - 1.0) * _component_layout(adjacency, nodes)
    return positions / positions.max()


def _component_layout(adjacency: scipy.sparse.csr_array, nodes: np.ndarray) -> Floats:
    """Positions of one component in the unit square."""
    if len(nodes) == 1:
        return np.full((1, 2), 0.5)
    positions = force_layout(adjacency[nodes][:, nodes])
    positions -= positions.min(axis=0)
    extent = positions.max(axis=0)
    # A flat drawing is stretched to fill its square, but within limits.
    return positions / np.maximum(extent, extent.max() / MAX_STRETCH)


def _shelves(sides: Floats) -> Floats:
    """Lower left corners of squares, largest first, placed on shelves one above the other."""
    width = max(sides.max(), 1.1 * np.sqrt((sides**2).sum()))
    corners = np.empty((len(sides), 2))
    x, y, height = 0.0, 0.0, 0.0
    for number, side in enumerate(sides):
        if x + side > width and x > 0:
            x, y, height = 0.0, y + height, 0.0
        corners[number] = x, y
        x, height = x + side, max(height, side)
    return corners
