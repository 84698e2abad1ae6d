"""Each sampler keeps the formal guarantees in its docstring."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse.csgraph
import scipy.stats
from exact_laws import (
    Law,
    assert_follows,
    degree_weighted_law,
    inclusion_probabilities,
    random_walk_law,
    snowball_law,
    tiny_graph,
)

from bmpaudit import datasets, registry, samplers
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Sampler
from bmpaudit.samplers import (
    Bernoulli,
    DegreeWeighted,
    RandomWalk,
    Snowball,
    Stratified,
    Uniform,
    draw_memberships,
)
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import stream

ALL_SAMPLERS: list[Sampler] = [
    Uniform(0.25),
    Bernoulli(0.25),
    Stratified(0.25),
    DegreeWeighted(0.25),
    Snowball(0.25),
    Snowball(0.5, fan_out=2, restart=True),
    Snowball(0.5, fan_out=2, any_order=True),
    RandomWalk(num_roots=100, walk_length=3),
]


@pytest.fixture(scope="module")
def cora() -> Graph:
    return datasets.load("cora")


def assert_drawn_from(law: Law, sampler: Sampler, graph: Graph, num_samples: int = 100_000) -> None:
    """Whole samples follow their exact law."""
    memberships = draw_memberships(graph, sampler, num_samples, seed=20)
    assert_follows(law, [frozenset(np.flatnonzero(row).tolist()) for row in memberships])


@pytest.mark.parametrize("sampler", ALL_SAMPLERS, ids=str)
def test_a_batch_equals_samples_drawn_one_by_one(sampler: Sampler, cora: Graph) -> None:
    """Native streams are bit-identical to NumPy's Philox."""
    batch = draw_memberships(cora, sampler, 20, seed=7, first=3)
    for row, flags in enumerate(batch):
        assert np.array_equal(np.flatnonzero(flags), sampler.sample(cora, stream(7, 3 + row)))


@pytest.mark.parametrize("sampler", ALL_SAMPLERS, ids=str)
def test_sample_j_depends_only_on_seed_and_j(sampler: Sampler, cora: Graph) -> None:
    whole = draw_memberships(cora, sampler, 30, seed=1, num_threads=1)
    assert np.array_equal(whole, draw_memberships(cora, sampler, 30, seed=1, num_threads=7))
    assert np.array_equal(whole[11:20], draw_memberships(cora, sampler, 9, seed=1, first=11))
    assert not np.array_equal(whole, draw_memberships(cora, sampler, 30, seed=2))
    assert len({row.tobytes() for row in whole}) == 30


@pytest.mark.parametrize("sampler", ALL_SAMPLERS, ids=str)
def test_samples_are_sorted_distinct_ids_with_any_generator(sampler: Sampler, cora: Graph) -> None:
    nodes = sampler.sample(cora, np.random.default_rng(5))
    assert nodes.dtype == np.int64
    assert (np.diff(nodes) > 0).all()
    assert nodes[0] >= 0
    assert nodes[-1] < cora.num_nodes
    assert np.array_equal(nodes, sampler.sample(cora, np.random.default_rng(5)))


def test_sampling_advances_the_generator(cora: Graph) -> None:
    rng = np.random.default_rng(5)
    first, second = Uniform(0.25).sample(cora, rng), Uniform(0.25).sample(cora, rng)
    assert not np.array_equal(first, second)


def test_uniform_draws_all_sets_of_its_size_equally_often() -> None:
    graph = tiny_graph()
    sets = list(combinations(range(6), 3))
    assert_drawn_from({frozenset(s): Fraction(1, len(sets)) for s in sets}, Uniform(0.5), graph)


def test_uniform_size_is_the_floor_of_the_decimal_fraction(cora: Graph) -> None:
    assert (draw_memberships(cora, Uniform(0.25), 50, seed=0).sum(axis=1) == 677).all()
    hundred = Graph.from_edges([(0, 1)], np.ones((100, 1)), [0, 1] * 50)
    assert len(Uniform(0.29).sample(hundred, stream(0, 0))) == 29


def test_bernoulli_memberships_are_independent() -> None:
    graph = tiny_graph()
    law = {
        frozenset(members): Fraction(3, 10) ** size * Fraction(7, 10) ** (6 - size)
        for size in range(7)
        for members in combinations(range(6), size)
    }
    assert_drawn_from(law, Bernoulli(0.3), graph)


def test_stratified_draws_the_same_share_of_every_class() -> None:
    labels = [0] * 10 + [1] * 7 + [2]
    graph = Graph.from_edges([(0, 1)], np.ones((18, 1)), labels)
    memberships = draw_memberships(graph, Stratified(0.3), 200, seed=0)
    for label, size in ((0, 3), (1, 2), (2, 1)):  # floor(0.3 · 1) is 0, but every class is present
        assert (memberships[:, np.array(labels) == label].sum(axis=1) == size).all()
    assert Stratified(0.3).exact_priors(graph).tolist() == [0.3] * 10 + [2 / 7] * 7 + [1.0]


def test_stratified_draws_uniformly_within_and_independently_between_classes() -> None:
    graph = tiny_graph()  # classes {0, 2, 4}, {1, 3}, {5}
    law = {frozenset({a, b, 5}): Fraction(1, 6) for a in (0, 2, 4) for b in (1, 3)}
    assert_drawn_from(law, Stratified(0.5), graph)


def test_stratified_skips_a_class_without_nodes() -> None:
    graph = Graph.from_edges([(0, 1)], np.ones((4, 1)), [0, 0, 2, 2], class_names=["a", "b", "c"])
    assert Stratified(0.5).exact_priors(graph).tolist() == [0.5] * 4
    assert (draw_memberships(graph, Stratified(0.5), 10, seed=0).sum(axis=1) == 2).all()


def test_degree_weighted_follows_its_exact_law() -> None:
    graph = tiny_graph()
    assert_drawn_from(degree_weighted_law(graph, 3), DegreeWeighted(0.5), graph)


def test_degree_weighted_prior_grows_with_the_degree(cora: Graph) -> None:
    priors = samplers.prior_probabilities(cora, DegreeWeighted(0.25), num_draws=20_000)
    by_degree = [priors.prob[cora.degrees == degree].mean() for degree in range(1, 8)]
    assert (np.diff(by_degree) > 0).all()
    leaves = priors.prob[cora.degrees == 1]
    z = (leaves - leaves.mean()) / priors.standard_error[cora.degrees == 1]
    assert scipy.stats.chi2.sf((z**2).sum(), len(z) - 1) > 1e-6, "nodes of equal degree have equal priors"


@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("fraction", "target"), [(0.5, 3), (0.7, 4), (0.99, 5)])
@pytest.mark.parametrize("fan_out", [1, 2, 5])
def test_snowball_follows_its_exact_law(
    fraction: float, target: int, fan_out: int, restart: bool, any_order: bool
) -> None:
    graph = tiny_graph()
    law = snowball_law(graph, target, fan_out, restart=restart, any_order=any_order)
    assert sum(law.values()) == 1
    assert_drawn_from(law, Snowball(fraction, fan_out, restart, any_order), graph)


def test_a_snowball_of_any_order_follows_its_exact_law_where_the_order_matters() -> None:
    edges = [(0, 1), (0, 4), (0, 5), (1, 2), (1, 5), (2, 3), (3, 6), (4, 6)]
    graph = Graph.from_edges(edges, [[1.0]] * 7, [0, 1, 0, 1, 0, 1, 0])
    laws = [snowball_law(graph, 5, 2, restart=False, any_order=any_order) for any_order in (False, True)]
    assert max(abs(laws[0][members] - laws[1][members]) for members in laws[0]) > 0.015  # on many graphs they agree
    for any_order, law in enumerate(laws):
        assert_drawn_from(law, Snowball(0.72, 2, any_order=bool(any_order)), graph)


def test_snowball_samples_are_connected_and_do_not_exceed_the_target(cora: Graph) -> None:
    components, component = scipy.sparse.csgraph.connected_components(cora.adjacency)
    sizes = np.bincount(component)
    assert components == 78
    short = 0
    for flags in draw_memberships(cora, Snowball(0.25), 300, seed=3):
        nodes = np.flatnonzero(flags)
        within, _ = scipy.sparse.csgraph.connected_components(cora.adjacency[nodes][:, nodes])
        assert within == 1
        assert 1 <= len(nodes) <= 677
        if sizes[component[nodes[0]]] < 677:  # a small component limits its samples
            short += 1
            assert len(nodes) <= sizes[component[nodes[0]]]
    assert short > 0, "Cora has 77 small components, which hold one node in twelve"


def test_snowball_with_restart_has_exactly_the_target_size(cora: Graph) -> None:
    assert (draw_memberships(cora, Snowball(0.25, restart=True), 300, seed=3).sum(axis=1) == 677).all()


def test_snowball_priors_are_at_least_one_in_n(cora: Graph) -> None:
    priors = samplers.prior_probabilities(cora, Snowball(0.25))
    assert (priors.prob + 5 * priors.standard_error > 1 / cora.num_nodes).all()
    assert (priors.prob > 0).all()


@pytest.mark.parametrize(("num_roots", "walk_length"), [(1, 1), (1, 3), (2, 2), (3, 1)])
def test_random_walk_follows_its_exact_law(num_roots: int, walk_length: int) -> None:
    graph = tiny_graph()
    law = random_walk_law(graph, num_roots, walk_length)
    sampler = RandomWalk(num_roots=num_roots, walk_length=walk_length)
    assert sampler.exact_priors(graph) == pytest.approx(inclusion_probabilities(law, 6), abs=1e-14)
    assert max(len(members) for members in law) <= num_roots * (walk_length + 1)
    assert_drawn_from(law, sampler, graph)


def test_a_node_that_every_walk_visits_has_prior_one() -> None:
    pair = Graph.from_edges([(0, 1)], [[1.0], [1.0]], [0, 1])
    assert RandomWalk(num_roots=2, walk_length=1).exact_priors(pair).tolist() == [1.0, 1.0]


def test_the_number_of_walks_follows_from_the_fraction_unless_given(cora: Graph) -> None:
    assert RandomWalk(0.25).num_walks(cora) == 226  # round(0.25 · 2,708 / 3)
    assert RandomWalk(0.1, walk_length=4).num_walks(cora) == 54
    assert RandomWalk(0.001).num_walks(tiny_graph()) == 1
    assert RandomWalk(0.25, num_roots=7).num_walks(cora) == 7
    largest = draw_memberships(cora, RandomWalk(0.25), 100, seed=0).sum(axis=1).max()
    assert 0.15 * cora.num_nodes < largest <= 0.25 * cora.num_nodes + 1


@pytest.mark.parametrize("name", registry.ENTRIES[registry.SAMPLER])
def test_every_sampler_is_built_by_name_with_a_quarter_of_the_nodes(name: str) -> None:
    sampler = registry.build(registry.SAMPLER, name)
    assert isinstance(sampler, Sampler)
    assert sampler == registry.build(registry.SAMPLER, {"name": name, "train_fraction": 0.25})
    assert registry.label(registry.SAMPLER, sampler) == name
    help_texts = registry.field_help(type(sampler))
    assert list(help_texts) == [field.name for field in dataclasses.fields(sampler)]  # type: ignore[arg-type]
    assert max(map(len, help_texts.values())) <= 80


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(1.5), r"train_fraction must be in \(0, 1\), got train_fraction=1.5"),
        (lambda: Bernoulli(0.0), r"train_fraction must be in \(0, 1\), got train_fraction=0.0"),
        (lambda: Stratified(float("nan")), r"train_fraction must be in \(0, 1\), got train_fraction=nan"),
        (lambda: DegreeWeighted(-1), r"train_fraction must be in \(0, 1\), got train_fraction=-1"),
        (lambda: Snowball(0.25, fan_out=0), "fan_out must be a whole number of at least 1, got fan_out=0"),
        (lambda: Snowball(1.0), r"train_fraction must be in \(0, 1\), got train_fraction=1.0"),
        (lambda: RandomWalk(2), r"train_fraction must be in \(0, 1\), got train_fraction=2"),
        (lambda: RandomWalk(num_roots=0), "num_roots must be a whole number of at least 1, got num_roots=0"),
        (lambda: RandomWalk(walk_length=0), "walk_length must be a whole number of at least 1, got walk_length=0"),
    ],
)
def test_invalid_settings_raise(make: Callable[[], Sampler], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("sampler", [Uniform(0.1), DegreeWeighted(0.1), Snowball(0.1)], ids=str)
def test_a_fraction_below_one_node_raises(sampler: Sampler) -> None:
    with pytest.raises(InputError, match=r"train_fraction=0.1 of 6 nodes is less than one node"):
        sampler.sample(tiny_graph(), stream(0, 0))
