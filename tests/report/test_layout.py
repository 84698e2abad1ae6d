"""Where the nodes of a graph are drawn."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scipy.sparse

from bmpaudit import datasets
from bmpaudit.report.layout import MAX_EXACT, _exact_repulsion, _grid_repulsion, graph_layout


def adjacency(num_nodes: int, edges: list[tuple[int, int]]) -> scipy.sparse.csr_array:
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    half = scipy.sparse.coo_array((np.ones(len(source)), (source, target)), shape=(num_nodes, num_nodes))
    return (half + half.T).tocsr()


LARGE = 2 * MAX_EXACT
TRIANGLES = [(a + 3 * k, b + 3 * k) for k in range(40) for a, b in ((0, 1), (1, 2), (0, 2))]


@pytest.mark.parametrize(
    "graph",
    [
        adjacency(1, []),
        adjacency(2, [(0, 1)]),
        adjacency(300, []),
        adjacency(30, [(node, node + 1) for node in range(29)]),
        adjacency(140, TRIANGLES),  # and twenty isolated nodes
        adjacency(50, [(0, leaf) for leaf in range(1, 50)]),
        adjacency(LARGE, [(0, leaf) for leaf in range(1, LARGE)]),
        adjacency(LARGE, [(node // 8, node) for node in range(1, LARGE)]),
        adjacency(40, [(u, v) for u in range(40) for v in range(u)]),
        datasets.load("demo").adjacency,
    ],
    ids=["one", "pair", "isolated", "path", "components", "star", "large star", "tree", "complete", "demo"],
)
def test_positions_are_distinct_in_the_unit_square_and_always_the_same(graph: scipy.sparse.csr_array) -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the state that must not matter
    positions = graph_layout(graph)
    assert positions.shape == (graph.shape[0], 2)
    assert np.isfinite(positions).all()
    assert positions.min() >= 0
    assert positions.max() <= 1
    assert len(np.unique(positions, axis=0)) == len(positions)
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002
    states = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    np.testing.assert_array_equal(graph_layout(graph), positions)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states  # type: ignore[index]  # noqa: NPY002


def test_components_lie_apart() -> None:
    positions = graph_layout(adjacency(140, TRIANGLES))
    low, high = (
        np.array([function(positions[3 * k : 3 * k + 3], axis=0) for k in range(40)]) for function in (np.min, np.max)
    )
    for one in range(40):
        for other in range(one):
            assert (high[one] < low[other]).any() or (high[other] < low[one]).any()


@pytest.mark.parametrize("name", ["demo", "cora", "citeseer"])
def test_neighbours_are_nearer_than_other_nodes(name: str) -> None:
    graph = datasets.load(name).adjacency
    positions = graph_layout(graph)
    source, target = graph.nonzero()
    strangers = np.random.default_rng(0).permutation(target)
    near, far = (np.linalg.norm(positions[source] - positions[ends], axis=1).mean() for ends in (target, strangers))
    assert near < far / 2


def test_a_large_grid_is_unfolded() -> None:
    side = 25
    edges = [(row * side + column, row * side + column + 1) for row in range(side) for column in range(side - 1)]
    edges += [(node, node + side) for node in range(side * (side - 1))]
    positions = graph_layout(adjacency(side * side, edges)).reshape(side, side, 2)
    across, along = positions[:, 1:] - positions[:, :-1], positions[1:] - positions[:-1]
    # Every square of the grid is turned the same way round.
    turn = across[:-1, :, 0] * along[:, :-1, 1] - across[:-1, :, 1] * along[:, :-1, 0]
    assert (np.sign(turn) == np.sign(turn[0, 0])).all()


def test_repulsion_on_the_grid_is_close_to_the_exact_sum() -> None:
    rng = np.random.default_rng(0)
    positions, mass = rng.normal(size=(1_000, 2)), rng.integers(1, 20, 1_000).astype(np.float64)
    exact, on_grid = _exact_repulsion(mass)(positions), _grid_repulsion(mass)(positions)
    error = np.linalg.norm(on_grid - exact, axis=1)
    assert np.median(error / np.linalg.norm(exact, axis=1)) < 0.05
