"""A density on an interval, given by its logarithm: located, approximated and integrated to many digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev

from bmpaudit.interfaces import Progress
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats, Ints


@cache
def legendre_rule(num_points: int) -> tuple[Floats, Floats]:
    """Points and weights on [-1, 1]."""
    points, weights = np.polynomial.legendre.leggauss(num_points)
    points.setflags(write=False)
    weights.setflags(write=False)
    return points, weights


def gauss_legendre(edges: Floats, num_points: int) -> tuple[Floats, Floats]:
    """Points and weights with `num_points` in each of the panels between neighbouring edges.

    >>> points, weights = gauss_legendre(np.array([0.0, 1.0, 3.0]), 2)
    >>> round(float(weights @ points**3), 9)
    20.25
    """
    points, weights = legendre_rule(num_points)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * points).ravel(), (half[:, None] * weights).ravel()


def gauss_of_measure(points: Floats, mass: Floats, num_points: int) -> tuple[Floats, Floats]:
    """The Gauss rule of a measure that is given by points and their mass: right for polynomials of degree 2n - 1.

    By Lanczos' method: the rule's points are the eigenvalues of a tridiagonal matrix.

    >>> points, weights = gauss_of_measure(np.linspace(-1, 1, 101), np.full(101, 1.0), 2)
    >>> bool(abs(weights @ points**2 - (np.linspace(-1, 1, 101) ** 2).sum()) < 1e-12)
    True
    """
    centre, scale = float(points.mean()), float(np.ptp(points)) or 1.0
    x = (points - centre) / scale
    num_points = min(num_points, int(np.count_nonzero(mass)))
    basis = np.zeros((num_points, len(x)))
    diagonal, beside = np.zeros(num_points), np.zeros(num_points)
    vector = np.sqrt(mass / mass.sum())
    for n in range(num_points):
        basis[n] = vector
        vector = x * basis[n]
        diagonal[n] = vector @ basis[n]
        for _ in range(2):  # once is not enough to keep them orthogonal
            vector = vector - basis[: n + 1].T @ (basis[: n + 1] @ vector)
        beside[n] = float(np.linalg.norm(vector))
        vector = vector / max(beside[n], 1e-300)
    matrix = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    values, vectors = np.linalg.eigh(matrix)
    return centre + scale * values, vectors[0] ** 2 * mass.sum()


# Progress through a search of which nobody knows beforehand how long it takes.


PARTS = 1_000
"""What an exact posterior reports when it is done."""


class Steps:
    """Each step takes a share of what is left, so that progress never goes back and never stands still.

    Args:
        progress: Called with the number of thousandths done.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress, self._reached, self._begun = progress, 0.0, 0.0

    def step(self, share: float, total: int) -> Progress:
        """Begins the next step, which takes a share of what is left; it is told how much of its total it has done."""
        start = self._begun
        self._begun = start + share * (1 - start)
        end = self._begun

        def update(done: int) -> None:
            self._reached = max(self._reached, start + (end - start) * min(1.0, done / max(total, 1)))
            self._progress(int(PARTS * self._reached))

        return update


# A density on an interval, given by its logarithm: located, approximated and integrated to many digits.


class LogFunction(Protocol):
    """The logarithm of a density, up to a constant; values below `cutoff` may be returned as -∞."""

    def __call__(self, x: Floats, cutoff: float, /) -> Floats: ...  # noqa: D102


NEGLIGIBLE = 42.0  # nats below the highest point: less than 1e-18 of it
SCAN_POINTS = 33
NEAR_THE_FLOOR = 10.0 ** np.arange(-9, -3)  # as shares of the scan's width
SCAN_PARTS = 3
ELSEWHERE = np.array([1e-7, 1e-5, 1e-3, 0.03, 0.1, 0.2, 0.3, 0.5])  # as shares of the range, where else to look
NEXT_TO_FLOOR = 1e-3  # of the range
FINE_DEGREE = 16  # of a panel's polynomial; its error is estimated from half of the points
TOLERANCE = 1e-9  # of the log-density, weighted by the density relative to its highest value
FAIR_TOLERANCE = 1e-6  # where another check follows
MOST_SPLITS = 40
NARROWEST = 2.0**16  # a panel of so few different numbers is not split: rounding makes it rough
MOST_PANELS = 2_000  # at once; a smooth logarithm takes dozens
ROUGH_ROUNDS = 6  # of a search that need not be precise
ROUNDS_AFTER_ROUGH = 16
EXPONENTIAL_TOLERANCE = 1e-13  # of a density relative to its highest value
TOWER = 5.0  # nats
MOST_EMPTY = 3  # nodes of a panel beyond the end of the support
EXTENSION = 0.25  # of the width found so far
LONG_EXTENSION = 3.0
MOST_HALVINGS = 5
BISECTIONS = 53
LAST_DIGITS = 4  # units in the last place by which a root may be off
QUANTILES_AT_ONCE = 20_000


_DEGREES = np.arange(FINE_DEGREE + 1)
_UNIT_NODES = np.cos(np.pi * _DEGREES[::-1] / FINE_DEGREE)  # every other one makes a set of half the degree
_AT_NODES = np.polynomial.chebyshev.chebvander(_UNIT_NODES, FINE_DEGREE)
_TO_SERIES = np.linalg.inv(_AT_NODES)  # from values at a panel's nodes to Chebyshev coefficients
# From values at the nodes to how steeply the polynomial rises inwards from either end.
_SLOPES = -np.stack([(-1.0) ** _DEGREES, np.ones(len(_DEGREES))]) * _DEGREES**2 @ _TO_SERIES
_TO_HALF_SERIES = np.linalg.inv(_AT_NODES[::2, : FINE_DEGREE // 2 + 1])


@dataclass(frozen=True, eq=False)
class PiecewiseDensity:
    """A normalised density, one Chebyshev polynomial per panel.

    Attributes:
        edges: Ends of the panels, ascending, shape (P + 1,).
        panels: Density on each panel.
        log_mass: Logarithm of the integral before normalisation.
    """

    edges: Floats
    panels: tuple[Chebyshev, ...]
    log_mass: float

    def pdf(self, x: npt.ArrayLike) -> Floats:
        """The density; 0 outside the panels."""
        points = np.asarray(x, dtype=np.float64)
        inside = (points >= self.edges[0]) & (points <= self.edges[-1])
        values = np.zeros_like(points)
        values[inside] = np.maximum(self._pieces.density(points[inside]), 0.0)
        return values

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """The distribution function."""
        points = np.asarray(x, dtype=np.float64)
        inside = (points >= self.edges[0]) & (points < self.edges[-1])
        values = np.where(points >= self.edges[-1], 1.0, 0.0)
        values[inside] = self._pieces.mass_below(points[inside])
        return np.clip(values, 0.0, 1.0)

    def quantile(self, probability: npt.ArrayLike) -> Floats:
        """The inverse of `cdf`."""
        wanted = np.asarray(probability, dtype=np.float64)
        if not ((wanted > 0) & (wanted < 1)).all():
            raise InputError(f"a quantile's probability must be in (0, 1), got {probability!r}")
        levels = wanted.ravel() * self._pieces.mass
        parts = np.array_split(levels, max(1, -(-levels.size // QUANTILES_AT_ONCE)))
        return np.concatenate([self._pieces.inverse(part) for part in parts]).reshape(wanted.shape)

    def mean(self) -> float:
        """The expectation."""
        return self._moment(lambda x: x)

    def variance(self) -> float:
        """The variance."""
        mean = self.mean()
        return self._moment(lambda x: (x - mean) ** 2)

    @cached_property
    def _pieces(self) -> _Pieces:
        return _Pieces(self.edges, self.panels)

    def _moment(self, function: Callable[[Floats], Floats]) -> float:
        points, weights = gauss_legendre(self.edges, 2 * FINE_DEGREE)
        return float((weights * self._pieces.density(points) * function(points)).sum())


class _Pieces:
    """The polynomials of all panels in one table, so that points of different panels are evaluated at once."""

    def __init__(self, edges: Floats, panels: tuple[Chebyshev, ...]) -> None:
        self._edges, self._half = edges, np.diff(edges) / 2
        size = max(len(panel.coef) for panel in panels)
        self._series: Floats = np.zeros((len(panels), size))
        for series, panel in zip(self._series, panels, strict=True):
            series[: len(panel.coef)] = panel.coef
        integrals: Floats = np.polynomial.chebyshev.chebint(self._series.T, lbnd=-1).T * self._half[:, None]
        self._below = np.concatenate(
            [[0.0], np.cumsum(integrals.sum(axis=1))]
        )  # every polynomial of Chebyshev is 1 at 1
        self._integrals = integrals

    @property
    def mass(self) -> float:
        """The integral over all panels."""
        return float(self._below[-1])

    def density(self, points: Floats) -> Floats:
        """The polynomials at points within the panels."""
        numbers = self._numbers(points)
        return self._at(self._series, numbers, points)

    def mass_below(self, points: Floats) -> Floats:
        """The integral up to points within the panels."""
        numbers = self._numbers(points)
        return self._below[numbers] + self._at(self._integrals, numbers, points)

    def inverse(self, levels: Floats) -> Floats:
        """Where the integral reaches each of the levels, to the last digits.

        Newton's method, with bisection where it leaves what is known to hold the root.
        """
        numbers = np.clip(np.searchsorted(self._below, levels, side="right") - 1, 0, len(self._half) - 1)
        left, right = self._edges[numbers], self._edges[numbers + 1]
        wanted = levels - self._below[numbers]
        x = (left + right) / 2
        for _ in range(BISECTIONS):
            basis = self._basis(numbers, x)
            missing = wanted - (self._integrals[numbers] * basis).sum(axis=1)
            height = (self._series[numbers] * basis[:, :-1]).sum(axis=1)
            left, right = np.where(missing > 0, x, left), np.where(missing > 0, right, x)
            with np.errstate(all="ignore"):
                newton = x + missing / height
            is_there = (np.abs(newton - x) <= LAST_DIGITS * np.spacing(np.abs(x))) | (right - left <= np.spacing(left))
            if is_there.all():
                return x
            following = np.where((newton > left) & (newton < right), newton, (left + right) / 2)
            x = np.where(is_there, x, following)
        return x

    def _numbers(self, points: Floats) -> Ints:
        return np.clip(np.searchsorted(self._edges, points, side="right") - 1, 0, len(self._half) - 1)

    def _basis(self, numbers: Ints, points: Floats, degree: int | None = None) -> Floats:
        position = (points - self._edges[numbers]) / self._half[numbers] - 1
        most = self._integrals.shape[1] - 1 if degree is None else degree
        return np.asarray(np.polynomial.chebyshev.chebvander(position, most), dtype=np.float64)

    def _at(self, series: Floats, numbers: Ints, points: Floats) -> Floats:
        return (series[numbers] * self._basis(numbers, points, series.shape[1] - 1)).sum(axis=-1)


def approximate_density(
    log_density: LogFunction,
    low: float,
    high: float,
    rough: LogFunction | None = None,
    tolerance: float = TOLERANCE,
) -> PiecewiseDensity:
    """Locates a density on (low, high), however narrow, and approximates it there.

    Args:
        log_density: Called with an array and a cutoff; -∞ where the density is 0.
        low: Lower end of the support.
        high: Upper end, beyond which the density is negligible.
        rough: A density that is nearly as high in the same places, to search with if it is much faster. What comes out
            is checked against `log_density`: it changes nothing but the time.
        tolerance: Error of the log-density, weighted by the density relative to its highest value.

    Raises:
        InputError: if the density is 0 wherever it was evaluated.
    """
    return _normalised(*_resolved_panels(log_density, low, high, rough, tolerance=tolerance))


def panel_edges(log_density: LogFunction, low: float, high: float, negligible: float = NEGLIGIBLE) -> Floats:
    """Ends of the panels on which polynomials of degree 16 approximate the log-density fairly well, ascending."""
    panels, _ = _resolved_panels(log_density, low, high, tolerance=FAIR_TOLERANCE, negligible=negligible)
    return np.array([panels[0].low, *(panel.high for panel in panels)])


@dataclass(frozen=True, eq=False)
class _Panel:
    """An interval with the log-density at its nodes."""

    low: float
    high: float
    logs: Floats

    def is_filled(self, depth: float) -> bool:
        return bool(self.logs.max() > depth)

    def parts(self, depth: float) -> list[tuple[float, float]]:
        """Where to look more closely: at its two halves, or at what is left without long stretches of nothing."""
        nodes, filled = _nodes(self.low, self.high), np.flatnonzero(self.logs > depth)
        # Between two peaks, or before or after all.
        breaks = np.flatnonzero(np.diff(filled) > MOST_EMPTY)
        first, last = filled[np.append(0, breaks + 1)], filled[np.append(breaks, len(filled) - 1)]
        lows = np.where(first > MOST_EMPTY, nodes[np.maximum(first - 1, 0)], self.low)
        highs = np.where(last < FINE_DEGREE - MOST_EMPTY, nodes[np.minimum(last + 1, FINE_DEGREE)], self.high)
        lows[1:], highs[:-1] = nodes[first[1:] - 1], nodes[last[:-1] + 1]
        if len(lows) == 1 and (lows[0], highs[0]) == (self.low, self.high):
            middle = (self.low + self.high) / 2
            return [(self.low, middle), (middle, self.high)]
        return list(zip(lows.tolist(), highs.tolist(), strict=True))

    def beyond(self, depth: float, width: float) -> tuple[float, float]:
        """How far the density may go on before its low and after its high end until it falls to `depth`.

        No further if its logarithm is concave and falls outwards. If it rises, the peak may be far.
        """
        # Values that were cut off say nothing of a slope: they would make it infinite.
        slopes = _SLOPES @ np.maximum(self.logs, depth - NEGLIGIBLE) * 2 / (self.high - self.low)
        excess = np.maximum([self.logs[0] - depth, self.logs[-1] - depth], 0.0) + 1.0
        falling = np.minimum(excess / np.maximum(slopes, 1e-300), EXTENSION * width)
        rises = [self.logs[0] == self.logs.max(), self.logs[-1] == self.logs.max()]
        before, after = np.where(rises, LONG_EXTENSION * width, np.where(slopes > 0, falling, EXTENSION * width))
        return float(before), float(after)


class _LedAstray(Exception):  # noqa: N818 - no error: one searches without the rough density
    """A rough density is highest where the density itself is not."""


class _Witness:
    """The density itself at a few places of the whole range: of two peaks far apart, a rough one may take the wrong."""

    def __init__(self, log_density: LogFunction, low: float, high: float) -> None:
        self._log_density = log_density
        self._points: Floats = low + (high - low) * ELSEWHERE
        self._floor = low + (high - low) * NEXT_TO_FLOOR
        self._values = np.full(len(ELSEWHERE), np.nan)

    def check_scan(self, scanned: Floats, rough_values: Floats) -> None:
        """Raises `_LedAstray` if a rough density has its peak at the floor, where it takes long, and wrongly so."""
        at = scanned[[int(rough_values.argmax())]]
        if at[0] > self._floor:
            return
        highest = self.highest_beyond(at[0], self._floor, -np.inf)
        if self._log_density(at, highest - NEGLIGIBLE)[0] < highest - NEGLIGIBLE:
            raise _LedAstray

    def highest_beyond(self, low: float, high: float, cutoff: float) -> float:
        """The highest of its values outside an interval; one below the cutoff may come out as -∞."""
        is_beyond = (self._points < low) | (self._points > high)
        is_asked = is_beyond & np.isnan(self._values)
        if is_asked.any():
            self._values[is_asked] = self._log_density(self._points[is_asked], cutoff)
        return float(self._values[is_beyond].max(initial=-np.inf))


def _resolved_panels(
    log_density: LogFunction,
    low: float,
    high: float,
    rough: LogFunction | None = None,
    most_rounds: int = MOST_SPLITS,
    tolerance: float = TOLERANCE,
    negligible: float = NEGLIGIBLE,
    witness: _Witness | None = None,
) -> tuple[list[_Panel], float]:
    """Panels on which the log-density is known well enough, side by side, and its highest value.

    After fewer than MOST_SPLITS rounds the last ones are given as they are. If the density is a rough one, a witness
    is asked whether it leads astray.
    """
    if rough is None:
        edges, peak = _find_support(log_density, low, high, witness)
        waiting = list(pairwise(edges))
    else:
        witness = _Witness(log_density, low, high)
        try:
            panels, _ = _resolved_panels(rough, low, high, most_rounds=ROUGH_ROUNDS, witness=witness)
        except _LedAstray:
            return _resolved_panels(log_density, low, high, tolerance=tolerance)
        waiting = [(panel.low, panel.high) for panel in panels]
        highest = max(panels, key=lambda panel: float(panel.logs.max()))
        point = _nodes(highest.low, highest.high)[[int(highest.logs.argmax())]]
        peak = float(log_density(point, -np.inf)[0])  # shows what is negligible
        if witness.highest_beyond(panels[0].low, panels[-1].high, peak - NEGLIGIBLE) > peak - NEGLIGIBLE:
            return _resolved_panels(log_density, low, high, tolerance=tolerance)
    accepted: list[_Panel] = []
    for number in range(MOST_SPLITS if rough is None else ROUNDS_AFTER_ROUGH):
        if not waiting:
            return _without_gaps(accepted, peak), peak
        if len(waiting) > MOST_PANELS:
            break
        points = np.stack([_nodes(a, b) for a, b in waiting])
        values = log_density(points.ravel(), peak - 2 * NEGLIGIBLE).reshape(points.shape)
        known = accepted + [_Panel(a, b, logs) for (a, b), logs in zip(waiting, values, strict=True)]
        known.sort(key=lambda panel: panel.low)
        peak = max(float(panel.logs.max()) for panel in known)
        if peak == -np.inf:
            raise InputError("the posterior is 0 everywhere: these priors leave no ε possible")
        depth = peak - negligible
        filled = [number for number, panel in enumerate(known) if panel.is_filled(depth)]
        known, accepted, waiting = known[filled[0] : filled[-1] + 1], [], []
        if number + 1 == most_rounds < MOST_SPLITS:
            return _without_gaps(known, peak), peak
        left, right = known[0].low, known[-1].high
        for panel in known:
            is_narrow = panel.high - panel.low < NARROWEST * np.spacing(max(abs(panel.low), abs(panel.high)))
            if is_narrow or _is_resolved(panel.logs - peak, tolerance * (right - left) / (panel.high - panel.low)):
                accepted.append(panel)
            else:
                waiting += panel.parts(depth) if panel.is_filled(depth) else []
        # Where the density is not negligible at an end, it goes on beyond it.
        if left > low and known[0].logs[0] > depth:
            waiting.append((max(low, left - known[0].beyond(depth, right - left)[0]), left))
        if right < high and known[-1].logs[-1] > depth:
            waiting.append((right, min(high, right + known[-1].beyond(depth, right - left)[1])))
    if rough is not None:  # it led astray
        return _resolved_panels(log_density, low, high, tolerance=tolerance)
    raise InputError("the density could not be resolved: is its logarithm smooth?")


def _without_gaps(panels: list[_Panel], peak: float) -> list[_Panel]:
    """The panels side by side, with negligible ones where nothing was between them."""
    nothing = np.full(FINE_DEGREE + 1, peak - 2 * NEGLIGIBLE)
    gaps = [_Panel(one.high, other.low, nothing) for one, other in pairwise(panels) if one.high < other.low]
    return sorted([*panels, *gaps], key=lambda panel: panel.low)


def _find_support(
    log_density: LogFunction, low: float, high: float, witness: _Witness | None = None
) -> tuple[list[float], float]:
    """Zooms in on the highest point until the part that is not negligible fills a good share of the scan.

    Gives the ends of the support, with the neighbours of the highest point between them if it towers above these, and
    the height.
    """
    left, right, peak = low, high, -np.inf
    points, values = np.empty(0), np.empty(0)
    # Points cluster at both ends, where a support may begin abruptly; scans from the floor on begin very close to it,
    # where thousands of nodes without leakage make a peak as narrow as it is high.
    crowded = 0.5 * (1 - np.cos(np.pi * (np.arange(SCAN_POINTS) + 0.5) / SCAN_POINTS))
    for number in range(60):
        shares = np.union1d(crowded, NEAR_THE_FLOOR) if left == low else crowded
        # From the top down, where likelihoods are flat: their values show what is negligible further down.
        for part in np.array_split(left + (right - left) * shares[::-1], SCAN_PARTS):
            found = log_density(part, peak - 2 * NEGLIGIBLE)
            peak = max(peak, float(found.max()))
            points, values = np.append(points, part), np.append(values, found)
        if peak == -np.inf:
            raise InputError("the posterior is 0 everywhere: these priors leave no ε possible")
        order = np.argsort(points)
        points, values = points[order], values[order]
        if witness is not None and number == 0:
            witness.check_scan(points, values)
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


def _nodes(a: float, b: float) -> Floats:
    """Chebyshev points of the second kind, just inside the ends."""
    return (a + b) / 2 + (b - a) / 2 * _UNIT_NODES * (1 - 1e-12)


def _is_resolved(logs: Floats, tolerance: float) -> bool:
    """Whether a panel is approximated well enough for the density it has: the narrower it is, the more may be off."""
    if not np.isfinite(logs).all():
        # The support begins in this panel, or the density is negligible here.
        return bool(logs.max() < -NEGLIGIBLE or tolerance > 1)
    coefficients, half = _TO_SERIES @ logs, _TO_HALF_SERIES @ logs[::2]
    difference = np.abs(_AT_NODES[:, : len(half)] @ half - logs)
    # From half the degree to the full one the error falls as the coefficients do: fast if the logarithm is smooth,
    # slowly where it is not.
    fall = np.abs(coefficients[-3:]).max() / max(np.abs(coefficients[FINE_DEGREE // 2 - 2 :]).max(), 1e-300)
    return bool((difference * np.exp(np.minimum(logs, 0.0))).max() * fall < tolerance)


def exponential(series: Chebyshev, most_halvings: int = MOST_HALVINGS) -> list[Chebyshev]:
    """The exponential of a panel's polynomial, as polynomials of higher degree on as many parts as that takes.

    That of a parabola, which is a normal density, takes several.
    """
    coefficients = np.asarray(series.coef, dtype=np.float64)
    to_series, at_points = _interpolation(2 * FINE_DEGREE + 1, len(coefficients))
    whole = to_series @ np.exp(at_points @ coefficients)
    low, high = series.domain
    if most_halvings == 0 or np.abs(whole[-2:]).max() < EXPONENTIAL_TOLERANCE:
        return [Chebyshev(whole, domain=[low, high])]
    middle = (low + high) / 2
    halves = zip(_to_halves(len(coefficients)), ([low, middle], [middle, high]), strict=True)
    parts = [Chebyshev(to_half @ coefficients, domain=domain) for to_half, domain in halves]
    return [part for each in parts for part in exponential(each, most_halvings - 1)]


@cache
def _interpolation(num_points: int, size: int) -> tuple[Floats, Floats]:
    """From values at Chebyshev points to their series, and from a series of some size to values there."""
    points = np.polynomial.chebyshev.chebpts1(num_points)
    vandermonde = np.polynomial.chebyshev.chebvander(points, num_points - 1)
    to_series = vandermonde.T * np.where(np.arange(num_points) == 0, 1, 2)[:, None] / num_points
    return to_series, np.asarray(np.polynomial.chebyshev.chebvander(points, size - 1), dtype=np.float64)


@cache
def _to_halves(size: int) -> tuple[Floats, Floats]:
    """From a series to those of the same polynomial on the lower and on the upper half of its panel."""
    points, (to_series, _) = np.polynomial.chebyshev.chebpts1(size), _interpolation(size, size)
    lower, upper = (
        to_series @ np.polynomial.chebyshev.chebvander((points + centre) / 2, size - 1) for centre in (-1, 1)
    )
    return lower, upper


def _normalised(panels: list[_Panel], peak: float) -> PiecewiseDensity:
    densities = []
    for panel in panels:
        finite = np.where(np.isfinite(panel.logs), panel.logs, peak - 2 * NEGLIGIBLE)
        densities += exponential(Chebyshev(_TO_SERIES @ (finite - peak), domain=[panel.low, panel.high]))
    return piecewise_density(densities, peak)


def piecewise_density(panels: list[Chebyshev], log_scale: float) -> PiecewiseDensity:
    """The density that is e^log_scale times some polynomials, side by side, normalised."""
    edges = np.array([panels[0].domain[0], *(panel.domain[1] for panel in panels)])
    mass = _Pieces(edges, tuple(panels)).mass
    return PiecewiseDensity(edges, tuple(panel / mass for panel in panels), log_scale + float(np.log(mass)))
