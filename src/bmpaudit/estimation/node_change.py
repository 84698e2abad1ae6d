"""Which nodes leak more under one attack than under another, and how certainly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import expit, logit

from bmpaudit import _native
from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.checks import thread_count
from bmpaudit.errors import InputError
from bmpaudit.privacy.epsilon import log_prior_odds

LEVELS = 64  # equally probable values that represent the posterior of one node's e
KNOTS = 17
ROWS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class NodeChange:
    """The posterior of e₂ - e₁ for each node, where e is the ε that the node's own error rates imply.

    The two posteriors (see `NodeLeakage`) are assumed independent. Each is represented by 64 equally probable values,
    so probabilities are accurate to about 0.01.

    Attributes:
        low: Lower end of the equal-tailed credible interval of the change, shape (K,).
        median: Median of the change, shape (K,).
        high: Upper end of the interval, shape (K,).
        more_prob: Probability that the node leaks more under the second attack, shape (K,).
        is_constant: Whether one of the two attacks decided the same for every model, so that nothing is known about the
            change, however large it looks, shape (K,).
        level: Posterior probability of the intervals.
    """

    low: Floats
    median: Floats
    high: Floats
    more_prob: Floats
    is_constant: Flags
    level: float

    @property
    def certain(self) -> Floats:
        """The end of the interval that is nearer to 0, or 0 if the interval contains 0, shape (K,)."""
        return np.where(self.low > 0, self.low, np.where(self.high < 0, self.high, 0.0))

    @property
    def is_more(self) -> Flags:
        """Which nodes leak more: the interval is above 0 and no decision was constant, shape (K,)."""
        return (self.low > 0) & ~self.is_constant

    @property
    def is_less(self) -> Flags:
        """Which nodes leak less: the interval is below 0, shape (K,)."""
        return (self.high < 0) & ~self.is_constant

    def ranked(self) -> Ints:
        """Rows ranked by `certain`, then by the median; those with a constant decision last, shape (K,)."""
        return np.lexsort((-np.abs(self.median), -np.abs(self.certain), self.is_constant))


def node_change(
    first: ErrorCounts,
    second: ErrorCounts,
    side: str = "right",
    *,
    above_floor: bool = False,
    level: float = 0.9,
    num_threads: int | None = None,
) -> NodeChange:
    """Compares two attacks node by node.

    Args:
        first: Errors of the first attack.
        second: Errors of the second attack, with the same node in the same row.
        side: Whether to compare e_R ("right") or e_L ("left").
        above_floor: Whether to compare only what the model adds to the sampler's floor.
        level: Posterior probability of the intervals.
        num_threads: Number of threads; all processors if None.

    Raises:
        InputError: if the tables have different lengths, or a setting is out of bounds.
    """
    if first.num_nodes != second.num_nodes:
        raise InputError(f"both attacks must have the same nodes, got {first.num_nodes} and {second.num_nodes}")
    if side not in ("right", "left"):
        raise InputError(f"side must be 'right' or 'left', got side={side!r}")
    if not 0 < level < 1:
        raise InputError(f"level must be in (0, 1), got level={level}")
    shift = np.zeros(first.num_nodes)
    if not above_floor:
        sign = 1.0 if side == "right" else -1.0
        # Infinite floors of certain priors have no difference; the floor of such nodes counts as unchanged.
        with np.errstate(invalid="ignore"):
            difference = sign * (log_prior_odds(second.prior_odds) - log_prior_odds(first.prior_odds))
        shift = np.where(np.isfinite(difference), difference, 0.0)
    before, after = (_values(counts, side, num_threads) for counts in (first, second))
    probabilities = [(1 - level) / 2, 0.5, (1 + level) / 2]
    quantiles, more = np.empty((3, first.num_nodes)), np.empty(first.num_nodes)
    for start in range(0, first.num_nodes, ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        change = (after[rows, :, None] - before[rows, None, :]).reshape(-1, LEVELS * LEVELS) + shift[rows, None]
        quantiles[:, rows] = np.quantile(change, probabilities, axis=1)
        more[rows] = (change > 0).mean(axis=1) + (change == 0).mean(axis=1) / 2
    low, median, high = quantiles
    return NodeChange(low, median, high, more, first.is_constant | second.is_constant, level)


def _values(counts: ErrorCounts, side: str, num_threads: int | None) -> Floats:
    """Equally probable values of a node's e above its floor, shape (K, LEVELS)."""
    table = np.stack([counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives], axis=1)
    distinct, row = np.unique(table.astype(np.float64), axis=0, return_inverse=True)
    wanted = logit((np.arange(LEVELS) + 0.5) / LEVELS)
    # On this scale quantiles are nearly linear: a few of them, which are slow to compute, give the rest.
    known = np.linspace(wanted[0], wanted[-1], KNOTS)
    right, left = _native.leakage_quantiles(np.ascontiguousarray(distinct), expit(known), thread_count(num_threads))
    values: Floats = PchipInterpolator(known, np.asarray(right if side == "right" else left), axis=1)(wanted)
    return values[row.ravel()]
