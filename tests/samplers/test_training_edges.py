"""Samplers that say which edges are trained on."""

from typing import Any

import numpy as np
import pytest
from exact_laws import assert_follows, tiny_graph, walked_law

from bmpaudit import datasets
from bmpaudit.samplers import Snowball, Uniform, draw_memberships
from bmpaudit.samplers.draw import compressed_rows, training_edges
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import stream

NUM_SAMPLES = 20_000


def pairs(edges: Any) -> frozenset[frozenset[int]]:
    return frozenset(map(frozenset, edges.tolist()))


@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("fraction", "target", "fan_out"), [(0.5, 3, 2), (0.7, 4, 1), (0.99, 5, 2)])
def test_walked_edges_follow_their_exact_law(
    fraction: float, target: int, fan_out: int, restart: bool, any_order: bool
) -> None:
    graph, sampler = tiny_graph(), Snowball(fraction, fan_out, restart, any_order, walked_edges=True)
    law = walked_law(graph, target, fan_out, restart=restart, any_order=any_order)
    assert sum(law.values()) == 1
    indices = np.arange(NUM_SAMPLES)
    edges = training_edges(graph, sampler, indices, seed=3)
    assert edges is not None
    memberships = draw_memberships(graph, sampler, NUM_SAMPLES, seed=3)
    assert_follows(
        law,
        [(frozenset(np.flatnonzero(row).tolist()), pairs(each)) for row, each in zip(memberships, edges, strict=True)],
    )


def test_walked_edges_are_a_part_of_the_sample_that_connects_it() -> None:
    graph, sampler = datasets.load("cora"), Snowball(0.25, any_order=True, walked_edges=True)
    edges, memberships = training_edges(graph, sampler, np.arange(5), seed=0), draw_memberships(graph, sampler, 5, 0)
    assert edges is not None
    num_left_out = 0
    for walked, member in zip(edges, memberships, strict=True):
        inside = pairs(graph.edges[member[graph.edges].all(axis=1)])
        assert pairs(walked) <= inside
        assert np.array_equal(np.unique(walked), np.flatnonzero(member))
        num_left_out += len(inside - pairs(walked))
    assert num_left_out > 100


def test_the_sample_is_the_same_with_all_edges() -> None:
    graph = datasets.load("cora")
    walked = draw_memberships(graph, Snowball(0.25, walked_edges=True), 20, seed=1)
    assert np.array_equal(walked, draw_memberships(graph, Snowball(0.25), 20, seed=1))


def test_other_samplers_leave_all_edges() -> None:
    graph = tiny_graph()
    for sampler in (Uniform(0.5), Snowball(0.5), lambda graph, rng: np.arange(3)):  # noqa: ARG005
        assert training_edges(graph, sampler, np.arange(3), seed=0) is None


def test_compressed_rows_hold_each_edge_in_both_directions() -> None:
    indptr, indices = compressed_rows(np.array([[2, 0], [0, 2], [3, 2], [2, 0]]), 5)
    assert indptr.tolist() == [0, 1, 1, 3, 4, 4]
    assert indices.tolist() == [2, 0, 3, 2]
    indptr, indices = compressed_rows(np.zeros((0, 2), dtype=np.int64), 3)
    assert indptr.tolist() == [0, 0, 0, 0]
    assert indices.tolist() == []


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([0, 1], r"training_edges must be whole numbers of shape \(num_edges, 2\), got int64 of shape \(2,\)"),
        ([[0.0, 1.0]], r"got float64 of shape \(1, 2\)"),
        ([[0, 6]], r"training_edges must be node ids in \[0, 6\), got 6"),
        ([[-1, 0]], "got -1"),
    ],
)
def test_edges_of_ones_own_are_checked(edges: Any, message: str) -> None:
    class Own:
        def sample(self, graph: Any, rng: Any) -> Any:  # noqa: ARG002
            return np.arange(3)

        def training_edges(self, graph: Any, rng: Any) -> Any:  # noqa: ARG002
            return np.array(edges)

    with pytest.raises(InputError, match=message):
        training_edges(tiny_graph(), Own(), np.arange(2), seed=0)


def test_model_j_has_the_edges_of_its_own_sample() -> None:
    graph, sampler = datasets.load("cora"), Snowball(0.1, walked_edges=True)
    edges = training_edges(graph, sampler, np.array([7, 2]), seed=4)
    assert edges is not None
    for index, each in zip((7, 2), edges, strict=True):
        again = sampler.training_edges(graph, stream(4, index))
        assert again is not None
        assert np.array_equal(each, again)
