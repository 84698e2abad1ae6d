"""Where to draw the nodes of a graph: a force-directed layout, in time nearly proportional to its size.

The forces are those of ForceAtlas2 (Jacomy et al. 2014): adjacent nodes attract each other in proportion to their
distance, and all pairs of nodes repel each other by (degree + 1) (degree' + 1) / distance. In large graphs, repulsion
is summed on a grid with fast Fourier transforms, the particle-mesh method of N-body simulations. The start is Pivot MDS
(Brandes and Pich 2006), which unfolds the graph as a whole, and nothing is random.
"""

from collections.abc import Callable

import numpy as np
import scipy.fft
import scipy.sparse
import scipy.sparse.csgraph
import scipy.spatial

from bmpaudit.util.values import Floats

NUM_PIVOTS = 50
NUM_STEPS = 150
MAX_EXACT = 300  # with more nodes than this, repulsion is summed on a grid
GRAVITY = 0.02  # keeps branches that hang by a thread from drifting off
LARGEST_STEP = 0.1  # as a fraction of the drawing's radius, decreasing to 0

# At the end, nodes that nearly coincide are moved apart, so that each can be seen.
SPREAD_STEPS = 60
SPREAD_NEIGHBORS = 6
SPREAD_DISTANCE = 0.5  # as a fraction of the mean distance between nodes

GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))
MAX_STRETCH = 1.6  # of a flat drawing, to fill its square


def graph_layout(adjacency: scipy.sparse.csr_array) -> Floats:
    """Positions in the unit square, shape (num_nodes, 2); the same graph is always drawn in the same way.

    Connected components of the symmetric adjacency matrix, which has no self-loops, are drawn separately and put side
    by side, the largest first, with room in proportion to their size.
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
    positions = _force_layout(adjacency[nodes][:, nodes])
    positions -= positions.min(axis=0)
    extent = positions.max(axis=0)
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


def _force_layout(adjacency: scipy.sparse.csr_array) -> Floats:
    """Positions of the nodes of a connected graph in arbitrary units, shape (num_nodes, 2)."""
    num_nodes = adjacency.shape[0]
    if num_nodes <= 2:
        return np.column_stack([np.arange(num_nodes, dtype=np.float64), np.zeros(num_nodes)])
    mass = np.diff(adjacency.indptr) + 1.0
    pull = scipy.sparse.csgraph.laplacian(adjacency.astype(np.float64)).tocsr()
    is_small = num_nodes <= MAX_EXACT
    repulsion = _exact_repulsion(mass) if is_small else _grid_repulsion(mass)
    positions = _pivot_mds(adjacency) * np.sqrt(mass.sum())
    for step in range(NUM_STEPS):
        remaining = 1.0 - step / NUM_STEPS
        move = repulsion(positions) - (pull @ positions) / mass[:, None] - GRAVITY * positions
        length = np.linalg.norm(move, axis=1, keepdims=True)
        longest = LARGEST_STEP * np.sqrt(np.mean(positions**2)) * remaining**1.5
        positions = positions + move * (np.minimum(length, longest) / np.maximum(length, 1e-12))
        if not is_small and NUM_STEPS - step <= SPREAD_STEPS:
            positions = _spread(positions)
    return positions


def _pivot_mds(adjacency: scipy.sparse.csr_array) -> Floats:
    """Positions of about unit size, whose distances resemble path lengths to pivots that lie far from each other."""
    num_nodes = adjacency.shape[0]
    pivot = int(np.argmax(np.diff(adjacency.indptr)))
    lengths = np.empty((num_nodes, min(NUM_PIVOTS, num_nodes)))
    for column in range(lengths.shape[1]):
        lengths[:, column] = scipy.sparse.csgraph.dijkstra(adjacency, unweighted=True, indices=pivot)
        pivot = int(np.argmax(lengths[:, : column + 1].min(axis=1)))
    squared = lengths**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()
    _, vectors = np.linalg.eigh(centred.T @ centred)
    positions = centred @ vectors[:, :-3:-1]
    farthest = np.take_along_axis(positions, np.abs(positions).argmax(axis=0)[None], axis=0)
    # Dividing by the signed value also fixes the sign, which is arbitrary in an eigenvector.
    positions = positions / np.where(np.abs(farthest) > 1e-9, farthest, 1.0)
    # Nodes with equal path lengths coincide: a small spiral takes them apart.
    return positions + 0.1 * np.sqrt((np.arange(num_nodes)[:, None] + 0.5) / num_nodes) * _directions(num_nodes)


def _directions(num_nodes: int) -> Floats:
    """A different unit vector for each node."""
    angle = np.arange(num_nodes) * GOLDEN_ANGLE
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _exact_repulsion(mass: Floats) -> Callable[[Floats], Floats]:
    """Repulsion per unit of mass, summed over all pairs."""

    def repulsion(positions: Floats) -> Floats:
        apart = positions[:, None] - positions
        squared = np.maximum((apart**2).sum(axis=2), 1e-9)
        return np.einsum("ij,ijk->ik", mass / squared, apart)

    return repulsion


def _grid_repulsion(mass: Floats) -> Callable[[Floats], Floats]:
    """Repulsion per unit of mass, from masses spread over a grid and convolved with the force law."""
    num_cells = int(np.clip(2 ** np.round(np.log2(2.5 * np.sqrt(len(mass)))), 64, 256))
    size = 2 * num_cells  # the upper half is empty, because Fourier transforms wrap around
    offset = scipy.fft.fftfreq(size, 1 / size)
    plane = offset[:, None] + 1j * offset  # x is the real part of a force, y the imaginary part
    kernel = scipy.fft.fft2(plane / np.maximum(np.abs(plane) ** 2, 1.0))

    def repulsion(positions: Floats) -> Floats:
        low = positions.min(axis=0)
        cell = (positions.max(axis=0) - low).max() / (num_cells - 1.001)
        place = (positions - low) / cell
        corner = place.astype(np.int64)
        corners = [corner + offset for offset in ((0, 0), (0, 1), (1, 0), (1, 1))]
        shares = [np.prod(1.0 - np.abs(place - corner), axis=1) for corner in corners]
        indices = [corner[:, 0] * size + corner[:, 1] for corner in corners]
        grid = np.bincount(np.concatenate(indices), np.concatenate([mass * share for share in shares]), size * size)
        field = scipy.fft.ifft2(scipy.fft.fft2(grid.reshape(size, size)) * kernel).ravel()
        force = sum(field[index] * share for index, share in zip(indices, shares, strict=True)) / cell
        return np.column_stack([force.real, force.imag])

    return repulsion


def _spread(positions: Floats) -> Floats:
    """Moves each node away from its nearest ones, as far as they are too close."""
    wanted = SPREAD_DISTANCE * np.sqrt(np.prod(np.ptp(positions, axis=0)) / len(positions))
    # Leaves of the same node may coincide exactly, where they know no direction to part in.
    positions = positions + 1e-3 * wanted * _directions(len(positions))
    distance, other = scipy.spatial.cKDTree(positions).query(positions, SPREAD_NEIGHBORS + 1)
    missing = np.maximum(wanted - distance[:, 1:], 0.0) / np.maximum(distance[:, 1:], 1e-9)
    return positions + 0.25 * np.einsum("ij,ijk->ik", missing, positions[:, None] - positions[other[:, 1:]])
