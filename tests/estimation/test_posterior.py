"""What a posterior answers beside its quantiles."""

from typing import Any

import numpy as np
import pytest
from quantile_errors import mcse_quantile
from scipy.stats import norm

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import CorrelatedCounts, StrengthPrior, estimate, lower_bound
from bmpaudit.estimation.likelihood import NormalPrior
from bmpaudit.util.errors import InputError


def some_counts(num_constant: int = 0) -> ErrorCounts:
    """Five nodes that leak a little, one that leaks much, and nodes that are always taken for non-members."""
    rows = [(100, 50, 40, 20), (90, 60, 30, 25), (80, 70, 35, 30), (95, 55, 45, 20), (85, 65, 30, 30), (75, 75, 1, 2)]
    rows += [(120, 30, 0, 30)] * num_constant
    out, inside, positives, negatives = np.array(rows).T
    return ErrorCounts.from_arrays(out, inside, positives, negatives, prior_prob=inside / (out + inside))


def without(counts: ErrorCounts, is_left_out: np.ndarray) -> ErrorCounts:
    kept = ~is_left_out
    columns = (counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives, counts.prior_prob)
    out, inside, positives, negatives, prior = (column[kept] for column in columns)
    return ErrorCounts.from_arrays(out, inside, positives, negatives, prior, node=counts.node[kept])


@pytest.mark.parametrize("definition", ["mp", "bmp-r", "bmp-l", "bmp-s"])
def test_influence_is_the_difference_that_leaving_a_node_out_makes(definition: str) -> None:
    counts = some_counts()
    posterior = estimate(counts, definition)
    influence = posterior.influence()
    assert influence.mean == pytest.approx(posterior.mean(), abs=1e-4)
    for k in range(counts.num_nodes):
        rest = estimate(without(counts, np.arange(counts.num_nodes) == k), definition)
        if rest.support_low() == posterior.support_low():
            assert influence.shift[k] == pytest.approx(posterior.mean() - rest.mean(), abs=2e-3)
    assert influence.drivers(1)[0].node == 5
    assert not influence.drivers(1)[0].is_constant


def test_influence_of_constant_nodes() -> None:
    counts = some_counts(num_constant=40)
    posterior = estimate(counts, "mp")
    rest = estimate(without(counts, counts.is_constant), "mp")
    assert posterior.influence().mean_without_constant == pytest.approx(rest.mean(), abs=2e-3)
    assert posterior.influence().is_constant.sum() == 40


def test_status_warns_of_constant_decisions() -> None:
    assert estimate(some_counts(), "mp").status == "exact"
    many = without(some_counts(num_constant=2_000), np.arange(2_006) == 5)
    status = estimate(many, "mp").status
    assert "epsilon is driven by 2,000 nodes whose decision never varies: without them its mean would be" in status
    only = without(many, ~many.is_constant)
    assert "the attack is uninformative" in estimate(only, "mp").status
    assert "the attack is uninformative" in str(estimate(only, "mp"))
    nothing_tried = ErrorCounts.from_arrays([0], [0], [0], [0], 0.5)
    assert estimate(nothing_tried, "mp").status == "exact"


def test_share_of_the_tail_that_is_the_prior() -> None:
    nothing_tried = ErrorCounts.from_arrays([0], [0], [0], [0], 0.5)
    assert estimate(nothing_tried, "mp").tail_prior_share() == pytest.approx(1.0, abs=1e-3)
    # Thousands of nodes that guess hold ε down: the tail is the likelihood's.
    guessing = ErrorCounts.from_arrays(np.full(3_000, 500), 500, 250, 250, 0.5)
    posterior = estimate(guessing, "mp")
    share = posterior.tail_prior_share()
    assert share < 0.5
    # The definition, by independent means: both densities normalised beyond p95, their overlap.
    start = float(posterior.quantile(0.95))
    x = np.linspace(start, start + 30, 200_001)
    tail = posterior.marginal().pdf(x) / 0.05
    prior = norm.pdf(x, scale=np.sqrt(10)) / norm.sf(start, scale=np.sqrt(10))
    assert share == pytest.approx(float(np.minimum(tail, prior).sum() * (x[1] - x[0])), abs=0.02)


def test_probability_above_and_interval_are_those_of_the_distribution() -> None:
    posterior = estimate(some_counts(), "bmp-r")
    interval = posterior.interval(0.8)
    assert posterior.probability_above(interval.high) == pytest.approx(0.1, abs=1e-9)
    assert posterior.probability_above(interval.low) == pytest.approx(0.9, abs=1e-9)
    assert interval.width == interval.high - interval.low


@pytest.mark.parametrize(("definition", "method"), [("mp", "exact"), ("bmp", "exact"), ("bmp", "mhaar")])
def test_samples_follow_the_posterior(definition: Any, method: Any) -> None:
    posterior = estimate(some_counts(), definition, method=method, num_iterations=4_000)
    draws = posterior.sample(20_000, seed=3)
    assert list(draws) == list(posterior.marginals)
    for name, values in draws.items():
        # The share below a quantile has standard error √(p(1-p)/20,000) ≤ 0.0036; bound of five of them.
        for p in (0.1, 0.5, 0.9):
            assert np.mean(values <= posterior.quantile(p, name)) == pytest.approx(p, abs=0.018)
    assert np.array_equal(posterior.sample(5, seed=1)[name], posterior.sample(5, seed=1)[name])
    if posterior.joint is not None:
        correlation = np.corrcoef(draws["epsilon_left"], draws["epsilon_right"])[0, 1]
        joint = posterior.joint
        away = joint.first - posterior.mean("epsilon_left"), joint.second - posterior.mean("epsilon_right")
        variances = [joint.mass.sum(axis=1 - axis) @ away[axis] ** 2 for axis in (0, 1)]
        expected = away[0] @ joint.mass @ away[1] / np.sqrt(variances[0] * variances[1])
        assert correlation == pytest.approx(expected, abs=0.04)


def test_known_posterior_with_unknown_strength() -> None:
    """By independent quadrature of (ε, s), s uniform."""
    counts = ErrorCounts.from_arrays([100], [100], [20], [30], 0.5)
    posterior = estimate(counts, "mp", strength=StrengthPrior())
    epsilon = (1.09387948689547, 1.7607864354290124, 4.674319)
    assert posterior.quantile([0.05, 0.5, 0.95]) == pytest.approx(epsilon, abs=1e-5)
    assert posterior.quantile([0.05, 0.5, 0.95], "strength") == pytest.approx((0.05158, 0.43133, 0.93399), abs=1e-5)


def test_exact_strength_agrees_with_the_chains() -> None:
    counts = ErrorCounts.from_arrays([40, 30], [30, 30], [6, 9], [7, 5], [0.4, 0.5])
    exact = estimate(counts, "bmp-s", strength=StrengthPrior(2, 3))
    chains = estimate(counts, "bmp-s", strength=StrengthPrior(2, 3), method="mhaar", num_iterations=10_000)
    assert chains.run is not None
    for name in ("epsilon", "strength"):
        for p in (0.1, 0.5, 0.9):
            allowed = 4 * mcse_quantile(chains.run.chains(name), p)
            assert float(exact.quantile(p, name)) == pytest.approx(float(chains.quantile(p, name)), abs=allowed)


def test_joint_posterior_with_a_strength_agrees_with_the_chains() -> None:
    counts = ErrorCounts.from_arrays([20], [15], [2], [4], 0.4)
    exact = estimate(counts, "bmp", strength=0.4)
    chains = estimate(counts, "bmp", strength=0.4, method="mhaar", num_iterations=10_000)
    assert chains.run is not None
    for name in ("epsilon_left", "epsilon_right"):
        for p in (0.1, 0.5, 0.9):
            allowed = 4 * mcse_quantile(chains.run.chains(name), p)
            assert float(exact.quantile(p, name)) == pytest.approx(float(chains.quantile(p, name)), abs=allowed)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # ArviZ announces its next version on import
def test_hand_over_to_arviz() -> None:
    exact: Any = estimate(some_counts(), "bmp").to_arviz(num_draws=2_000)
    assert dict(exact.posterior.sizes) == {"chain": 4, "draw": 500}
    assert set(exact.posterior) == {"epsilon_left", "epsilon_right"}
    chains = estimate(some_counts(), "mp", method="mhaar", num_iterations=200)
    assert chains.run is not None
    handed_over: Any = chains.to_arviz()
    assert np.array_equal(handed_over.posterior["epsilon"].to_numpy(), chains.run.chains("epsilon"))


def test_what_counts_prove_is_not_printed_beside_what_is_estimated() -> None:
    """Counts of an audit are those of Algorithm 1, which prove nothing."""
    posterior = estimate(some_counts(), "bmp")
    for side, name in ((posterior.lower_bound.left, "epsilon_left"), (posterior.lower_bound.right, "epsilon_right")):
        assert "≥" not in str(posterior)
        assert "≥" not in posterior._repr_html_()
        assert posterior.proven(name) is side
    proven = estimate(some_counts(), "mp").proven("epsilon")
    assert proven.bound is not None
    assert proven.bound > 0
    with pytest.raises(InputError, match="parameter must be one of epsilon_left, epsilon_right, got 'strength'"):
        posterior.proven("strength")


@pytest.mark.parametrize("definition", ["mp", "bmp-r", "bmp-l", "bmp-s", "bmp"])
def test_nothing_may_be_proven(definition: str) -> None:
    """Not the floor, however large it is."""
    posterior = estimate(without(some_counts(), np.arange(6) == 5), definition)
    for name in posterior.parameter_names:
        assert posterior.proven(name).bound is None
        assert posterior.summary()[name]["proven_if_split"] is None


def test_sampled_priors_weaken_what_is_proven() -> None:
    counts = ErrorCounts.from_arrays([500], [500], [10], [60], 0.4)
    exact, sampled = estimate(counts, "bmp-r"), estimate(counts, "bmp-r", prior_draws=100)
    assert sampled.lower_bound.prior_draws == 100
    assert sampled.proven("epsilon_right").bound == lower_bound(counts, prior_draws=100).right.bound
    assert np.array_equal(exact.quantile([0.05, 0.95]), sampled.quantile([0.05, 0.95]))


def test_a_certain_node_does_not_make_the_bound_infinite() -> None:
    """A node that is in for certain rules out every finite ε_R: it is left out of the estimate and proves nothing."""
    counts = ErrorCounts.from_arrays([100, 50], [100, 50], [20, 5], [30, 5], [0.5, 1.0])
    posterior = estimate(counts, "bmp-r")
    assert posterior.left_out == (1,)
    proven = posterior.proven("epsilon_right")
    assert proven.node == 0
    assert proven.bound == lower_bound(counts).right.bound
    assert proven.bound is not None
    assert proven.bound < np.inf


def test_summary_is_plain_and_complete() -> None:
    summary = estimate(some_counts(num_constant=3), "bmp-r", prior=NormalPrior(1, 4), strength=0.1).summary()
    assert summary["prior"] == "normal, mean 1, variance 4"
    assert (summary["strength"], summary["strength_prior"]) == (0.1, None)
    assert summary["num_constant"] == 3
    assert set(summary["epsilon_right"]) == {"p5", "p50", "p95", "mean", "proven_if_split", "tail_prior_share"}


def test_summary_of_an_estimated_strength_has_its_prior_and_its_posterior() -> None:
    summary = estimate(some_counts(), "mp", strength=StrengthPrior(2, 3)).summary()
    assert summary["strength_prior"] == {"a": 2, "b": 3}
    assert 0 < summary["strength"]["p5"] < summary["strength"]["p50"] < summary["strength"]["p95"] < 1


def test_what_a_posterior_cannot_answer_is_refused() -> None:
    posterior = estimate(some_counts(), "bmp")
    with pytest.raises(InputError, match="parameter must be one of epsilon_left, epsilon_right, got None"):
        posterior.quantile(0.5)
    with pytest.raises(InputError, match="num_draws must be a whole number of at least 1"):
        posterior.sample(0)
    with pytest.raises(InputError, match="correlated counts are for method mhaar"):
        estimate(some_counts(), "mp", correlated=CorrelatedCounts())
    with pytest.raises(InputError, match="strength can be estimated for one-parameter definitions only"):
        estimate(some_counts(), "bmp", strength=StrengthPrior())
