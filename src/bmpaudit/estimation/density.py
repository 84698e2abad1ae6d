"""A density on an interval, given by its logarithm: located, approximated and integrated to many digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats, Ints

# The logarithm of a density, up to a constant; values below the second argument may be returned as -∞.
LogFunction = Callable[[Floats, float], Floats]

NEGLIGIBLE = 42.0  # nats below the highest point: less than 1e-18 of it
NOTHING = 2 * NEGLIGIBLE  # nats below the highest point, where a density counts as 0
SCAN_POINTS = 33
MOST_SCANS = 60
NEAR_THE_FLOOR = 10.0 ** np.arange(-9, -3)  # as shares of the scan's width
SCAN_PARTS = 3
TOWER = 5.0  # nats
FINE_DEGREE = 16  # of a panel's polynomial; its error is estimated from half of the points
TOLERANCE = 1e-9  # of the log-density, weighted by the density relative to its highest value
FAIR_TOLERANCE = 1e-6  # where another check follows
MOST_SPLITS = 40
MOST_EMPTY = 3  # nodes at the end of a panel
MOST_PANELS = 2_000  # at once; a smooth logarithm takes dozens
NARROWEST = 2.0**16  # a panel of so few different numbers is not split: rounding makes it rough
EXPONENTIAL_TOLERANCE = 1e-13  # of a density relative to its highest value
SMALLEST_PART = 1 / 32  # of a panel
BISECTIONS = 53
LAST_DIGITS = 4  # units in the last place by which a root may be off
QUANTILES_AT_ONCE = 20_000


legendre_rule = cache(np.polynomial.legendre.leggauss)  # points and weights on [-1, 1]


def gauss_legendre(edges: Floats, num_points: int) -> tuple[Floats, Floats]:
    """Points and weights with `num_points` in each of the panels between neighbouring edges.

    >>> points, weights = gauss_legendre(np.array([0.0, 1.0, 3.0]), 2)
    >>> round(float(weights @ points**3), 9)
    20.25
    """
    points, weights = legendre_rule(num_points)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * points).ravel(), (half[:, None] * weights).ravel()


@dataclass(frozen=True, eq=False)
class PiecewiseDensity:
    """A normalised density, one Chebyshev polynomial per panel."""

    edges: Floats  # ends of the panels, ascending, shape (P + 1,)
    coefficients: Floats  # Chebyshev coefficients of the density on each panel, mapped to [-1, 1], shape (P, D)
    log_mass: float  # logarithm of the integral before normalisation

    @classmethod
    def normalised(cls, edges: Floats, coefficients: Floats, log_scale: float) -> PiecewiseDensity:
        """The density that is proportional to some polynomials; the integral counts e^log_scale times."""
        mass = cls(edges, coefficients, 0.0)._mass_below[-1]
        return cls(edges, coefficients / mass, log_scale + float(np.log(mass)))

    @classmethod
    def from_logs(cls, edges: Floats, series: Floats, log_scale: float) -> PiecewiseDensity:
        """The density whose logarithm, less `log_scale`, is a Chebyshev series on each panel, normalised."""
        parts = [
            (high if end == 1 else low + (high - low) * end, coefficients)
            for low, high, of_panel in zip(edges[:-1], edges[1:], series, strict=True)
            for end, coefficients in _exponential(of_panel, 0.0, 1.0)
        ]
        finer = np.array([edges[0], *(end for end, _ in parts)])
        return cls.normalised(finer, np.stack([coefficients for _, coefficients in parts]), log_scale)

    def pdf(self, x: npt.ArrayLike) -> Floats:
        """The density; 0 outside the panels."""
        points = np.asarray(x, dtype=np.float64)
        inside = (points >= self.edges[0]) & (points <= self.edges[-1])
        values = np.zeros_like(points)
        values[inside] = np.maximum(self._at(self.coefficients, self._panel(points[inside]), points[inside]), 0.0)
        return values

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """The distribution function."""
        points = np.asarray(x, dtype=np.float64)
        inside = (points >= self.edges[0]) & (points < self.edges[-1])
        panel = self._panel(points[inside])
        values = np.where(points >= self.edges[-1], 1.0, 0.0)
        values[inside] = self._mass_below[panel] + self._at(self._integrals, panel, points[inside])
        return np.clip(values, 0.0, 1.0)

    def quantile(self, probability: npt.ArrayLike) -> Floats:
        """The inverse of `cdf`."""
        wanted = np.asarray(probability, dtype=np.float64)
        if not ((wanted > 0) & (wanted < 1)).all():
            raise InputError(f"a quantile's probability must be in (0, 1), got {probability!r}")
        levels = wanted.ravel() * self._mass_below[-1]
        parts = np.array_split(levels, max(1, -(-levels.size // QUANTILES_AT_ONCE)))
        return np.concatenate([self._inverse(part) for part in parts]).reshape(wanted.shape)

    def mean(self) -> float:
        """The expectation."""
        points, weights = gauss_legendre(self.edges, 2 * FINE_DEGREE)
        return float((weights * self._at(self.coefficients, self._panel(points), points) * points).sum())

    @cached_property
    def _integrals(self) -> Floats:
        """Series of the integral from the start of each panel, shape (P, D + 1)."""
        return chebyshev.chebint(self.coefficients.T, lbnd=-1).T * (np.diff(self.edges) / 2)[:, None]

    @cached_property
    def _mass_below(self) -> Floats:
        """The integral up to each edge, shape (P + 1,): every polynomial of Chebyshev is 1 at 1."""
        return np.concatenate([[0.0], np.cumsum(self._integrals.sum(axis=1))])

    def _panel(self, points: Floats) -> Ints:
        return np.clip(np.searchsorted(self.edges, points, side="right") - 1, 0, len(self.edges) - 2)

    def _at(self, series: Floats, panel: Ints, points: Floats) -> Floats:
        """Series of the panels that points lie in, at these."""
        low, high = self.edges[panel], self.edges[panel + 1]
        return np.asarray(chebyshev.chebval(2 * (points - low) / (high - low) - 1, series[panel].T, tensor=False))

    def _inverse(self, levels: Floats) -> Floats:
        """Where the integral reaches each of the levels, to the last digits.

        Newton's method, with bisection where it leaves what is known to hold the root.
        """
        panel = np.clip(np.searchsorted(self._mass_below, levels, side="right") - 1, 0, len(self.edges) - 2)
        left, right = self.edges[panel], self.edges[panel + 1]
        wanted = levels - self._mass_below[panel]
        x = (left + right) / 2
        for _ in range(BISECTIONS):
            missing = wanted - self._at(self._integrals, panel, x)
            left, right = np.where(missing > 0, x, left), np.where(missing > 0, right, x)
            with np.errstate(all="ignore"):
                newton = x + missing / self._at(self.coefficients, panel, x)
            is_there = (np.abs(newton - x) <= LAST_DIGITS * np.spacing(np.abs(x))) | (right - left <= np.spacing(left))
            if is_there.all():
                break
            following = np.where((newton > left) & (newton < right), newton, (left + right) / 2)
            x = np.where(is_there, x, following)
        return x


def _exponential(series: Floats, start: float, end: float) -> list[tuple[float, Floats]]:
    """The exponential of a panel's polynomial: series of higher degree of as many parts as that takes, by their ends.

    That of a parabola, which is a normal density, takes several. Ends are shares of the panel.
    """

    def exponential(x: Any) -> Any:
        return np.exp(chebyshev.chebval(start + end - 1 + (end - start) * x, series))

    whole = chebyshev.chebinterpolate(exponential, 2 * FINE_DEGREE)
    if end - start <= SMALLEST_PART or np.abs(whole[-2:]).max() < EXPONENTIAL_TOLERANCE:
        return [(end, whole)]
    middle = (start + end) / 2
    return [*_exponential(series, start, middle), *_exponential(series, middle, end)]


# Locating and approximating


def approximate_density(
    log_density: LogFunction, low: float, high: float, tolerance: float = TOLERANCE
) -> PiecewiseDensity:
    """Locates a density on (low, high), however narrow, and approximates it there.

    It is negligible beyond `high`. The tolerance is that of the log-density, weighted by the density relative to its
    highest value. An `InputError` if the density is 0 wherever it was evaluated.
    """
    edges, logs, peak = _resolved_panels(log_density, low, high, tolerance, NEGLIGIBLE)
    series = np.where(np.isfinite(logs), logs - peak, -NOTHING) @ _TO_SERIES.T
    return PiecewiseDensity.from_logs(edges, series, peak)


def panel_edges(log_density: LogFunction, low: float, high: float, negligible: float) -> Floats:
    """Ends of the panels on which polynomials of degree 16 approximate the log-density fairly well, ascending."""
    return _resolved_panels(log_density, low, high, FAIR_TOLERANCE, negligible)[0]


class _Panel(NamedTuple):
    """An interval with the log-density at its nodes."""

    low: float
    high: float
    logs: Floats


def _resolved_panels(
    log_density: LogFunction, low: float, high: float, tolerance: float, negligible: float
) -> tuple[Floats, Floats, float]:
    """Ends of panels on which the log-density is known well enough, its values at their nodes, and the highest one."""
    ends, peak = _find_support(log_density, low, high)
    waiting, accepted = list(pairwise(ends)), list[_Panel]()
    for _ in range(MOST_SPLITS):
        if not waiting:
            accepted.sort(key=lambda panel: panel.low)
            edges = [accepted[0].low, *(panel.high for panel in accepted)]
            return np.array(edges), np.stack([panel.logs for panel in accepted]), peak
        if len(waiting) > MOST_PANELS:
            break
        points = np.stack([_nodes(a, b) for a, b in waiting])
        values = log_density(points.ravel(), peak - NOTHING).reshape(points.shape)
        known = accepted + [_Panel(a, b, logs) for (a, b), logs in zip(waiting, values, strict=True)]
        known.sort(key=lambda panel: panel.low)
        peak = max(float(panel.logs.max()) for panel in known)
        is_filled = [bool(panel.logs.max() > peak - negligible) for panel in known]
        first, last = is_filled.index(True), len(known) - is_filled[::-1].index(True)
        width = known[last - 1].high - known[first].low
        nothing = np.full(FINE_DEGREE + 1, peak - NOTHING)
        accepted, waiting = [], []
        for panel, counts in zip(known[first:last], is_filled[first:last], strict=True):
            share = (panel.high - panel.low) / width
            is_narrow = panel.high - panel.low < NARROWEST * np.spacing(max(abs(panel.low), abs(panel.high)))
            if not counts:
                accepted.append(panel._replace(logs=nothing))
            elif is_narrow or _is_resolved(panel.logs - peak, tolerance / share):
                accepted.append(panel)
            else:
                # Without long stretches of nothing at its ends or, if there are none, in halves.
                nodes, filled = _nodes(panel.low, panel.high), np.flatnonzero(panel.logs > peak - negligible)
                start = float(nodes[filled[0] - 1]) if filled[0] > MOST_EMPTY else panel.low
                stop = float(nodes[filled[-1] + 1]) if filled[-1] < FINE_DEGREE - MOST_EMPTY else panel.high
                if (start, stop) == (panel.low, panel.high):
                    waiting += pairwise([start, (start + stop) / 2, stop])
                else:
                    waiting.append((start, stop))
                    empty = ((panel.low, start), (stop, panel.high))
                    accepted += [_Panel(a, b, nothing) for a, b in empty if a < b]
    raise InputError("the density could not be resolved: is its logarithm smooth?")


def _find_support(log_density: LogFunction, low: float, high: float) -> tuple[list[float], float]:
    """Zooms in on the highest point until the part that is not negligible fills a good share of the scan.

    Gives the ends of the support, with the neighbours of the highest point between them if it towers above these, and
    the height.
    """
    left, right, peak, points, values = low, high, -np.inf, np.empty(0), np.empty(0)
    # Points cluster at both ends, where a support may begin abruptly; scans from the floor on begin very close to it,
    # where thousands of nodes without leakage make a peak as narrow as it is high.
    crowded = 0.5 * (1 - np.cos(np.pi * (np.arange(SCAN_POINTS) + 0.5) / SCAN_POINTS))
    for _ in range(MOST_SCANS):
        shares = np.union1d(crowded, NEAR_THE_FLOOR) if left == low else crowded
        # From the top down, where likelihoods are flat: their values show what is negligible further down.
        for part in np.array_split(left + (right - left) * shares[::-1], SCAN_PARTS):
            found = log_density(part, peak - NOTHING)
            peak = max(peak, float(found.max()))
            points, values = np.append(points, part), np.append(values, found)
        if peak == -np.inf:
            raise InputError("the posterior is 0 everywhere: these priors leave no ε possible")
        order = np.argsort(points)
        points, values = points[order], values[order]
        high_enough = np.flatnonzero(values > peak - NEGLIGIBLE)
        first, last = int(high_enough[0]), int(high_enough[-1])
        new_left = left if first == 0 else float(points[first - 1])
        new_right = right if last == len(points) - 1 else float(points[last + 1])
        is_done = len(high_enough) >= SCAN_POINTS // 3 or (new_left, new_right) == (left, right)
        left, right = new_left, new_right
        if is_done:
            break
    best = int(values.argmax())
    around = slice(max(best - 1, 0), best + 2)
    is_tower = np.sort(values[around])[-2] < peak - TOWER
    between = points[around][points[around] != points[best]].tolist() if is_tower else []
    return sorted({left, right, *(x for x in between if left < x < right)}), peak


_UNIT_NODES = np.cos(np.pi * np.arange(FINE_DEGREE, -1, -1) / FINE_DEGREE)  # every other one: a set of half the degree
_AT_NODES = chebyshev.chebvander(_UNIT_NODES, FINE_DEGREE)
_TO_SERIES = np.linalg.inv(_AT_NODES)  # from values at a panel's nodes to Chebyshev coefficients
_TO_HALF_SERIES = np.linalg.inv(_AT_NODES[::2, : FINE_DEGREE // 2 + 1])


def _nodes(a: float, b: float) -> Floats:
    """Chebyshev points of the second kind, just inside the ends."""
    return (a + b) / 2 + (b - a) / 2 * _UNIT_NODES * (1 - 1e-12)


def _is_resolved(logs: Floats, tolerance: float) -> bool:
    """Whether a panel is approximated well enough for the density it has: the narrower it is, the more may be off."""
    if not np.isfinite(logs).all():
        # The support begins in this panel.
        return tolerance > 1
    coefficients, half = _TO_SERIES @ logs, _TO_HALF_SERIES @ logs[::2]
    difference = np.abs(_AT_NODES[:, : len(half)] @ half - logs)
    # From half the degree to the full one the error falls as the coefficients do: fast if the logarithm is smooth,
    # slowly where it is not.
    fall = np.abs(coefficients[-3:]).max() / max(np.abs(coefficients[FINE_DEGREE // 2 - 2 :]).max(), 1e-300)
    return bool((difference * np.exp(np.minimum(logs, 0.0))).max() * fall < tolerance)
