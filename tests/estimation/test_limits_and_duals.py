"""`mp`, `bmp-r`, `bmp-l` and `bmp-s` as limits and special cases of `bmp`, and the duality of its two sides."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import truncnorm

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import NormalPrior, Posterior, estimate
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.util.values import Floats

PROBS = (0.01, 0.05, 0.5, 0.95, 0.99)
PRECISION = 1e-5  # of a posterior's percentiles, as promised
ROWS = np.array([(60, 20, 9, 4), (30, 45, 25, 6), (25, 25, 3, 10)])
LOG_ODDS = np.array([-0.8, 0.5, 0.1])


def error_counts(rows: npt.NDArray[np.int64], log_odds: Floats) -> ErrorCounts:
    num_out, num_in, false_positives, false_negatives = rows.T
    prior_prob = 1 / (1 + np.exp(-log_odds))
    return ErrorCounts.from_arrays(num_out, num_in, false_positives, false_negatives, prior_prob)


def dual(counts: ErrorCounts) -> ErrorCounts:
    """Members and non-members exchanged: (n0, n1, A, B, η) → (n1, n0, B, A, 1/η)."""
    return ErrorCounts.from_arrays(
        num_out=counts.num_in,
        num_in=counts.num_out,
        false_positives=counts.false_negatives,
        false_negatives=counts.false_positives,
        prior_prob=1 - counts.prior_prob,
    )


def assert_same(first: Floats, second: Floats) -> None:
    np.testing.assert_allclose(first, second, rtol=0, atol=PRECISION)


def quantiles(posterior: Posterior, parameter: str | None = None) -> Floats:
    return posterior.quantile(PROBS, parameter)


@pytest.mark.parametrize("free", ["left", "right"])
def test_likelihood_tends_to_that_of_the_other_side_alone(free: str) -> None:
    """What is left of the free side, 1/a or b, falls like e^{-ε}; each node's log L moves by a multiple of it."""
    likelihood = Likelihood(ROWS.astype(np.float64), LOG_ODDS)
    bound = np.linspace(0.9, 5, 9)

    def log_likelihood(epsilon: float) -> Floats:
        other = np.full_like(bound, epsilon)
        return likelihood(other, bound) if free == "left" else likelihood(bound, other)

    limit = log_likelihood(np.inf)
    assert np.abs(log_likelihood(2.0) - limit).max() > 0.01
    for epsilon in (10.0, 15.0):
        assert np.abs(log_likelihood(epsilon) - limit).max() < 1e3 * np.exp(-epsilon)
    assert np.abs(log_likelihood(30.0) - limit).max() < 1e-8


@pytest.mark.parametrize(("one_sided", "sign"), [("bmp-r", 1.0), ("bmp-l", -1.0)])
def test_joint_posterior_tends_to_the_one_sided(one_sided: str, sign: float) -> None:
    """With η = e^{12} and ε around 12, log a = log η + ε_L is about 24: as good as infinite.

    Then ε_R has the posterior of `bmp-r`, and ε_L keeps its prior; with η = e^{-12} the other way round.
    """
    prior = NormalPrior(mean=12.0, variance=10.0)
    counts = error_counts(ROWS[:1], np.array([12.0 * sign]))
    joint, alone = estimate(counts, "bmp", prior=prior), estimate(counts, one_sided, prior=prior)
    sides = ("epsilon_left", "epsilon_right")
    free, bound = sides if one_sided == "bmp-r" else sides[::-1]
    assert_same(quantiles(joint, bound), quantiles(alone))
    assert_same(quantiles(joint, free), truncnorm((-12 - 12) / 10**0.5, np.inf, loc=12, scale=10**0.5).ppf(PROBS))


@pytest.mark.parametrize(("one_sided", "sign"), [("bmp-r", 1.0), ("bmp-l", -1.0)])
def test_symmetric_definition_tends_to_the_one_sided_for_extreme_priors(one_sided: str, sign: float) -> None:
    """ε ≥ log η makes log a = log η + ε at least 2·log η: where η is large, only the right side binds."""
    prior = NormalPrior(mean=10.0, variance=10.0)
    counts = error_counts(ROWS, 10.0 * sign + LOG_ODDS)
    assert_same(quantiles(estimate(counts, "bmp-s", prior=prior)), quantiles(estimate(counts, one_sided, prior=prior)))


def test_mp_is_the_symmetric_definition_with_even_odds() -> None:
    even = error_counts(ROWS, np.zeros(3))
    expected = quantiles(estimate(even, "bmp-s"))
    assert_same(quantiles(estimate(even, "mp")), expected)
    # Whatever the priors are, MP does not ask.
    assert_same(quantiles(estimate(error_counts(ROWS, LOG_ODDS), "mp")), expected)
    assert np.abs(quantiles(estimate(error_counts(ROWS, LOG_ODDS), "bmp-s")) - expected).max() > 0.1


def test_symmetric_definition_is_the_diagonal_of_the_joint() -> None:
    """Its density, relative to that at 3, is the joint one's along ε_L = ε_R."""
    epsilon = np.append(np.linspace(1.2, 8, 12), 3.0)
    log_joint = np.diag(Likelihood(ROWS.astype(np.float64), LOG_ODDS).on_grid(epsilon, epsilon)) - epsilon**2 / 20
    (marginal,) = estimate(error_counts(ROWS, LOG_ODDS), "bmp-s").marginals.values()
    density = marginal.pdf(epsilon)
    np.testing.assert_allclose(density / density[-1], np.exp(log_joint - log_joint[-1]), rtol=0, atol=1e-7)


def test_joint_density_is_the_likelihood_times_both_priors() -> None:
    """Between the points where its logarithm was computed it is a polynomial; percentiles are promised, not values."""
    joint = estimate(error_counts(ROWS, LOG_ODDS), "bmp").joint
    assert joint is not None
    log_prior = NormalPrior()(joint.first)[:, None] + NormalPrior()(joint.second)[None, :]
    log_density = Likelihood(ROWS.astype(np.float64), LOG_ODDS).on_grid(joint.first, joint.second) + log_prior
    expected = np.exp(log_density - joint.first_marginal.log_mass)
    np.testing.assert_allclose(joint.values, expected, rtol=0, atol=1e-3 * expected.max())
    assert (joint.first_weight @ expected @ joint.second_weight) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("name", "sign"), [("bmp-r", 1.0), ("bmp-l", -1.0)])
@pytest.mark.parametrize("shift", [-3.0, 2.0])
def test_one_sided_posterior_moves_along_with_the_odds(name: str, sign: float, shift: float) -> None:
    """`bmp-r` depends on ε_R - log η alone, `bmp-l` on ε_L + log η: all odds and the prior's mean move together."""
    here = estimate(error_counts(ROWS, LOG_ODDS), name, prior=NormalPrior(0.0, 4.0))
    there = estimate(error_counts(ROWS, LOG_ODDS + shift), name, prior=NormalPrior(sign * shift, 4.0))
    assert_same(quantiles(there), quantiles(here) + sign * shift)


@pytest.mark.parametrize(
    ("name", "mirrored"), [("bmp-r", "bmp-l"), ("bmp-l", "bmp-r"), ("mp", "mp"), ("bmp-s", "bmp-s")]
)
def test_duality_of_one_parameter(name: str, mirrored: str) -> None:
    counts = error_counts(ROWS, LOG_ODDS)
    assert_same(quantiles(estimate(counts, name)), quantiles(estimate(dual(counts), mirrored)))


def test_duality_of_two_parameters() -> None:
    counts = error_counts(ROWS[:2], LOG_ODDS[:2])
    here, there = estimate(counts, "bmp"), estimate(dual(counts), "bmp")
    assert np.abs(quantiles(here, "epsilon_left") - quantiles(here, "epsilon_right")).max() > 0.1
    assert_same(quantiles(here, "epsilon_left"), quantiles(there, "epsilon_right"))
    assert_same(quantiles(here, "epsilon_right"), quantiles(there, "epsilon_left"))


@pytest.mark.parametrize("name", ["mp", "bmp-r", "bmp-l", "bmp-s"])
def test_turning_decisions_round_changes_nothing(name: str) -> None:
    flipped = np.column_stack([ROWS[:, :2], ROWS[:, :2] - ROWS[:, 2:]])
    here, there = (estimate(error_counts(rows, LOG_ODDS), name) for rows in (ROWS, flipped))
    assert_same(quantiles(here), quantiles(there))
