"""Exact laws of the samplers on tiny graphs, by enumerating all random choices with their probabilities."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from typing import TypeVar

import scipy.stats

from bmpaudit.graph.graph import Graph

Outcome = TypeVar("Outcome")

Law = dict[frozenset[int], Fraction]
Walked = tuple[frozenset[int], frozenset[frozenset[int]]]
"""The nodes of a sample, and the edges walked along."""

TINY_EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4)]  # a triangle with a tail; node 5 is isolated


def tiny_graph() -> Graph:
    return Graph.from_edges(TINY_EDGES, [[1.0]] * 6, [0, 1, 0, 1, 0, 2])


def neighbors_of(graph: Graph) -> dict[int, list[int]]:
    neighbors: dict[int, list[int]] = {node: [] for node in range(graph.num_nodes)}
    for u, v in graph.edges.tolist():
        neighbors[u].append(v)
        neighbors[v].append(u)
    return neighbors


def snowball_law(graph: Graph, target: int, fan_out: int, *, restart: bool, any_order: bool = False) -> Law:
    law: Law = defaultdict(Fraction)
    walked = walked_law(graph, target, fan_out, restart=restart, any_order=any_order)
    for (members, _), probability in walked.items():
        law[members] += probability
    return dict(law)


def walked_law(
    graph: Graph, target: int, fan_out: int, *, restart: bool, any_order: bool = False
) -> dict[Walked, Fraction]:
    neighbors = neighbors_of(graph)
    law: dict[Walked, Fraction] = defaultdict(Fraction)

    def grow(members: tuple[int, ...], taken: int, walked: frozenset[frozenset[int]], probability: Fraction) -> None:
        """The first `taken` of `members` have left the queue; the others are in the order in which they joined."""
        if len(members) >= target or (taken == len(members) and not restart):
            law[frozenset(members), walked] += probability
        elif taken == len(members):
            outside = [node for node in range(graph.num_nodes) if node not in members]
            for seed in outside:
                grow((*members, seed), taken, walked, probability / len(outside))
        else:
            waiting = members[taken:] if any_order else members[taken : taken + 1]
            for node in waiting:
                others = tuple(other for other in members[taken:] if other != node)
                around = neighbors[node]
                draws = list(permutations(around, min(fan_out, len(around))))
                for draw in draws:
                    new = [other for other in draw if other not in members][: target - len(members)]
                    along = {frozenset((node, other)) for other in draw if other in members or other in new}
                    share = probability / len(waiting) / len(draws)
                    grow((*members[:taken], node, *others, *new), taken + 1, walked | along, share)

    for seed in range(graph.num_nodes):
        grow((seed,), 0, frozenset(), Fraction(1, graph.num_nodes))
    return dict(law)


def degree_weighted_law(graph: Graph, size: int) -> Law:
    weight = {node: 1 + len(around) for node, around in neighbors_of(graph).items()}
    law: Law = defaultdict(Fraction)

    def draw(members: frozenset[int], probability: Fraction) -> None:
        if len(members) == size:
            law[members] += probability
            return
        left = [node for node in weight if node not in members]
        total = sum(weight[node] for node in left)
        for node in left:
            draw(members | {node}, probability * Fraction(weight[node], total))

    draw(frozenset(), Fraction(1))
    return dict(law)


def random_walk_law(graph: Graph, num_roots: int, walk_length: int) -> Law:
    neighbors = neighbors_of(graph)
    one_walk: Law = defaultdict(Fraction)

    def walk(path: tuple[int, ...], probability: Fraction) -> None:
        around = neighbors[path[-1]]
        if len(path) == walk_length + 1 or not around:
            one_walk[frozenset(path)] += probability
            return
        for node in around:
            walk((*path, node), probability / len(around))

    for root in range(graph.num_nodes):
        walk((root,), Fraction(1, graph.num_nodes))
    law: Law = {frozenset(): Fraction(1)}
    for _ in range(num_roots):
        longer: Law = defaultdict(Fraction)
        for members, probability in law.items():
            for visited, step in one_walk.items():
                longer[members | visited] += probability * step
        law = dict(longer)
    return law


def inclusion_probabilities(law: Law, num_nodes: int) -> list[float]:
    return [float(sum(p for members, p in law.items() if node in members)) for node in range(num_nodes)]


def assert_follows(law: Mapping[Outcome, Fraction], outcomes: Sequence[Outcome]) -> None:
    """A chi-square test against an exact law, with a false alarm rate of one in a million."""
    drawn = Counter(outcomes)
    assert set(drawn) <= set(law), "the sampler drew what is impossible"
    expected = {outcome: float(p) * len(outcomes) for outcome, p in law.items() if p > 0}
    likely = [outcome for outcome, count in expected.items() if count >= 5]
    rare = [outcome for outcome, count in expected.items() if count < 5]
    observed_counts = [drawn[outcome] for outcome in likely] + [sum(drawn[outcome] for outcome in rare)]
    expected_counts = [expected[outcome] for outcome in likely] + [sum(expected[outcome] for outcome in rare)]
    if expected_counts[-1] < 5:
        observed_counts, expected_counts = (
            [*counts[:-2], counts[-2] + counts[-1]] for counts in (observed_counts, expected_counts)
        )
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed_counts, expected_counts, strict=True))
    assert scipy.stats.chi2.sf(statistic, len(expected_counts) - 1) > 1e-6
