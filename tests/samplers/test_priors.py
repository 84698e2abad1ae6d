import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Sampler
from bmpaudit.samplers import (
    Bernoulli,
    Priors,
    RandomWalk,
    Snowball,
    Stratified,
    Uniform,
    prior_probabilities,
)
from bmpaudit.util.errors import InputError


@pytest.fixture(scope="module")
def cora() -> Graph:
    return datasets.load("cora")


@pytest.mark.parametrize("sampler", [Uniform(0.25), Bernoulli(0.1), Stratified(0.5), RandomWalk(0.25)], ids=str)
def test_closed_forms_agree_with_the_frequency_of_draws(sampler: Sampler, cora: Graph) -> None:
    exact = prior_probabilities(cora, sampler)
    estimate = prior_probabilities(cora, sampler, exact=False)
    assert exact.is_exact
    assert not exact.standard_error.any()
    assert estimate.num_draws == 100_000
    z = (estimate.prob - exact.prob) / np.sqrt(exact.prob * (1 - exact.prob) / estimate.num_draws)
    assert np.abs(z).max() < scipy.stats.norm.isf(1e-6 / cora.num_nodes)


def test_standard_errors_are_binomial_and_never_zero(cora: Graph) -> None:
    priors = prior_probabilities(cora, Snowball(0.25), num_draws=2_000)
    usual = np.sqrt(priors.prob * (1 - priors.prob) / 2_000)
    common = (priors.prob > 0.1) & (priors.prob < 0.9)
    assert priors.standard_error[common] == pytest.approx(usual[common], rel=0.01)
    assert (priors.standard_error > 0).all()
    assert (priors.prob == 0).any()


def test_a_node_that_is_always_drawn_has_infinite_odds() -> None:
    graph = Graph.from_edges([(0, 1)], np.ones((3, 1)), [0, 0, 1])
    priors = prior_probabilities(graph, Stratified(0.5))
    assert priors.odds.tolist() == [1.0, 1.0, np.inf]
    assert priors.floor.right == np.inf


def test_confidence_bounds_hold_for_all_nodes_together(cora: Graph) -> None:
    exact = prior_probabilities(cora, RandomWalk(0.25))
    assert exact.confidence_bounds() == (exact.prob, exact.prob)
    misses = 0
    for seed in range(40):
        low, high = prior_probabilities(
            cora, RandomWalk(0.25), num_draws=300, seed=seed, exact=False
        ).confidence_bounds(0.9)
        misses += bool(((exact.prob < low) | (exact.prob > high)).any())
    assert misses <= scipy.stats.binom.isf(1e-6, 40, 0.1)


@pytest.mark.parametrize("exact", [True, False])
def test_priors_survive_a_table(exact: bool, cora: Graph) -> None:
    sampler = Uniform(0.25) if exact else Snowball(0.25)
    priors = prior_probabilities(cora, sampler, num_draws=1_000)
    frame = priors.to_frame()
    assert list(frame) == ["node", "prior_prob", "standard_error", "num_draws", "num_pilot"]
    restored = Priors.from_frame(sampler, frame)
    assert (restored.sampler, restored.num_draws, restored.is_exact) == (sampler, 0 if exact else 1_000, exact)
    for name in ("prob", "standard_error", "pilot_counts"):
        assert np.array_equal(getattr(restored, name), getattr(priors, name))
    assert restored.floor == priors.floor


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="num_pilot"), "must have the columns node, .*, got no num_pilot"),
        (lambda frame: frame.assign(prior_prob=1.5), r"prior_prob must be in \[0, 1\]"),
        (lambda frame: frame.assign(prior_prob=np.nan), r"prior_prob must be in \[0, 1\]"),
        (lambda frame: frame.assign(prior_prob="high"), "must hold numbers"),
        (lambda frame: frame.assign(num_draws=range(len(frame))), "num_draws must be the same whole number"),
        (lambda frame: frame.iloc[::-1], "must list the nodes 0, 1, 2, … in this order"),
        (lambda frame: frame.iloc[:0], "must list the nodes"),
        (lambda frame: frame.assign(num_pilot=-1), "num_pilot must be between 0 and 32"),
        (lambda frame: frame.assign(num_pilot=33), "num_pilot must be between 0 and 32"),
    ],
)
def test_a_damaged_table_raises(change: object, message: str) -> None:
    frame = prior_probabilities(datasets.load("demo"), Snowball(0.25), num_draws=200).to_frame()
    damaged: pd.DataFrame = change(frame)  # type: ignore[operator]
    with pytest.raises(InputError, match=message):
        Priors.from_frame(Snowball(0.25), damaged)


def test_priors_print_where_they_come_from() -> None:
    graph = datasets.load("demo")
    assert (
        repr(prior_probabilities(graph, Uniform(0.25))) == "Priors(sampler=uniform, 1,000 nodes, 0.25 to 0.25, exact)"
    )
    text = repr(prior_probabilities(graph, Snowball(0.25), num_draws=2_000))
    assert text.startswith("Priors(sampler=snowball, 1,000 nodes, 0.0")
    assert ", from 2,000 draws, standard error up to 0.011)" in text
