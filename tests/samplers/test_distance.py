"""The bounds of samplers on how many memberships change with one, against their exact laws."""

from typing import Any

import pytest
from exact_laws import Law, degree_weighted_law, random_walk_law, snowball_law, tiny_graph

from bmpaudit import Graph
from bmpaudit.errors import InputError
from bmpaudit.privacy import fixed_size_memberships, independent_memberships, membership_distance
from bmpaudit.samplers import (
    Bernoulli,
    DegreeWeighted,
    RandomWalk,
    Snowball,
    Stratified,
    Uniform,
    sampler_distance,
)

GRAPH = tiny_graph()


def exact_distance(law: Law) -> int:
    table = [0.0] * 2**GRAPH.num_nodes
    for members, probability in law.items():
        table[sum(1 << node for node in members)] += float(probability)
    return membership_distance(table)


def test_of_independent_and_of_fixed_size_samples_are_exact() -> None:
    assert sampler_distance(Bernoulli(0.5), GRAPH) == membership_distance(independent_memberships([0.5] * 6)) == 1
    assert sampler_distance(Uniform(0.5), GRAPH) == membership_distance(fixed_size_memberships(6, 3)) == 2
    assert sampler_distance(Stratified(0.5), GRAPH) == 2


@pytest.mark.parametrize(
    ("sampler", "law", "exact"),
    [
        (Snowball(0.34, fan_out=2), snowball_law(GRAPH, 2, 2, restart=False), 4),
        (Snowball(0.5, fan_out=2), snowball_law(GRAPH, 3, 2, restart=False), 4),
        (Snowball(0.34, fan_out=1, restart=True), snowball_law(GRAPH, 2, 1, restart=True), 4),
        (RandomWalk(walk_length=1, num_roots=1), random_walk_law(GRAPH, 1, 1), 4),
        (DegreeWeighted(0.34), degree_weighted_law(GRAPH, 2), 2),  # 2 wherever it was computed, which proves nothing
    ],
)
def test_of_other_samplers_are_bounds(sampler: Any, law: Law, exact: int) -> None:
    assert exact_distance(law) == exact <= sampler_distance(sampler, GRAPH) <= GRAPH.num_nodes


def test_of_a_sampler_that_does_not_say_is_the_number_of_nodes() -> None:
    assert sampler_distance(lambda graph, rng: [0], GRAPH) == 6  # noqa: ARG005


def test_a_sampler_of_the_users_own_may_say() -> None:
    class Own:
        def __init__(self, distance: Any) -> None:
            self.distance = distance

        def sample(self, graph: Graph, rng: Any) -> Any:
            raise NotImplementedError

        def membership_distance(self, graph: Graph) -> Any:  # noqa: ARG002
            return self.distance

    assert sampler_distance(Own(3), GRAPH) == 3
    for wrong in (0, 7, 1.5, True):
        with pytest.raises(InputError, match=rf"membership_distance of sampler .*Own must be in \[1, 6\], got {wrong}"):
            sampler_distance(Own(wrong), GRAPH)
