"""Simulation-based calibration of the exact posteriors (Talts et al. 2018).

If ε comes from the prior restricted to the support, (α, β) from the uniform law on R, and the counts from binomials,
then the posterior's CDF at the true ε is uniform, and stays so given anything that is computed from the counts. The
second part matters: a posterior that ignores the data is uniform over all simulations together, but not given them.

The law of the simulated data is written out here from the paper's formulas, without the code under test. Each bound is
that of a test that alarms falsely with probability `FALSE_ALARM`. (MHAAR has its own calibration in test_mhaar.)
"""

from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import Posterior, estimate
from bmpaudit.util.values import Floats

Ints = npt.NDArray[np.int64]
FALSE_ALARM = 1e-4
ONE_PARAMETER: tuple[str, ...] = ("mp", "bmp-r", "bmp-l", "bmp-s")
PRIOR_STD = np.sqrt(10)


def from_prior(low: float, size: int, rng: np.random.Generator) -> Floats:
    """N(0, variance 10) on (low, ∞)."""
    law = scipy.stats.truncnorm(low / PRIOR_STD, np.inf, scale=PRIOR_STD)
    return np.asarray(law.ppf(rng.uniform(size=size)))


def true_epsilons(name: str, log_odds: Floats, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draws of (ε_L, ε_R), ∞ where the definition has no bound."""
    infinite = np.full(size, np.inf)
    low_left, low_right = float((-log_odds).max()), float(log_odds.max())
    if name == "bmp":
        return from_prior(low_left, size, rng), from_prior(low_right, size, rng)
    if name == "bmp-r":
        return infinite, from_prior(low_right, size, rng)
    if name == "bmp-l":
        return from_prior(low_left, size, rng), infinite
    both = from_prior(max(low_left, low_right), size, rng)
    return both, both


def uniform_on_region(log_odds: Floats, left: Floats, right: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """(α, β), each of shape (size, K): u·P1 + v·P2 in the coordinates (1-β, α), divided through by a."""
    inverse_a = np.exp(-log_odds[None, :] - left[:, None])
    b = np.exp(log_odds[None, :] - right[:, None])
    u, v = rng.uniform(size=(2, *b.shape))
    first, second = u * (1 - b) / (1 - b * inverse_a), v * (1 - inverse_a) / (1 - b * inverse_a)
    alpha, detected = first + second * b, first * inverse_a + second
    return np.clip(alpha, 0, 1), np.clip(1 - detected, 0, 1)


def simulate(
    name: str, trials: Ints, log_odds: Floats, size: int, rng: np.random.Generator
) -> tuple[dict[str, Floats], Ints]:
    """True parameters by name, and counts (n0, n1, A, B), shape (size, K, 4)."""
    used = np.zeros_like(log_odds) if name == "mp" else log_odds
    left, right = true_epsilons(name, used, size, rng)
    alpha, beta = uniform_on_region(used, left, right, rng)
    errors = np.stack([rng.binomial(trials[:, 0], alpha), rng.binomial(trials[:, 1], beta)], axis=2)
    counts = np.concatenate([np.broadcast_to(trials, errors.shape), errors], axis=2)
    if name == "bmp":
        return {"epsilon_left": left, "epsilon_right": right}, counts
    parameter = {"mp": "epsilon", "bmp-s": "epsilon", "bmp-r": "epsilon_right", "bmp-l": "epsilon_left"}[name]
    return {parameter: np.minimum(left, right)}, counts


def posterior_of(counts: Ints, log_odds: Floats, name: str) -> Posterior:
    num_out, num_in, false_positives, false_negatives = counts.T
    prior_prob = 1 / (1 + np.exp(-log_odds))
    return estimate(ErrorCounts.from_arrays(num_out, num_in, false_positives, false_negatives, prior_prob), name)


def assert_uniform(ranks: Floats) -> None:
    assert scipy.stats.kstest(ranks, "uniform").pvalue > FALSE_ALARM


def assert_uniform_given_outcome(ranks: Floats, outcome: Ints, num_bins: int = 8) -> None:
    """Chi-square of the ranks in bins, summed over the outcomes that are frequent enough for it."""
    statistic, degrees = 0.0, 0
    for number in np.unique(outcome):
        own = ranks[outcome == number]
        expected = len(own) / num_bins
        if expected >= 5:
            observed = np.histogram(own, bins=num_bins, range=(0, 1))[0]
            statistic += float(((observed - expected) ** 2 / expected).sum())
            degrees += num_bins - 1
    assert degrees > 3 * num_bins
    assert scipy.stats.chi2.sf(statistic, degrees) > FALSE_ALARM


def ranks_of_all_outcomes(
    name: str, trials: Ints, log_odds: Floats, size: int, seed: int
) -> tuple[dict[str, Floats], Ints]:
    """CDF at the truth of many simulations with few possible outcomes, each of which is estimated once."""
    truth, counts = simulate(name, trials, log_odds, size, np.random.default_rng(seed))
    flipped = counts.copy()
    flipped[:, :, 2:] = counts[:, :, :2] - counts[:, :, 2:]
    # A flip leaves the likelihood as it is (identity 1): one of the two stands for both.
    is_second = 2 * counts[:, :, 2] + counts[:, :, 3] > 2 * flipped[:, :, 2] + flipped[:, :, 3]
    counts = np.where(is_second[:, :, None], flipped, counts)
    distinct, outcome = np.unique(counts, axis=0, return_inverse=True)
    outcome = outcome.ravel()
    ranks = {parameter: np.empty(size) for parameter in truth}
    for number, row in enumerate(distinct):
        found = posterior_of(row, log_odds, name)
        for parameter, values in truth.items():
            own = outcome == number
            ranks[parameter][own] = found.marginals[parameter].cdf(values[own])
    return ranks, cast(Ints, outcome)


@pytest.mark.parametrize("name", ONE_PARAMETER)
def test_few_trials_over_every_outcome(name: str) -> None:
    trials = np.array([[4, 2], [2, 3]])
    ranks, outcome = ranks_of_all_outcomes(name, trials, np.array([-0.9, 0.4]), 20_000, seed=1)
    (values,) = ranks.values()
    assert_uniform(values)
    assert_uniform_given_outcome(values, outcome)


def test_few_trials_over_every_outcome_of_two_parameters() -> None:
    ranks, outcome = ranks_of_all_outcomes("bmp", np.array([[2, 1], [1, 1]]), np.array([-0.9, 0.4]), 20_000, seed=2)
    for values in ranks.values():
        assert_uniform(values)
        assert_uniform_given_outcome(values, outcome)


@pytest.mark.parametrize("name", ONE_PARAMETER)
def test_many_trials(name: str) -> None:
    trials = np.array([[150, 50], [30, 60]])
    log_odds = np.array([-1.1, 0.2])
    truth, counts = simulate(name, trials, log_odds, 100, np.random.default_rng(3))
    ((parameter, values),) = truth.items()
    ranks = np.array(
        [
            float(posterior_of(row, log_odds, name).marginals[parameter].cdf(np.array([value]))[0])
            for row, value in zip(counts, values, strict=True)
        ]
    )
    assert_uniform(ranks)
    # Weak attacks and strong ones alike.
    advantage = np.abs((counts[:, :, 2:] / counts[:, :, :2]).sum(axis=2) - 1).mean(axis=1)
    is_strong = advantage > np.median(advantage)
    assert_uniform(ranks[is_strong])
    assert_uniform(ranks[~is_strong])
