"""The bounds of samplers on how many memberships change with one, against their exact laws."""

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from exact_laws import Law, degree_weighted_law, random_walk_law, snowball_law, tiny_graph

from bmpaudit.graph.graph import Graph
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
from bmpaudit.util.errors import InputError

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
        (DegreeWeighted(0.34), degree_weighted_law(GRAPH, 2), 2),
        (DegreeWeighted(0.84), degree_weighted_law(GRAPH, 5), 2),
    ],
)
def test_of_other_samplers_are_bounds(sampler: Any, law: Law, exact: int) -> None:
    assert exact_distance(law) == exact <= sampler_distance(sampler, GRAPH) <= GRAPH.num_nodes


def hub_chances(num_leaves: int, size: int) -> tuple[Fraction, Fraction]:
    """Two stars of so many leaves, degree-weighted: chance of one hub to be drawn, given that the other is and is not.

    Exact, by the numbers of hubs and leaves that are left: leaves have weight 2, hubs 1 + num_leaves.
    """

    @cache
    def chances(first: int, second: int, leaves: int, left: int) -> dict[tuple[int, int], Fraction]:
        if left == 0:
            return {(1 - first, 1 - second): Fraction(1)}
        weights = ((num_leaves + 1) * first, (num_leaves + 1) * second, 2 * leaves)
        after = ((0, second, leaves), (first, 0, leaves), (first, second, leaves - 1))
        law: dict[tuple[int, int], Fraction] = {}
        for weight, state in zip(weights, after, strict=True):
            for drawn, chance in chances(*state, left - 1).items() if weight else ():
                law[drawn] = law.get(drawn, Fraction(0)) + chance * Fraction(weight, sum(weights))
        return law

    law = chances(1, 1, 2 * num_leaves, size)
    return law[1, 1] / (law[1, 1] + law[1, 0]), law[0, 1] / (law[0, 1] + law[0, 0])


def test_of_degree_weighted_samples_can_be_more_than_2() -> None:
    """At distance 2 a node only takes another's place, so that no other is likelier in its company. Here one is."""
    given_in, given_out = hub_chances(num_leaves=7, size=11)
    assert given_in > given_out
    stars = Graph.from_edges(
        [(hub, 2 + 7 * hub + leaf) for hub in range(2) for leaf in range(7)], np.ones((16, 1)), [0, 1] * 8
    )
    assert sampler_distance(DegreeWeighted(11 / 16), stars) == 10
    rng = np.random.default_rng(5)
    drawn = np.zeros((20_000, 16), dtype=np.bool_)
    for row in drawn:
        row[DegreeWeighted(11 / 16).sample(stars, rng)] = True
    assert (drawn.sum(axis=1) == 11).all()
    for chance, is_in in ((given_in, True), (given_out, False)):
        seen = drawn[drawn[:, 0] == is_in, 1]
        assert abs(seen.mean() - float(chance)) < 4 * np.sqrt(float(chance * (1 - chance)) / len(seen))


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
