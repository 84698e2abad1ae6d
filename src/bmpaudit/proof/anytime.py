"""A bound that holds at any time: models are guessed one after the other, and one may stop whenever one likes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.proof.bounds import LARGEST_EPSILON, PRECISION, check_level

NUM_STAKES = 400
WEIGHT_OF_ALL = 0.4


def _stakes() -> tuple[Floats, Floats]:
    """Shares of the wealth that are staked, and the logarithms of their weights."""
    angles = (np.arange(NUM_STAKES) + 0.5) * (np.pi / 2) / NUM_STAKES
    weights = np.full(NUM_STAKES, (1 - WEIGHT_OF_ALL) / NUM_STAKES)
    return np.append(np.sin(angles) ** 2, 1.0), np.log(np.append(weights, WEIGHT_OF_ALL))


STAKES, LOG_WEIGHTS = _stakes()


class AnytimeBound:
    """A lower confidence bound on ε from guesses that come one by one, valid under optional stopping.

    Formal guarantee: if the mechanism is ε-BMP-R, then with probability at least `level` the bound is at most ε after
    every update, for all time at once. So it also holds at any time that was chosen by looking at it, and the largest
    bound ever reached holds too, which is what `value` gives. The same is true of ε-BMP-L with guesses of non-members,
    and of ε-MP if each guess comes with its prior log-odds.

    Proof. Let X_j in [0, 1] be the share of correct guesses about model j (0 or 1 for a single guess), q = σ(ε + o_j)
    with o_j = 0 for BMP, and F_j all that is known after model j. The nodes are chosen from F_{j-1} and the output w_j;
    as models are independent, memberships of model j given F_{j-1} and w_j follow the posterior given w_j. Every guess
    is right with probability at most q (`epsilon_bound`, `mp_bound`), hence E[X_j | F_{j-1}, w_j] ≤ q, without any
    assumption on how several memberships of one model depend on each other. For a stake c in [0, 1] the factor
    1 + c (X_j/q - 1) is at least 0 with conditional expectation at most 1; the product over models is a non-negative
    supermartingale that starts at 1, and so is the mixture over stakes with fixed weights. By Ville's inequality it
    ever reaches 1/a with probability at most a. All ε at which it has done so are ruled out. Each factor falls in ε, so
    these are a half-line; the bound is its upper end, and exceeds the true ε only if that was ruled out. ∎

    The mixture has weight 0.4 on c = 1, which is the best stake as long as no guess is wrong, and spreads the rest by
    the arcsine law. Compared with the fixed-sample bound at 95 % this costs 0.16 if all guesses are right, 0.4 to 0.5
    if a few of some hundreds are wrong, and next to nothing if many are.

    What it does not prove: as `epsilon_bound`. The guess about a model must not use its memberships, nor anything made
    from later models. Models must be taken in an order that does not depend on how they come out.

    Args:
        level: Confidence level 1 - a.
        lowest: Smallest ε of interest, below which nothing is reported: -∞ for BMP, 0 for MP.

    >>> bound = AnytimeBound()
    >>> for _ in range(500):
    ...     bound.update(1)
    >>> round(bound.value, 2)
    4.96
    """

    def __init__(self, level: float = 0.95, lowest: float = -math.inf) -> None:
        self.level = level
        self._log_target = -math.log(check_level(level))
        self._lowest = max(lowest, -LARGEST_EPSILON)
        self._counts: Counter[tuple[float, float]] = Counter()
        self._value: float | None = None

    @property
    def num_updates(self) -> int:
        """Number of models that were guessed about."""
        return self._counts.total()

    @property
    def num_hits(self) -> float:
        """Sum of the shares of correct guesses."""
        return math.fsum(share * count for (share, _), count in self._counts.items())

    def update(self, share: float, log_odds: float = 0.0) -> None:
        """Adds one model; a model about which nothing is guessed need not be added.

        Args:
            share: Share of correct guesses: 0 or 1 for a single guess.
            log_odds: For MP, the prior log-odds of the guessed statement or an upper limit of them.

        Raises:
            InputError: if `share` is not in [0, 1] or `log_odds` is NaN.
        """
        if not 0 <= share <= 1:
            raise InputError(f"share must be in [0, 1], got share={share}")
        if math.isnan(log_odds):
            raise InputError("log_odds must be a number, got NaN")
        self._counts[float(share), float(log_odds)] += 1

    def update_all(self, shares: Iterable[float], log_odds: Iterable[float] | None = None) -> None:
        """Adds several models."""
        if log_odds is None:
            for share in shares:
                self.update(float(share))
        else:
            for share, odds in zip(shares, log_odds, strict=True):
                self.update(float(share), float(odds))

    @property
    def value(self) -> float | None:
        """The largest bound at any time that `value` was read; None if nothing is proven yet."""
        low = self._lowest if self._value is None else self._value
        if not self._is_ruled_out(low):
            return self._value
        high = max(low, -1.0) + 1.0
        while self._is_ruled_out(high):
            if high > LARGEST_EPSILON:
                self._value = high
                return high
            low, high = high, high + max(1.0, abs(high))
        while high - low > PRECISION:
            middle = (low + high) / 2
            low, high = (middle, high) if self._is_ruled_out(middle) else (low, middle)
        self._value = low
        return low

    def log_wealth(self, epsilon: float) -> float:
        """Logarithm of the mixture supermartingale for a hypothetical ε."""
        if not self._counts:
            return 0.0
        shares, odds = np.array(list(self._counts)).T[:, :, None]
        counts = np.array(list(self._counts.values()), dtype=np.float64)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            payoff = np.where(shares > 0, shares * np.exp(-epsilon - odds), 0.0)
            factors = np.log(np.maximum(1 - STAKES * (1 - shares) + STAKES * payoff, 0.0))
        return float(scipy.special.logsumexp(LOG_WEIGHTS + counts @ factors))

    def _is_ruled_out(self, epsilon: float) -> bool:
        return self.log_wealth(epsilon) >= self._log_target

    def __str__(self) -> str:
        value = self.value
        proven = "nothing proven" if value is None else f"ε ≥ {value:.2f}"
        return f"{proven} with {100 * self.level:g} % confidence at any time, {self.num_updates:,} guesses"


def mean_bound(shares: npt.ArrayLike, level: float = 0.95) -> float | None:
    """The lower bound on ε_R of BMP from several guesses per model; None if nothing is proven.

    BMP bounds the probability that each guess is right, but not how the memberships of several nodes depend on each
    other given the output. So the k guesses about one model count as a single observation, the share of them that is
    right, with mean at most σ(ε_R). `AnytimeBound` has the guarantee and its proof.

    Args:
        shares: Share of correct guesses about each challenged model, shape (G,).
        level: Confidence level.

    Raises:
        InputError: if a share is not in [0, 1].
    """
    bound = AnytimeBound(level)
    bound.update_all(np.asarray(shares, dtype=np.float64).ravel())
    return bound.value
