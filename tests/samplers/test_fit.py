"""Memberships that come from a sampler pass; those that do not are found out, with figures."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.stats

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Sampler
from bmpaudit.samplers import (
    Bernoulli,
    DegreeWeighted,
    MembershipFit,
    Priors,
    RandomWalk,
    Snowball,
    Stratified,
    Uniform,
    check_memberships,
    draw_memberships,
    prior_probabilities,
)
from bmpaudit.samplers import fit as fit_module
from bmpaudit.samplers.fit import edges_inside
from bmpaudit.util.errors import InputError
from bmpaudit.util.matrices import PackedFlags
from bmpaudit.util.values import Flags, Ints


@pytest.fixture(scope="module")
def demo() -> Graph:
    return datasets.load("demo")


@cache
def priors_of(graph: Graph, sampler: Sampler) -> Priors:
    return prior_probabilities(graph, sampler, num_draws=20_000)


def check(memberships: Any, graph: Graph, sampler: Any, **options: Any) -> MembershipFit:
    return check_memberships(memberships, graph, sampler, priors_of(graph, sampler), **options)


def shuffled_within_samples(memberships: Flags) -> Flags:
    """Samples of the same sizes, drawn uniformly."""
    return np.random.default_rng(0).permuted(memberships, axis=1)


@pytest.mark.parametrize("num_samples", [1, 2, 16, 200])
@pytest.mark.parametrize(
    "sampler", [Uniform(), Bernoulli(), Stratified(), DegreeWeighted(), Snowball(), RandomWalk()], ids=str
)
def test_right_memberships_fit(sampler: Sampler, num_samples: int, demo: Graph) -> None:
    fit = check(draw_memberships(demo, sampler, num_samples, seed=3), demo, sampler)
    assert fit.fits
    assert fit.p_value > 0.001


class FewAtOnce(PackedFlags):
    """Refuses to be read as a whole."""

    def _read(self, rows: Ints, nodes: slice | Ints) -> Flags:
        assert len(rows) <= 7
        return super()._read(rows, nodes)


@pytest.mark.parametrize("sampler", [Snowball(), Uniform()], ids=str)
def test_a_table_that_is_not_in_memory(sampler: Sampler, demo: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_module, "_NUMBERS_AT_ONCE", 7 * demo.num_nodes)
    monkeypatch.setattr("bmpaudit.util.matrices.MAX_BLOCK", 7 * demo.num_nodes)
    memberships = draw_memberships(demo, sampler, 30, seed=3)
    memberships[1] = memberships[0]
    table = FewAtOnce(*memberships.shape)
    table[:] = memberships
    assert check(table, demo, sampler, num_references=100) == check(memberships, demo, sampler, num_references=100)
    with pytest.raises(InputError, match=r"shape \(num_samples, 1000\), got \(30, 999\)"):
        check(PackedFlags(30, 999), demo, sampler)


@pytest.mark.parametrize("num_samples", [16, 150])
@pytest.mark.parametrize("sampler", [Snowball(), Bernoulli()], ids=str)
def test_false_alarms_are_as_rare_as_promised(sampler: Sampler, num_samples: int, demo: Graph) -> None:
    """Each test by itself keeps its level, here 0.1; their combination raises no alarm at 0.001 in 100 trials."""
    priors = prior_probabilities(demo, sampler, num_draws=20_000)
    p_values = []
    for seed in range(100):
        memberships = draw_memberships(demo, sampler, num_samples, seed=seed)
        fit = check_memberships(memberships, demo, sampler, priors, seed=1_000 + seed, num_references=300)
        assert fit.p_value == min(1, 5 * min(test.p_value for test in fit.tests))
        p_values.append([test.p_value for test in fit.tests])
    assert ((np.array(p_values) <= 0.1).sum(axis=0) <= scipy.stats.binom.isf(1e-5, 100, 0.1)).all()
    assert (5 * np.min(p_values, axis=1) <= 0.001).sum() <= scipy.stats.binom.isf(1e-4, 100, 0.001)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_samples", [16, 100])
def test_misfits_are_found(num_samples: int, seed: int, demo: Graph) -> None:
    uniform = draw_memberships(demo, Uniform(), num_samples, seed)
    snowball = draw_memberships(demo, Snowball(), num_samples, seed)
    half = num_samples // 2
    expected = [
        (draw_memberships(demo, Uniform(0.5), num_samples, seed), Uniform(), "hold 50.0 % of the nodes"),
        (draw_memberships(demo, Snowball(0.5), num_samples, seed), Snowball(), "% of the nodes"),
        (shuffled_within_samples(snowball), Snowball(), "edges on average"),
        (snowball, Uniform(), "edges on average"),
        (np.tile(uniform[:half], (2, 1)), Uniform(), f"{half} of {num_samples} samples repeat another one exactly"),
        (np.repeat(snowball[:half], 2, axis=0), Snowball(), "samples repeat another one exactly"),
        (np.tile(snowball[:1], (num_samples, 1)), Snowball(), "samples repeat another one exactly"),
    ]
    for memberships, sampler, message in expected:
        fit = check(memberships, demo, sampler, seed=seed)
        assert not fit.fits, message
        assert fit.p_value <= 0.001
        assert message in fit.message


def test_a_single_wrong_node_is_named(demo: Graph) -> None:
    named = Graph.from_edges(
        demo.edges, demo.features, demo.labels, node_names=[f"paper {i}" for i in range(demo.num_nodes)]
    )
    memberships = draw_memberships(named, Bernoulli(), 50, seed=0)
    memberships[:, 77] = True
    fit = check(memberships, named, Bernoulli())
    assert not fit.fits
    assert fit.message == "node 'paper 77' is in 50 of 50 samples; bernoulli draws it with probability 0.25"


def test_a_node_that_must_be_in_and_is_not_is_found() -> None:
    graph = Graph.from_edges([(0, 1)], np.ones((5, 1)), [0, 0, 0, 0, 1])  # the last node's class has no other
    memberships = draw_memberships(graph, Stratified(0.5), 4, seed=0)
    assert check(memberships, graph, Stratified(0.5)).fits
    memberships[0] = [True, True, True, False, False]  # the size is right
    fit = check(memberships, graph, Stratified(0.5))
    assert (fit.fits, fit.p_value) == (False, 0)
    assert fit.message == "node 4 is in 3 of 4 samples; stratified draws it with probability 1"


def test_many_small_deviations_add_up(demo: Graph) -> None:
    """Class 0 a little more often, in samples of the right size without edges: no single node stands out."""
    rng = np.random.default_rng(1)
    graph = Graph.from_edges(np.empty((0, 2), dtype=int), demo.features, demo.labels)
    weights = np.where(graph.labels == 0, 1.6, 1.0)
    memberships = np.zeros((100, graph.num_nodes), dtype=bool)
    for row in memberships:
        row[rng.choice(graph.num_nodes, 250, replace=False, p=weights / weights.sum())] = True
    fit = check(memberships, graph, Uniform())
    assert not fit.fits
    assert re.fullmatch(r"two samples share \d+\.\d nodes on average; two samples of uniform share 62\.5", fit.message)


def test_repeats_that_the_sampler_makes_itself_are_no_misfit() -> None:
    """On pairs of nodes, snowball can only draw one pair or another."""
    graph = Graph.from_edges([(2 * i, 2 * i + 1) for i in range(10)], np.ones((20, 1)), [0, 1] * 10)
    memberships = draw_memberships(graph, Snowball(), 100, seed=0)
    assert len(np.unique(memberships, axis=0)) == 10
    assert check(memberships, graph, Snowball()).fits


def test_a_sampler_in_python_is_checked_with_fewer_references(demo: Graph) -> None:
    num_calls = 0

    def python_uniform(graph: Graph, rng: np.random.Generator) -> Any:
        nonlocal num_calls
        num_calls += 1
        return rng.choice(graph.num_nodes, 250, replace=False)

    priors = prior_probabilities(demo, python_uniform, num_draws=1_000)
    num_calls = 0
    assert check_memberships(draw_memberships(demo, Uniform(), 16, seed=0), demo, python_uniform, priors).fits
    assert num_calls == 400
    fit = check_memberships(draw_memberships(demo, Uniform(0.5), 16, seed=0), demo, python_uniform, priors)
    assert not fit.fits
    assert "python_uniform draws 25.0 % of the nodes (250)" in fit.message


def test_the_check_is_reproducible(demo: Graph) -> None:
    memberships = draw_memberships(demo, Snowball(), 20, seed=0)
    assert check(memberships, demo, Snowball(), seed=4) == check(memberships, demo, Snowball(), seed=4, num_threads=1)


def test_zeros_and_ones_are_memberships_too(demo: Graph) -> None:
    memberships = draw_memberships(demo, Uniform(), 16, seed=0)
    assert check(memberships.astype(int), demo, Uniform()) == check(memberships, demo, Uniform())


@pytest.mark.parametrize(
    ("memberships", "message"),
    [
        (np.ones(1000, dtype=bool), r"memberships must have shape \(num_samples, 1000\), got \(1000,\)"),
        (np.ones((4, 999), dtype=bool), r"memberships must have shape \(num_samples, 1000\), got \(4, 999\)"),
        (np.ones((0, 1000), dtype=bool), r"memberships must have shape \(num_samples, 1000\), got \(0, 1000\)"),
        (np.full((4, 1000), 0.5), "memberships must be True or False, or 1 or 0"),
    ],
)
def test_what_are_not_memberships_raises(memberships: Any, message: str, demo: Graph) -> None:
    with pytest.raises(InputError, match=message):
        check(memberships, demo, Uniform())


def test_edges_are_counted_in_parts(demo: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    memberships = draw_memberships(demo, Snowball(), 7, seed=0)
    expected = [demo.adjacency[row][:, row].sum() / 2 for row in map(np.flatnonzero, memberships)]
    monkeypatch.setattr("bmpaudit.samplers.fit._NUMBERS_AT_ONCE", 2 * demo.num_edges)
    assert edges_inside(memberships, demo).tolist() == expected
