"""Making "99 %" mean 99 %: posterior log-odds recalibrated on held-out models, and checked against the truth.

Raw log-odds are an attack's score plus the log prior odds. A recalibration maps them to log-odds that can be believed.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        """Raw log-odds at which calibrated ones are reached, shape (P,); the first or last knot if they never are."""
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


def fit_monotone_logistic(
    raw: Floats, size: Floats, members: Floats, knots: Floats, start: MonotoneLogistic | None = None
) -> MonotoneLogistic:
    """Maximises the likelihood under a penalty on changes of slope, so that few challenges do not bend the line.

    The penalty is relative to the mean slope, which makes the fit the same in any unit. Each step of Newton's method is
    a least-squares problem with non-negative rises; the objective is convex. Raw log-odds of B bins are ascending, with
    numbers of challenges and of members among them; so are the knots, at least two. From a fit to nearly the same
    numbers, as a start, it takes fewer steps to the same end.
    """
    share = np.cumsum(size) / size.sum()
    ends = np.array([raw[min(int(np.searchsorted(share, q)), len(raw) - 1)] for q in MEAN_SLOPE_BETWEEN])
    if ends[0] == ends[1]:
        ends = knots[[0, -1]]
    line = None if start is None else start(ends) - [0.0, start(ends[:1])[0]]
    rise = _fit(raw, size, members, ends, np.zeros((0, 2)), line).coefficients[1]
    mean_slope = max(float(rise), LEAST_RISE) / (ends[1] - ends[0])
    slopes = np.diag(1 / (ROUGHNESS * mean_slope * np.diff(knots)))
    penalty = np.pad(np.diff(slopes, axis=0), ((0, 0), (1, 0)))
    return _fit(raw, size, members, knots, penalty, None if start is None else start.coefficients)


def _fit(
    raw: Floats, size: Floats, members: Floats, knots: Floats, penalty: Floats, start: Floats | None
) -> MonotoneLogistic:
    """Minimises Σ size·log(1 + e^f) - members·f + |penalty·coefficients|²/2 over rises of at least 0."""
    from scipy.optimize import nnls  # takes long to import; what reads or draws an exposure does without

    design = _design(raw, knots)
    # The first coefficient may have any sign: it is the difference of two that may not.
    signed, signed_penalty = (np.hstack([each, -each[:, :1]]) for each in (design, penalty))

    def objective(candidate: Floats) -> float:
        log_odds = design @ candidate
        loss = (size * np.logaddexp(0, log_odds) - members * log_odds).sum()
        return float(loss + ((penalty @ candidate) ** 2).sum() / 2)

    coefficients = np.zeros(design.shape[1]) if start is None else start
    if start is None:
        coefficients[0] = frequency_log_odds(size.sum(), members.sum())
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
    """Raw log-odds of J models in B bins: of equal size in the middle, ever smaller towards both ends.

    This is all that a recalibration has to know. Where a bin begins depends on all of them and on no membership.
    """

    mean_raw: Floats  # mean raw log-odds in each bin, ascending, shape (B,)
    knots: Floats  # raw log-odds between which a map is linear, ascending
    num_challenges: Ints  # number of challenges of each model in each bin, shape (J, B)
    num_members: Ints  # number of members among them, shape (J, B)

    @classmethod
    def of(cls, models: Sequence[tuple[AnyFloats, Flags]], *, num_threads: int | None = None) -> RawBins | None:
        """Bins of the raw log-odds and memberships of models, some after others; None if all log-odds are the same.

        Both have a row for each model and a column for each node, which may be others for other models.
        """
        ordered = np.concatenate([raw.ravel() for raw, _ in models])
        _native.sort_numbers(ordered)
        np.clip(ordered, -LARGEST_RAW, LARGEST_RAW, out=ordered)
        if not ordered.size or ordered[0] == ordered[-1]:
            return None
        edges = _bin_edges(ordered)
        size = np.diff(edges)
        mean = np.add.reduceat(ordered, edges[:-1], dtype=np.float64) / size
        num_models, first = sum(len(raw) for raw, _ in models), 0
        in_bin, members = np.zeros((2, num_models, len(size)), dtype=np.int64)
        for raw, truth in models:
            rows = slice(first, first + len(raw))
            _native.count_by_threshold(
                np.ascontiguousarray(raw),
                as_bytes(truth),
                ordered[edges[1:-1]],
                thread_count(num_threads),
                in_bin[rows],
                members[rows],
                None,
            )
            first = rows.stop
        return cls(mean, _knots(ordered), in_bin, members)

    @property
    def num_models(self) -> int:
        """J."""
        return len(self.num_challenges)


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
    """

    raw: Floats  # mean raw log-odds of each bin of challenges, ascending, shape (B,)
    log_odds: Floats  # log-odds that they stand for, non-decreasing, shape (B,)
    num_models: int  # number of models that it was learnt on
    num_challenges: int  # number of challenges (model, node) that it was learnt on

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

    Posterior log-odds are of models that are not in their own fit, shape (J, K), as the truth; ±∞ is allowed.

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
    some = evenly_spaced(np.arange(values.shape[1]), max(1, MAX_CHALLENGES // len(values)))
    values, truth = values[:, some], truth[:, some]
    bins = RawBins.of([(values, truth)])
    return constant_map(values, truth) if bins is None else recalibrate_bins(bins).recalibration


def constant_map(log_odds: AnyFloats, memberships: Flags) -> Recalibration:
    """The map for log-odds that are all the same, and so say nothing: the frequency of members, whatever is asked."""
    base = frequency_log_odds(memberships.size, int(np.count_nonzero(memberships)))
    raw = np.clip(np.float64(log_odds.flat[0]), -LARGEST_RAW, LARGEST_RAW)
    return Recalibration(np.array([raw]), np.array([base]), len(log_odds), log_odds.size)


def frequency_log_odds(size: Any, members: Any) -> Any:
    """Log-odds of membership by the frequency of members, (C + 1/2)/(n + 1); of numbers or arrays."""
    return np.log(members + 0.5) - np.log(size - members + 0.5)


class LearntMap(NamedTuple):
    """A recalibration, and the regression that it is before it is held to what the most extreme challenges kept."""

    recalibration: Recalibration
    regression: MonotoneLogistic


def recalibrate_bins(
    bins: RawBins, models: npt.NDArray[Any] | slice = slice(None), start: MonotoneLogistic | None = None
) -> LearntMap:
    """Learns a recalibration from some of the models in bins, by their row numbers."""
    size = bins.num_challenges[models].sum(axis=0).astype(np.float64)
    members = bins.num_members[models].sum(axis=0).astype(np.float64)
    if not 0 < members.sum() < size.sum():  # of one side alone nothing can be learnt but its frequency
        flat = np.append(frequency_log_odds(size.sum(), members.sum()), np.zeros(len(bins.knots) - 1))
        regression = MonotoneLogistic(bins.knots, flat, np.eye(len(flat)))
    else:
        regression = fit_monotone_logistic(bins.mean_raw, size, members, bins.knots, start)
    # What the bins up to each, and from each on, have kept together.
    up_to, from_on = (
        frequency_log_odds(np.cumsum(number), np.cumsum(of_them))
        for number, of_them in ((size, members), (size[::-1], members[::-1]))
    )
    lowest, highest = np.minimum.accumulate(up_to[::-1])[::-1], np.maximum.accumulate(from_on[::-1])
    log_odds = np.clip(regression(bins.mean_raw), lowest, np.maximum(lowest, highest))
    num_models = len(bins.num_challenges[models])
    return LearntMap(Recalibration(bins.mean_raw, log_odds, num_models, int(size.sum())), regression)


# How much the answers about a node tell of its membership. A node that is told apart in every model, among a thousand
# of which the answers say nothing, is one whose log-odds mean something else than the same log-odds of the others.


STRENGTHS = (0.1, 0.5)  # shares of what there is to learn about a node's membership, between weak, middling and strong
NUM_STRATA = len(STRENGTHS) + 1
CLIPPED = 6.0  # log-odds that count for so much at most, so that one wrong answer does not outweigh many right ones


def gains(log_odds: AnyFloats, memberships: Flags, log_prior_odds: Floats) -> Floats:
    """How many nats log-odds about models, shape (J, K), tell beyond the prior, summed over models: shape (K,)."""
    values = np.clip(log_odds, -CLIPPED, CLIPPED)
    surprise = np.log1p(np.exp(np.where(memberships, -values, values))).sum(axis=0, dtype=np.float64)
    num_in = np.count_nonzero(memberships, axis=0)
    prior_surprise = np.logaddexp(0, -log_prior_odds), np.logaddexp(0, log_prior_odds)
    result: Floats = num_in * prior_surprise[0] + (len(values) - num_in) * prior_surprise[1] - surprise
    return result


def strata(gain: Floats, num_models: int, log_prior_odds: Floats) -> Ints:
    """Stratum of each node by what so many models tell, from 0 (weak) on, shape (K,)."""
    prior = scipy.special.expit(log_prior_odds)
    return np.digitize(gain / (num_models * (scipy.special.entr(prior) + scipy.special.entr(1 - prior))), STRENGTHS)


@dataclass(frozen=True, eq=False)
class NodeRecalibration:
    """A recalibration for each stratum of nodes, and the log-odds that bound members and non-members in it."""

    stratum: Ints  # which of the strata that were learnt about is a node's, shape (K,)
    maps: tuple[Recalibration, ...]  # the recalibration of each stratum, from the weakest nodes to the strongest
    lowest_member: Floats  # lowest raw log-odds of any member in each stratum, shape (S,); NaN if there is none
    # Highest raw log-odds of any non-member in each stratum, shape (S,); NaN if there is none.
    highest_non_member: Floats
    num_models: int  # number of models that all this was learnt on

    def __call__(self, log_odds: AnyFloats, nodes: slice | Ints | Flags = slice(None)) -> Floats:
        """Recalibrated log-odds of all nodes or those at some places, of shape (K,) or (J, K)."""
        result, stratum = np.empty(log_odds.shape), self.stratum[nodes]
        for number, learnt in enumerate(self.maps):
            is_here = stratum == number
            result[..., is_here] = learnt(log_odds[..., is_here])
        return result

    def reachable(self) -> tuple[Floats, Floats]:
        """The lowest and the highest log-odds that are stated about each node, whatever a model answers, shape (K,)."""
        lowest, highest = np.array([learnt.log_odds[[0, -1]] for learnt in self.maps]).T
        return lowest[self.stratum], highest[self.stratum]

    def beyond(self, log_odds: AnyFloats) -> tuple[Flags, Flags]:
        """Which raw log-odds, shape (K,), exceed those of all non-members of a stratum; which lie below all members.

        A model that is none of the J, but trained like them, has such a non-member in a stratum with a probability of
        about 1/(J + 1): which of J + 1 models has the highest is chance.
        """
        # As precise as what they are compared with: no rounding makes one of two equal numbers the larger.
        values = np.asarray(log_odds, dtype=np.float32)
        return values > self.highest_non_member[self.stratum], values < self.lowest_member[self.stratum]


def _checked(log_odds: AnyFloats, memberships: Flags) -> tuple[AnyFloats, Flags]:
    values, truth = check_log_odds(log_odds, memberships)
    if truth.all() or not truth.any():
        raise InputError(
            f"memberships must hold both sides, got no {'non-member' if truth.size and truth.all() else 'member'}"
        )
    return values, truth


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often challenges of a stated probability are members: the data of a reliability diagram."""

    edges: Floats  # edges of the bins of stated probability, shape (B + 1,)
    num_challenges: Ints  # number of challenges in each bin, shape (B,)
    stated: Floats  # mean stated probability in each bin, shape (B,); NaN in empty bins
    observed: Floats  # share of members in each bin, shape (B,); NaN in empty bins

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
    """Compares stated probabilities with the truth, on models that nothing was learnt from; both of shape (J, K).

    Raises:
        InputError: if shapes differ, there is no member or no non-member, or log-odds are NaN.
    """
    values, truth = _checked(log_odds, memberships)
    counter = ReliabilityCounter(len(values), values.dtype, thread_count(None))
    counter.add(slice(0, len(values)), values, truth)
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

    def add(self, rows: slice, log_odds: AnyFloats, memberships: Flags) -> None:
        """Counts log-odds and memberships of some models about some nodes, one row a model."""
        counts = (self._number[rows], self._members[rows], self._total[rows])
        values, flags = np.ascontiguousarray(log_odds), as_bytes(memberships)
        _native.count_by_threshold(values, flags, self._thresholds, self._num_threads, *counts)

    def result(self) -> Reliability:
        """The comparison, after all nodes were added."""
        number, total, members = (counts.sum(axis=0) for counts in (self._number, self._total, self._members))
        with np.errstate(invalid="ignore"):
            return Reliability(np.array(EDGES), number, total / number, members / number)
