"""Logistic regression on a non-decreasing, piecewise linear function of one score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from bmpaudit.arrays import Floats

ROUGHNESS = 2.0
"""Standard deviation of the change of slope from one knot to the next, as a multiple of the mean slope."""

MEAN_SLOPE_BETWEEN = (0.25, 0.75)  # shares of the challenges that the mean slope is taken between
LEAST_RISE = 0.01  # log-odds between them, where nothing rises
MAX_STEPS = 60
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class MonotoneLogistic:
    """Log-odds that rise linearly from knot to knot, and are constant beyond the first and the last.

    Attributes:
        knots: Scores where the slope may change, ascending, shape (S + 1,).
        coefficients: Log-odds at the first knot, and the rise from each knot to the next, shape (S + 1,).
        information: Second derivative of the penalised log-likelihood, negated, shape (S + 1, S + 1).
    """

    knots: Floats
    coefficients: Floats
    information: Floats

    def __call__(self, scores: Floats) -> Floats:
        """Log-odds of some scores, shape (B,)."""
        result: Floats = _design(scores, self.knots) @ self.coefficients
        return result

    def inverse(self, log_odds: Floats) -> Floats:
        """Scores at which log-odds are reached, shape (P,); the first or the last knot if they never are."""
        return np.interp(log_odds, np.cumsum(self.coefficients), self.knots)

    def sensitivity(self, at: Floats, scores: Floats) -> Floats:
        """How much the log-odds at some scores move with one more member among the challenges of others.

        To first order, with rises that are 0 held there.

        Args:
            at: P scores.
            scores: B scores.

        Returns:
            Shape (P, B).
        """
        is_free = self.coefficients > 0
        is_free[0] = True
        there, here = _design(at, self.knots)[:, is_free], _design(scores, self.knots)[:, is_free]
        result: Floats = there @ np.linalg.solve(self.information[np.ix_(is_free, is_free)], here.T)
        return result


def fit_monotone_logistic(scores: Floats, size: Floats, members: Floats, knots: Floats) -> MonotoneLogistic:
    """Maximises the likelihood under a penalty on changes of slope, so that few challenges do not bend the line.

    The penalty is relative to the mean slope, which makes the fit the same in any unit of the scores. Each step of
    Newton's method is a least-squares problem with non-negative rises; the objective is convex.

    Args:
        scores: Scores of B bins, ascending, shape (B,).
        size: Number of challenges in each bin, shape (B,).
        members: Number of members among them, shape (B,).
        knots: Where the slope may change, ascending, at least two.
    """
    share = np.cumsum(size) / size.sum()
    ends = np.array([scores[min(int(np.searchsorted(share, q)), len(scores) - 1)] for q in MEAN_SLOPE_BETWEEN])
    if ends[0] == ends[1]:
        ends = knots[[0, -1]]
    rise = _fit(scores, size, members, ends, np.zeros((0, 2))).coefficients[1]
    mean_slope = max(float(rise), LEAST_RISE) / (ends[1] - ends[0])
    slopes = np.diag(1 / (ROUGHNESS * mean_slope * np.diff(knots)))
    penalty = np.pad(np.diff(slopes, axis=0), ((0, 0), (1, 0)))
    return _fit(scores, size, members, knots, penalty)


def _fit(scores: Floats, size: Floats, members: Floats, knots: Floats, penalty: Floats) -> MonotoneLogistic:
    """Minimises Σ size·log(1 + e^f) - members·f + |penalty·coefficients|²/2 over rises of at least 0."""
    from scipy.optimize import nnls  # takes long to import; what reads or draws an exposure does without

    design = _design(scores, knots)
    # The first coefficient may have any sign: it is the difference of two that may not.
    signed = np.hstack([design, -design[:, :1]])
    beside = np.hstack([penalty, -penalty[:, :1]])
    no_target = np.zeros(len(penalty))

    def objective(candidate: Floats) -> float:
        log_odds = design @ candidate
        loss = (size * np.logaddexp(0, log_odds) - members * log_odds).sum()
        return float(loss + ((penalty @ candidate) ** 2).sum() / 2)

    coefficients = np.zeros(design.shape[1])
    coefficients[0] = np.log(members.sum() + 0.5) - np.log(size.sum() - members.sum() + 0.5)
    value = objective(coefficients)
    for _ in range(MAX_STEPS):
        log_odds = design @ coefficients
        prob = scipy.special.expit(log_odds)
        weight = np.sqrt(np.maximum(size * prob * (1 - prob), 1e-9))
        target = weight * log_odds + (members - size * prob) / weight
        solution, _ = nnls(
            np.vstack([weight[:, None] * signed, beside]),
            np.concatenate([target, no_target]),
            maxiter=100 * design.shape[1],
        )
        wanted = solution[:-1]
        wanted[0] -= solution[-1]
        step = 1.0
        while (next_value := objective(coefficients + step * (wanted - coefficients))) > value and step > TOLERANCE:
            step /= 2
        if next_value >= value - TOLERANCE * abs(value):
            break
        coefficients, value = coefficients + step * (wanted - coefficients), next_value
    prob = scipy.special.expit(design @ coefficients)
    information = design.T @ ((size * prob * (1 - prob))[:, None] * design) + penalty.T @ penalty
    return MonotoneLogistic(knots, coefficients, information)


def _design(scores: Floats, knots: Floats) -> Floats:
    """1, and how far between each knot and the next a score is, from 0 to 1; shape (B, S + 1)."""
    along = np.clip((scores[:, None] - knots[:-1]) / np.diff(knots), 0.0, 1.0)
    return np.hstack([np.ones((len(scores), 1)), along])
