"""What DP-SGD gives away: privacy loss of its steps by dp-accounting, which only the functions here import.

A step adds Gaussian noise to a sum of clipped rows, each drawn into the batch with probability q. The unit is the
length that a row is clipped to. A node that joins the sample brings a row and changes those of its d neighbours;
docs/guarantees.md has the proof that no pair of samples can then be told apart better than

    P = Σ_k Bin(k; d + 1, q)·N(k, σ²)  from  Q = Σ_k Bin(k; d, q)·N(-k, σ²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln, logsumexp, ndtr, xlog1py, xlogy

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

LEAST_NOISE, MOST_NOISE = 0.3, 10_000.0
"""Outside of it the loss of a step is too coarse or too fine to be computed."""
TAIL = 9.0  # standard deviations; what lies beyond has probability 1e-19
FINEST, MOST_LOSSES = 1e-4, 40_000


@dataclass(frozen=True)
class Steps:
    """The steps of DP-SGD.

    Attributes:
        num_steps: Number of steps T.
        sampling_rate: Probability q that a row is drawn into the batch of a step.
        max_degree: Degree bound d: how many rows a node changes besides its own.
    """

    num_steps: int
    sampling_rate: float
    max_degree: int = 0

    def epsilon(self, noise_multiplier: float, delta: float) -> float:
        """The ε that goes with δ; rounded upwards, never downwards."""
        return float(_composed(self, noise_multiplier).get_epsilon_for_delta(delta))

    def noise_for(self, epsilon: float, delta: float) -> float:
        """The least noise multiplier, to three digits, that gives (ε, δ).

        Raises:
            InputError: if none does.
        """
        from scipy.optimize import brentq  # takes long to import

        low, high = LEAST_NOISE, MOST_NOISE
        if self.epsilon(low, delta) <= epsilon:
            return low
        if self.epsilon(high, delta) > epsilon:
            raise InputError(
                f"no noise_multiplier up to {MOST_NOISE:,.0f} gives epsilon={epsilon:g} with delta={delta:g} in "
                f"{self.num_steps:,} steps: the least it can give is {self.epsilon(high, delta):.2g}"
            )
        # log ε falls nearly linearly in log σ, so that few tries are needed.
        found = brentq(
            lambda log_noise: math.log(self.epsilon(math.exp(log_noise), delta) / epsilon),
            *(math.log(low), math.log(high)),
            xtol=1e-4,
        )
        digits = 2 - math.floor(found / math.log(10))
        noise = math.ceil(math.exp(found) * 10**digits) / 10**digits
        while self.epsilon(noise, delta) > epsilon:
            noise = (round(noise * 10**digits) + 1) / 10**digits
        return noise


def step_delta(epsilon: Floats, noise: float, sampling_rate: float, max_degree: int) -> tuple[Floats, Floats]:
    """H_ε(P‖Q) and H_ε(Q‖P) of one step, for any real ε, each of the shape of `epsilon`.

    P/Q rises from left to right, so the best test is a threshold: at each ε, where log P/Q = ±ε.
    """
    first = _Mixture.binomial(max_degree + 1, sampling_rate, 1.0 / noise)
    second = _Mixture.binomial(max_degree, sampling_rate, -1.0 / noise)
    above, below = (_threshold(first, second, sign * epsilon) for sign in (1.0, -1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.exp(epsilon)
        there = first.below(-above, mirrored=True) - factor * second.below(-above, mirrored=True)
        back = second.below(below) - factor * first.below(below)
    # A threshold at infinity has nothing beyond it, whatever the factor.
    there, back = np.where(np.isposinf(above), 0.0, there), np.where(np.isneginf(below), 0.0, back)
    return np.clip(there, 0.0, 1.0), np.clip(back, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Standard normal laws on a line: their centers and the logarithms of their weights."""

    centers: Floats
    log_weights: Floats

    @classmethod
    def binomial(cls, number: int, prob: float, spacing: float) -> _Mixture:
        """Centers 0, 1, …, `number` times `spacing`, with binomial weights."""
        k = np.arange(number + 1.0)
        ways = gammaln(number + 1) - gammaln(k + 1) - gammaln(number - k + 1)
        return cls(spacing * k, ways + xlogy(k, prob) + xlog1py(number - k, -prob))

    def log_density(self, points: Floats) -> Floats:
        """Up to a constant."""
        density: Floats = logsumexp(self.log_weights - (points[:, None] - self.centers) ** 2 / 2, axis=1)
        return density

    def below(self, points: Floats, *, mirrored: bool = False) -> Floats:
        """Probability of less than these points, or if mirrored, of more than their negatives."""
        centers = -self.centers if mirrored else self.centers
        chance: Floats = ndtr(points[:, None] - centers) @ np.exp(self.log_weights)
        return chance


def _threshold(first: _Mixture, second: _Mixture, loss: Floats) -> Floats:
    """Where log P/Q takes these values; ±∞ for values beyond the tails."""
    grid = np.linspace(second.centers.min() - TAIL, first.centers.max() + TAIL, 2 * MOST_LOSSES + 1)
    return np.interp(loss, first.log_density(grid) - second.log_density(grid), grid, left=-np.inf, right=np.inf)


@cache
def _composed(steps: Steps, noise: float) -> PrivacyLossDistribution:
    loss: Any = _loss_of_step(noise, steps.sampling_rate, steps.max_degree)
    return loss.self_compose(steps.num_steps)


def _loss_of_step(noise: float, sampling_rate: float, max_degree: int) -> Any:
    try:
        from dp_accounting.pld import pld_pmf
        from dp_accounting.pld import privacy_loss_distribution as distributions
    except ImportError as missing:
        raise InputError(f"DP-SGD needs dp-accounting: pip install 'bmpaudit[private]' ({missing})") from None
    # The largest loss is about that of the two extreme centers at the end of the tail.
    span = (2 * max_degree + 1) * (max_degree + 1 + TAIL * noise) / noise**2
    interval = max(FINEST, 2 * span / MOST_LOSSES)
    if max_degree == 0:
        return distributions.from_gaussian_mechanism(
            noise, value_discretization_interval=interval, sampling_prob=sampling_rate
        )
    number = math.ceil(span / interval)
    deltas = step_delta(interval * np.arange(-number, number + 1.0), noise, sampling_rate, max_degree)
    there, back = (
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -number, number, delta) for delta in deltas
    )
    return distributions.PrivacyLossDistribution(there, back)
