"""Mechanisms that are known exactly: what the intervals and bounds promise of them, and the limit of many trials.

Not asserted, as it is not promised: that the hierarchical posterior's interval holds the ε of a fixed mechanism
(`examples/coverage.py` tabulates how often it does), or that a node's interval holds at its level for each single
mechanism; the latter is so on average over mechanisms whose error rates are uniform.
"""

import numpy as np
import pytest
import scipy.stats

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import estimate, lower_bound, node_leakage
from bmpaudit.privacy import FiniteMechanism, bayes_decision, independent_memberships, privacy_levels
from bmpaudit.util.values import Floats

FALSE_ALARM = 1e-5


def binary_mechanism(prior: float, alpha: float, beta: float) -> FiniteMechanism:
    """One node; the output 1 comes with probability α if it is out, 1-β if it is in."""
    return FiniteMechanism(independent_memberships([prior]), [[1 - alpha, alpha], [beta, 1 - beta]])


@pytest.mark.parametrize(("num_out", "num_in"), [(100, 100), (300, 20)])
def test_node_intervals_hold_the_epsilon_of_mechanisms(num_out: int, num_in: int) -> None:
    """Two outputs leave one rule (and its reverse), so the best attack implies all of ε_R and ε_L.

    Over mechanisms whose two rates are uniform the intervals hold them with probability `level`, exactly. The attack is
    the best that does not use the prior: a strong one may say the same for every output, and implies the floor alone.
    """
    rng, size, level = np.random.default_rng(1), 600, 0.9
    priors, rates = rng.uniform(0.1, 0.9, size), rng.uniform(size=(size, 2))
    mechanisms = [binary_mechanism(prior, *pair) for prior, pair in zip(priors, rates, strict=True)]
    levels = [privacy_levels(mechanism).bmp for mechanism in mechanisms]
    log_ratios = [mechanism.posterior_log_odds[0] - np.log(mechanism.prior_odds[0]) for mechanism in mechanisms]
    errors = [
        mechanism.error_pair(0, bayes_decision(log_ratio))
        for mechanism, log_ratio in zip(mechanisms, log_ratios, strict=True)
    ]
    counts = ErrorCounts.from_arrays(
        num_out,
        num_in,
        rng.binomial(num_out, [pair.alpha for pair in errors]),
        rng.binomial(num_in, [pair.beta for pair in errors]),
        priors,
    )
    leakage = node_leakage(counts, level)
    for found, truth in (
        (leakage.right, np.array([pair.right for pair in levels])),
        (leakage.left, np.array([pair.left for pair in levels])),
    ):
        above, below = int((truth > found.high).sum()), int((truth < found.low).sum())
        for outside in (above, below):
            assert scipy.stats.binomtest(outside, size, (1 - level) / 2).pvalue > FALSE_ALARM


def exceeds(bound: float | None, truth: float) -> bool:
    return bound is not None and bound > truth + 1e-12


@pytest.mark.parametrize("num_trials", [(12, 12), (20, 4)])
def test_the_bound_fails_no_more_often_than_it_says(num_trials: tuple[int, int]) -> None:
    """The probability that it lies above the truth, by summing over all outcomes: no chance, for any mechanism."""
    num_out, num_in = num_trials
    level = 0.8
    outcomes = [(a, b) for a in range(num_out + 1) for b in range(num_in + 1)]
    bounds = [lower_bound(ErrorCounts.from_arrays([num_out], [num_in], [a], [b], [0.5]), level) for a, b in outcomes]
    rates = (0.001, 0.02, 0.1, 0.3, 0.5, 0.75, 0.98)
    largest = 0.0
    for alpha in rates:
        for beta in rates:
            truth = privacy_levels(binary_mechanism(0.5, alpha, beta))
            law_out, law_in = scipy.stats.binom(num_out, alpha), scipy.stats.binom(num_in, beta)
            probability = np.outer(law_out.pmf(range(num_out + 1)), law_in.pmf(range(num_in + 1))).ravel()
            is_wrong = [
                exceeds(bound.right.bound, truth.bmp.right)
                or exceeds(bound.left.bound, truth.bmp.left)
                or exceeds(bound.mp.bound, truth.mp)
                for bound in bounds
            ]
            largest = max(largest, float(probability @ is_wrong))
    assert 0 < largest <= 1 - level


def test_several_nodes_are_bounded_together() -> None:
    """Three nodes of one mechanism that tells their number, blurred: all of them below the truth, by simulation."""
    law = independent_memberships([0.2, 0.5, 0.6])
    sizes = np.array([bin(m).count("1") for m in range(8)])
    table = np.where(sizes[:, None] == np.arange(4), 0.7, 0.1)
    mechanism = FiniteMechanism(law, table)
    truth = privacy_levels(mechanism)
    decisions = [
        bayes_decision(odds - np.log(eta))
        for odds, eta in zip(mechanism.posterior_log_odds, mechanism.prior_odds, strict=True)
    ]
    errors = [mechanism.error_pair(node, decision) for node, decision in enumerate(decisions)]
    rng, audits, level = np.random.default_rng(4), 500, 0.8
    wrong = 0
    for _ in range(audits):
        counts = ErrorCounts.from_arrays(
            80,
            50,
            rng.binomial(80, [pair.alpha for pair in errors]),
            rng.binomial(50, [pair.beta for pair in errors]),
            mechanism.prior_prob,
        )
        bound = lower_bound(counts, level)
        wrong += (
            exceeds(bound.right.bound, truth.bmp.right)
            or exceeds(bound.left.bound, truth.bmp.left)
            or exceeds(bound.mp.bound, truth.mp)
        )
    assert wrong <= scipy.stats.binom.isf(FALSE_ALARM, audits, 1 - level)


RATES = {  # (α, β) of each node, log η of each
    "one node": ([(0.2, 0.3)], [0.0]),
    # Both terms of MP, and both nodes, attain the largest e: the slow case, where the error is of order 1/√n.
    "ties": ([(0.25, 0.25), (0.25, 0.25)], [0.3, 0.3]),
    "four nodes": ([(0.2, 0.3), (0.1, 0.6), (0.5, 0.4), (0.35, 0.3)], [-1.0, 0.2, 0.5, -0.4]),
}


def largest_implied(name: str, alpha: Floats, beta: Floats, log_odds: Floats) -> Floats:
    """max_k e_k, over the last axis."""
    right = log_odds + np.log(np.maximum((1 - beta) / alpha, beta / (1 - alpha)))
    left = -log_odds + np.log(np.maximum((1 - alpha) / beta, alpha / (1 - beta)))
    implied = {"bmp-r": right, "bmp-l": left}.get(name, np.maximum(left, right))
    return np.asarray(implied.max(axis=-1))


def unbounded_density(name: str, epsilon: Floats, log_odds: Floats) -> Floats:
    """Prior × Π|R_k|⁻¹, not normalised; |R| = (1 - 1/a)(1 - b)/(1 - b/a)."""
    inverse_a = np.exp(-epsilon[:, None] - log_odds) * (name != "bmp-r")
    b = np.exp(log_odds - epsilon[:, None]) * (name != "bmp-l")
    area = (1 - inverse_a) * (1 - b) / (1 - b * inverse_a)
    density: Floats = np.exp(-(epsilon**2) / 20 - np.log(area).sum(axis=1))
    return density


@pytest.mark.parametrize("name", ["mp", "bmp-r", "bmp-l", "bmp-s"])
@pytest.mark.parametrize("case", RATES)
def test_posterior_of_many_trials(name: str, case: str) -> None:
    """It tends to prior × Π|R_k|⁻¹ on ε ≥ max_k e_k, with an error of at most order 1/√n.

    The posterior is g·Pr(T ≤ ε) up to a factor, with g = prior × Π|R_k|⁻¹ and T the largest implied e under the Beta
    posteriors. With e = max_k e_k in place of T the integral of g over (-∞, x] changes, for any x, by at most
    E|G(T) - G(e)|, where G(t) is the integral of g over (t, ∞). So the normalised CDFs are apart by at most
    2·E|G(T) - G(e)|/G(e), which falls like T's spread.
    """
    (alpha, beta), log_odds = np.array(RATES[case][0]).T, np.array(RATES[case][1])
    if name == "mp":
        log_odds = np.zeros_like(log_odds)
    least = float(largest_implied(name, alpha, beta, log_odds))
    rng = np.random.default_rng(1)
    probs = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    bounds = []
    for num_trials in (10**4, 10**6):
        positives, negatives = (np.rint(num_trials * rate).astype(np.int64) for rate in (alpha, beta))
        drawn_alpha, drawn_beta = (
            rng.beta(x + 1, num_trials - x + 1, size=(20_000, len(x))) for x in (positives, negatives)
        )
        implied = largest_implied(name, drawn_alpha, drawn_beta, log_odds)
        epsilon = np.concatenate(
            [np.linspace(implied.min(), least, 2_001), np.linspace(least, least + 40, 200_001)[1:]]
        )
        density = unbounded_density(name, epsilon, log_odds)
        steps = (density[1:] + density[:-1]) / 2 * np.diff(epsilon)
        above = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
        total = float(np.interp(least, epsilon, above))
        # The mean over draws is right to 1 % (standard error); 5 % leave room for it.
        bounds.append(1.05 * 2 * float(np.abs(np.interp(implied, epsilon, above) - total).mean()) / total)
        counts = ErrorCounts.from_arrays(
            num_trials, num_trials, positives, negatives, prior_prob=1 / (1 + np.exp(-log_odds))
        )
        found = estimate(counts, name).quantile(probs)
        limit = 1 - np.minimum(np.interp(found, epsilon, above) / total, 1)
        assert np.abs(limit - probs).max() < bounds[-1]
    assert bounds[0] < 0.1
    assert bounds[1] < bounds[0] / 9  # √(10⁶/10⁴) = 10, up to terms of higher order and chance
