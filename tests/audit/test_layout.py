"""Where the nodes of a graph are drawn."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scipy.sparse

from bmpaudit import datasets
from bmpaudit.auditing.layout import graph_layout


def adjacency(num_nodes: int, edges: list[tuple[int, int]]) -> scipy.sparse.csr_array:
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    half = scipy.sparse.coo_array((np.ones(len(source)), (source, target)), shape=(num_nodes, num_nodes))
    return (half + half.T).tocsr()


PATH = [(node, node + 1) for node in range(29)]
TRIANGLES = [(a + 3 * k, b + 3 * k) for k in range(40) for a, b in ((0, 1), (1, 2), (0, 2))]


@pytest.mark.parametrize(
    "graph",
    [
        adjacency(1, []),
        adjacency(2, [(0, 1)]),
        adjacency(300, []),
        adjacency(30, PATH),
        adjacency(140, TRIANGLES),  # and twenty isolated nodes
        adjacency(50, [(0, leaf) for leaf in range(1, 50)]),
        datasets.load("demo").adjacency,
    ],
    ids=["one", "pair", "isolated", "path", "components", "star", "demo"],
)
def test_places_are_in_the_unit_square_and_always_the_same(graph: scipy.sparse.csr_array) -> None:
    random.seed(1)
    places = graph_layout(graph)
    assert places.shape == (graph.shape[0], 2)
    assert np.isfinite(places).all()
    assert places.min() >= 0
    assert places.max() <= 1
    assert len(np.unique(places, axis=0)) == len(places)
    random.seed(2)
    state = random.getstate()
    np.testing.assert_array_equal(graph_layout(graph), places)
    assert random.getstate() == state


def test_components_lie_apart() -> None:
    places = graph_layout(adjacency(140, TRIANGLES))
    low, high = (
        np.array([function(places[3 * k : 3 * k + 3], axis=0) for k in range(40)]) for function in (np.min, np.max)
    )
    for one in range(40):
        for other in range(one):
            assert (high[one] < low[other]).any() or (high[other] < low[one]).any()


def test_neighbours_are_nearer_than_others() -> None:
    graph = datasets.load("demo").adjacency
    places = graph_layout(graph)
    source, target = graph.nonzero()
    strangers = np.random.default_rng(0).permutation(target)
    near, far = (np.linalg.norm(places[source] - places[ends], axis=1).mean() for ends in (target, strangers))
    assert near < far / 2
