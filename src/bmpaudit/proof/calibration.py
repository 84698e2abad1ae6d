"""Making "99 %" mean 99 %: posterior log-odds recalibrated on held-out models, and checked against the truth.

Raw log-odds are an attack's score plus the log prior odds. A recalibration maps them to log-odds that can be believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native
from bmpaudit.proof.bounds import check_log_odds
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.matrices import evenly_spaced
from bmpaudit.util.values import AnyFloats, Flags, Floats, Ints, as_bytes

MAX_CHALLENGES = 20_000_000  # beyond that many, evenly spaced nodes are looked at
NUM_BINS, NUM_TAIL_BINS, SMALLEST_BIN = 100, 24, 20
LARGEST_RAW = 1e30  # in place of infinity
# Shares of the challenges above, and below, each knot, and the number that there must be.
KNOT_SHARES = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 5e-4, 2e-4, 1e-4)
MIN_BEYOND_KNOT = 50
ROUGHNESS = 2.0  # standard deviation of the change of slope from one knot to the next, times the mean slope
MEAN_SLOPE_BETWEEN = (0.25, 0.75)  # shares of the challenges that the mean slope is taken between
LEAST_RISE = 0.01  # log-odds between them, where nothing rises
MAX_STEPS, TOLERANCE = 60, 1e-9
EDGES = (0.0, 0.001, 0.01, 0.05, *(k / 10 for k in range(1, 10)), 0.95, 0.99, 0.999, 1.0)


@dataclass(frozen=True, eq=False)
class MonotoneLogistic:
    """Log-odds that rise linearly from knot to knot, and are constant beyond the first and the last."""

    knots: Floats  # raw log-odds where the slope may change, ascending, shape (S + 1,)
    coefficients: Floats  # log-odds at the first knot, and the rise from each knot to the next, shape (S + 1,)
    information: Floats  # second derivative of the penalised log-likelihood, negated, shape (S + 1, S + 1)

    def __call__(self, raw: Floats) -> Floats:
        """Calibrated log-odds of some raw ones, shape (B,)."""
        result: Floats = _design(raw, self.knots) @ self.coefficients
        return result

    def inverse(self, log_odds: Floats) -> Floats:
        """Scores at which log-odds are reached, shape (P,); the first or the last knot if they never are."""
        return np.interp(log_odds, np.cumsum(self.coefficients), self.knots)

    def sensitivity(self, at: Floats, raw: Floats) -> Floats:
        """How much the map at P raw log-odds moves with one more member among the challenges of B others, shape (P, B).

        To first order, with rises that are 0 held there.
        """
        is_free = self.coefficients > 0
        is_free[0] = True
        there, here = _design(at, self.knots)[:, is_free], _design(raw, self.knots)[:, is_free]
        result: Floats = there @ np.linalg.solve(self.information[np.ix_(is_free, is_free)], here.T)
        return result


def fit_monotone_logistic(raw: Floats, size: Floats, members: Floats, knots: Floats) -> MonotoneLogistic:
    """Maximises the likelihood under a penalty on changes of slope, so that few challenges do not bend the line.

    The penalty is relative to the mean slope, which makes the fit the same in any unit. Each step of Newton's method is
    a least-squares problem with non-negative rises; the objective is convex. Raw log-odds of B bins are ascending, with
    numbers of challenges and of members among them; so are the knots, at least two.
    """
    share = np.cumsum(size) / size.sum()
    ends = np.array([raw[min(int(np.searchsorted(share, q)), len(raw) - 1)] for q in MEAN_SLOPE_BETWEEN])
    if ends[0] == ends[1]:
        ends = knots[[0, -1]]
    rise = _fit(raw, size, members, ends, np.zeros((0, 2))).coefficients[1]
    mean_slope = max(float(rise), LEAST_RISE) / (ends[1] - ends[0])
    slopes = np.diag(1 / (ROUGHNESS * mean_slope * np.diff(knots)))
    penalty = np.pad(np.diff(slopes, axis=0), ((0, 0), (1, 0)))
    return _fit(raw, size, members, knots, penalty)


def _fit(raw: Floats, size: Floats, members: Floats, knots: Floats, penalty: Floats) -> MonotoneLogistic:
    """Minimises Σ size·log(1 + e^f) - members·f + |penalty·coefficients|²/2 over rises of at least 0."""
    from scipy.optimize import nnls  # takes long to import; what reads or draws an exposure does without

    design = _design(raw, knots)
    # The first coefficient may have any sign: it is the difference of two that may not.
    signed, signed_penalty = (np.hstack([each, -each[:, :1]]) for each in (design, penalty))

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
        rows = np.vstack([weight[:, None] * signed, signed_penalty])
        solution, _ = nnls(rows, np.append(target, np.zeros(len(penalty))), maxiter=100 * design.shape[1])
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


def _design(raw: Floats, knots: Floats) -> Floats:
    """1, and how far between each knot and the next raw log-odds are, from 0 to 1; shape (B, S + 1)."""
    along = np.clip((raw[:, None] - knots[:-1]) / np.diff(knots), 0.0, 1.0)
    return np.hstack([np.ones((len(raw), 1)), along])


@dataclass(frozen=True, eq=False)
class RawBins:
    """Scores of J models in B bins: of equal size in the middle, ever smaller towards both ends.

    This is all that a recalibration has to know. Where a bin begins depends on all of them and on no membership.
    """

    mean_raw: Floats  # mean raw log-odds in each bin, ascending, shape (B,)
    knots: Floats  # raw log-odds between which a map is linear, ascending
    num_challenges: Ints  # number of challenges of each model in each bin, shape (J, B)
    num_members: Ints  # number of members among them, shape (J, B)

    @classmethod
    def of(cls, raw: AnyFloats, memberships: Flags, *, num_threads: int | None = None) -> RawBins:
        """Bins of raw log-odds, shape (J, K) as memberships; ±∞ is allowed.

        Raises:
            InputError: if all are the same.
        """
        num_models, num_nodes = raw.shape
        nodes = looked_at(num_models, num_nodes)
        if len(nodes) < num_nodes:
            raw, memberships = raw[:, nodes], memberships[:, nodes]
        raw = np.ascontiguousarray(raw)
        ordered = raw.flatten()
        _native.sort_numbers(ordered)
        np.clip(ordered, -LARGEST_RAW, LARGEST_RAW, out=ordered)
        if ordered[0] == ordered[-1]:
            raise InputError(f"log-odds must differ, got {ordered[0]:g} for all challenges")
        edges = _bin_edges(ordered)
        size = np.diff(edges)
        mean = np.add.reduceat(ordered, edges[:-1], dtype=np.float64) / size
        in_bin, members = np.zeros((2, num_models, len(size)), dtype=np.int64)
        _native.count_by_threshold(
            raw, as_bytes(memberships), ordered[edges[1:-1]], thread_count(num_threads), in_bin, members, None
        )
        return cls(mean, _knots(ordered), in_bin, members)

    @property
    def num_models(self) -> int:
        """J."""
        return len(self.num_challenges)


def looked_at(num_models: int, num_nodes: int) -> Ints:
    """Positions of the nodes whose log-odds go into bins."""
    return evenly_spaced(np.arange(num_nodes), max(1, MAX_CHALLENGES // num_models))


def _bin_edges(ordered: AnyFloats) -> Ints:
    """Where bins begin and end: of equal size in the middle, half as large step by step towards the ends."""
    num = len(ordered)
    equal = np.linspace(0, num, NUM_BINS + 1)
    has_tails = num > SMALLEST_BIN * NUM_BINS
    tail = np.geomspace(SMALLEST_BIN, num / NUM_BINS, NUM_TAIL_BINS) if has_tails else np.zeros(0)
    edges = np.unique(np.concatenate([equal, tail, num - tail]).astype(np.int64))
    # Equals stay in one bin.
    inner = np.searchsorted(ordered, ordered[edges[1:-1]], side="left")
    return np.unique(np.concatenate([[0], inner, [num]]))


def _knots(ordered: AnyFloats) -> Floats:
    last = len(ordered) - 1
    beyond = [int(share * last) for share in KNOT_SHARES if share * len(ordered) >= MIN_BEYOND_KNOT]
    places = [0, *beyond, *(last - number for number in beyond), last]
    return np.unique(ordered[places].astype(np.float64))


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A non-decreasing map from an attack's log-odds to log-odds that can be believed.

    Logistic regression of membership on a non-decreasing, piecewise linear function of the log-odds, pooled over nodes,
    with a penalty on changes of slope (`fit_monotone_logistic`). Where no data speak against it the slope stays as it
    is, so that few models give nearly the map of many: isotonic regression, which was tried, puts the log-odds from
    which on 99 % is promised at random within a wide range.

    Formal guarantee: the map is non-decreasing and bounded, so it keeps the order of any two challenges (or makes them
    equal). Beyond the data it is constant. However extreme the log-odds, it never promises more than the most extreme
    challenges have kept: if of the n highest C are members, (C + 1/2)/(n + 1) for the best n; odds of at most 2 n + 1
    where n challenges were all alike. This errs on the safe side.

    What it does not promise: that a single node's odds are right. They are right on average over nodes and models of
    equal log-odds.

    Attributes:
        raw: Mean raw log-odds of each bin of challenges, ascending, shape (B,).
        log_odds: Log-odds that they stand for, non-decreasing, shape (B,).
        num_models: Number of models that it was learnt on.
        num_challenges: Number of challenges (model, node) that it was learnt on.
    """

    raw: Floats
    log_odds: Floats
    num_models: int
    num_challenges: int

    def __call__(self, log_odds: AnyFloats) -> Floats:
        """Recalibrated log-odds, of the same shape."""
        values = np.asarray(log_odds, dtype=np.float64)
        if np.isnan(values).any():
            raise InputError("log-odds must not be NaN")
        return np.interp(values, self.raw, self.log_odds)

    def __str__(self) -> str:
        low, high = scipy.special.expit(self.log_odds[[0, -1]])
        return (
            f"recalibrated on {self.num_challenges:,} challenges of {self.num_models:,} models: "
            f"probabilities from {low:.2g} to {high:.5g}"
        )


def recalibrate(log_odds: AnyFloats, memberships: Flags) -> Recalibration:
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
    values, truth = _checked(log_odds, memberships)
    if values.min() == values.max():
        return constant_map(values, truth)
    return recalibrate_bins(RawBins.of(values, truth)).recalibration


def constant_map(log_odds: AnyFloats, memberships: Flags) -> Recalibration:
    """The map for log-odds that are all the same, and so say nothing: the frequency of members, whatever is asked."""
    num_members = int(np.count_nonzero(memberships))
    base = np.log(num_members + 0.5) - np.log(memberships.size - num_members + 0.5)
    raw = np.clip(np.float64(log_odds.flat[0]), -LARGEST_RAW, LARGEST_RAW)
    return Recalibration(np.array([raw]), np.array([base]), len(log_odds), log_odds.size)


class LearntMap(NamedTuple):
    """A recalibration, and the regression that it is before it is held to what the most extreme challenges kept."""

    recalibration: Recalibration
    regression: MonotoneLogistic


def recalibrate_bins(bins: RawBins, models: npt.NDArray[Any] | slice = slice(None)) -> LearntMap:
    """Learns a recalibration from some of the models in bins, by their row numbers."""
    size = bins.num_challenges[models].sum(axis=0).astype(np.float64)
    members = bins.num_members[models].sum(axis=0).astype(np.float64)
    regression = fit_monotone_logistic(bins.mean_raw, size, members, bins.knots)
    lowest = np.minimum.accumulate(_kept(size, members)[::-1])[::-1]
    highest = np.maximum.accumulate(_kept(size[::-1], members[::-1])[::-1])
    log_odds = np.clip(regression(bins.mean_raw), lowest, np.maximum(lowest, highest))
    num_models = len(bins.num_challenges[models])
    return LearntMap(Recalibration(bins.mean_raw, log_odds, num_models, int(size.sum())), regression)


def _kept(size: Floats, members: Floats) -> Floats:
    """Log-odds of membership in each bin and those before it together, by (C + 1/2)/(n + 1)."""
    total, of_them = np.cumsum(size), np.cumsum(members)
    result: Floats = np.log(of_them + 0.5) - np.log(total - of_them + 0.5)
    return result


def _checked(log_odds: AnyFloats, memberships: Flags) -> tuple[AnyFloats, Flags]:
    values, truth = check_log_odds(log_odds, memberships)
    if truth.all() or not truth.any():
        raise InputError(
            f"memberships must hold both sides, got no {'non-member' if truth.size and truth.all() else 'member'}"
        )
    return values, truth


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often challenges of a stated probability are members: the data of a reliability diagram.

    Attributes:
        edges: Edges of the bins of stated probability, shape (B + 1,).
        num_challenges: Number of challenges in each bin, shape (B,).
        stated: Mean stated probability in each bin, shape (B,); NaN in empty bins.
        observed: Share of members in each bin, shape (B,); NaN in empty bins.
    """

    edges: Floats
    num_challenges: Ints
    stated: Floats
    observed: Floats

    @property
    def expected_calibration_error(self) -> float:
        """Mean |stated - observed| over challenges."""
        is_filled = self.num_challenges > 0
        gaps = np.abs(self.stated - self.observed)[is_filled]
        return float(np.average(gaps, weights=self.num_challenges[is_filled]))

    def __str__(self) -> str:
        lines = ["  stated    observed  challenges"]
        for stated, observed, number in zip(self.stated, self.observed, self.num_challenges, strict=True):
            if number:
                lines.append(f"  {stated:8.4f}  {observed:8.4f}  {number:,}")
        return "\n".join([f"expected calibration error {self.expected_calibration_error:.4f}", *lines])


def reliability(log_odds: AnyFloats, memberships: Flags) -> Reliability:
    """Compares stated probabilities with the truth, on models that nothing was learnt from.

    Args:
        log_odds: Posterior log-odds, shape (J, K).
        memberships: The truth, shape (J, K).

    Raises:
        InputError: if shapes differ, there is no member or no non-member, or log-odds are NaN.
    """
    values, truth = _checked(log_odds, memberships)
    counter = ReliabilityCounter(len(values), values.dtype, thread_count(None))
    counter.add(values, truth)
    return counter.result()


class ReliabilityCounter:
    """Compares stated probabilities with the truth, a block of nodes at a time; log-odds are of type `dtype`."""

    def __init__(self, num_models: int, dtype: np.dtype[Any], num_threads: int) -> None:
        exact = scipy.special.logit(np.array(EDGES[1:-1]))
        rounded = exact.astype(dtype)
        # The smallest number of that type that reaches an edge.
        self._thresholds = np.where(rounded < exact, np.nextafter(rounded, dtype.type(np.inf)), rounded)
        self._num_threads = num_threads
        self._number, self._members = np.zeros((2, num_models, len(exact) + 1), dtype=np.int64)
        self._total = np.zeros((num_models, len(exact) + 1))

    def add(self, log_odds: AnyFloats, memberships: Flags) -> None:
        """Counts log-odds and memberships of some nodes, both of shape (J, number of nodes)."""
        counts = (self._number, self._members, self._total)
        values, flags = np.ascontiguousarray(log_odds), as_bytes(memberships)
        _native.count_by_threshold(values, flags, self._thresholds, self._num_threads, *counts)

    def result(self) -> Reliability:
        """The comparison, after all nodes were added."""
        number, total, members = (counts.sum(axis=0) for counts in (self._number, self._total, self._members))
        with np.errstate(invalid="ignore"):
            return Reliability(np.array(EDGES), number, total / number, members / number)
