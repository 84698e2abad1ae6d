"""Making "99 %" mean 99 %: posterior log-odds recalibrated on held-out models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.arrays import Flags, Floats
from bmpaudit.errors import InputError
from bmpaudit.proof.monotone_logistic import MonotoneLogistic, fit_monotone_logistic
from bmpaudit.proof.score_bins import LARGEST_SCORE, ScoreBins


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A non-decreasing map from an attack's log-odds to log-odds that can be believed.

    Logistic regression of membership on a non-decreasing, piecewise linear function of the log-odds, pooled over nodes,
    with a penalty on changes of slope (`fit_monotone_logistic`). Where no data speak against it the slope stays as it
    is, so that few models give nearly the map of many: isotonic regression, which was tried, puts the score from which
    on 99 % is promised at random within a wide range.

    Formal guarantee: the map is non-decreasing and bounded, so it keeps the order of any two challenges (or makes them
    equal). Beyond the data it is constant. However extreme the score, it never promises more than the most extreme
    challenges have kept: if of the n highest C are members, (C + 1/2)/(n + 1) for the best n; odds of at most 2 n + 1
    where n challenges were all alike. This errs on the safe side.

    What it does not promise: that a single node's odds are right. They are right on average over nodes and models of
    equal score.

    Attributes:
        scores: Mean log-odds of each bin of challenges as the attack gave them, ascending, shape (B,).
        log_odds: Log-odds that they stand for, non-decreasing, shape (B,).
        num_models: Number of models that it was learnt on.
        num_challenges: Number of challenges (model, node) that it was learnt on.
    """

    scores: Floats
    log_odds: Floats
    num_models: int
    num_challenges: int

    def __call__(self, log_odds: npt.NDArray[np.floating[Any]]) -> Floats:
        """Recalibrated log-odds, of the same shape."""
        values = np.asarray(log_odds, dtype=np.float64)
        if np.isnan(values).any():
            raise InputError("log-odds must not be NaN")
        return np.interp(values, self.scores, self.log_odds)

    def __str__(self) -> str:
        low, high = scipy.special.expit(self.log_odds[[0, -1]])
        return (
            f"recalibrated on {self.num_challenges:,} challenges of {self.num_models:,} models: "
            f"probabilities from {low:.2g} to {high:.5g}"
        )


def recalibrate(log_odds: npt.NDArray[np.floating[Any]], memberships: Flags) -> Recalibration:
    """Learns a recalibration from held-out models.

    Args:
        log_odds: Posterior log-odds of models that are not in their own fit, shape (J, K); ±∞ is allowed.
        memberships: The truth, shape (J, K).

    Raises:
        InputError: if shapes differ, there is no member or no non-member, or log-odds are NaN.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(50, 400))
    >>> members = rng.random(truth.shape) < scipy.special.expit(truth)
    >>> too_sure = recalibrate(3 * truth, members)
    >>> too_sure(np.array([-3.0, 3.0])).round() + 0.0
    array([-1.,  1.])
    """
    values, truth = checked_log_odds(log_odds, memberships)
    if values.min() == values.max():
        return constant_map(values, truth)
    return recalibrate_bins(ScoreBins.of(values, truth)).recalibration


def constant_map(log_odds: npt.NDArray[np.floating[Any]], memberships: Flags) -> Recalibration:
    """The map for log-odds that are all the same, and so say nothing: the frequency of members, whatever is asked."""
    num_members = int(np.count_nonzero(memberships))
    base = np.log(num_members + 0.5) - np.log(memberships.size - num_members + 0.5)
    score = np.clip(np.float64(log_odds.flat[0]), -LARGEST_SCORE, LARGEST_SCORE)
    return Recalibration(np.array([score]), np.array([base]), len(log_odds), log_odds.size)


@dataclass(frozen=True, eq=False)
class LearntMap:
    """A recalibration and the regression that it comes from.

    Attributes:
        recalibration: The map.
        regression: The same before it is held to what the most extreme challenges have kept.
    """

    recalibration: Recalibration
    regression: MonotoneLogistic


def recalibrate_bins(bins: ScoreBins, models: npt.NDArray[Any] | slice = slice(None)) -> LearntMap:
    """Learns a recalibration from some of the models in bins.

    Args:
        bins: Scores of J models.
        models: Which of them to learn from: row numbers, flags, or a slice.
    """
    size = bins.num_challenges[models].sum(axis=0).astype(np.float64)
    members = bins.num_members[models].sum(axis=0).astype(np.float64)
    regression = fit_monotone_logistic(bins.mean_score, size, members, bins.knots)
    lowest = np.minimum.accumulate(_kept(size, members)[::-1])[::-1]
    highest = np.maximum.accumulate(_kept(size[::-1], members[::-1])[::-1])
    log_odds = np.clip(regression(bins.mean_score), lowest, np.maximum(lowest, highest))
    num_models = len(bins.num_challenges[models])
    return LearntMap(Recalibration(bins.mean_score, log_odds, num_models, int(size.sum())), regression)


def _kept(size: Floats, members: Floats) -> Floats:
    """Log-odds of membership in each bin and those before it together, by (C + 1/2)/(n + 1)."""
    total, of_them = np.cumsum(size), np.cumsum(members)
    result: Floats = np.log(of_them + 0.5) - np.log(total - of_them + 0.5)
    return result


def checked_log_odds(
    log_odds: npt.NDArray[np.floating[Any]], memberships: Flags
) -> tuple[npt.NDArray[np.floating[Any]], Flags]:
    """Both as arrays; float32 stays as it is.

    Raises:
        InputError: if shapes differ, there is no member or no non-member, or log-odds are NaN.
    """
    values, truth = np.asarray(log_odds), np.asarray(memberships, dtype=np.bool_)
    if values.dtype != np.float32:
        values = values.astype(np.float64)
    if values.ndim != 2 or values.shape != truth.shape:
        raise InputError(
            f"log-odds and memberships must have one shape (num_models, num_nodes), got {values.shape} and "
            f"{truth.shape}"
        )
    if np.isnan(values).any():
        raise InputError("log-odds must not be NaN")
    if truth.all() or not truth.any():
        raise InputError(
            f"memberships must hold both sides, got no {'non-member' if truth.size and truth.all() else 'member'}"
        )
    return values, truth
