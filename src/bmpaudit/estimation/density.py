"""A density on an interval, given by its logarithm: located, approximated and integrated to many digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.estimation.quadrature import gauss_legendre


class LogFunction(Protocol):
    """The logarithm of a density, up to a constant; values below `cutoff` may be returned as -∞."""

    def __call__(self, x: Floats, cutoff: float, /) -> Floats: ...  # noqa: D102


NEGLIGIBLE = 42.0  # nats below the highest point: less than 1e-18 of it
SCAN_POINTS = 33
NEAR_THE_FLOOR = 10.0 ** np.arange(-9, -3)  # as shares of the scan's width
SCAN_PARTS = 3
FINE_DEGREE = 16  # of a panel's polynomial; its error is estimated from the polynomial of half the degree
TOLERANCE = 1e-9  # of the log-density, weighted by the density relative to its highest value
MOST_SPLITS = 40
BISECTIONS = 53


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
        values = np.zeros_like(points)
        for low, high, panel in zip(self.edges[:-1], self.edges[1:], self.panels, strict=True):
            inside = (points >= low) & (points <= high)
            values[inside] = np.maximum(panel(points[inside]), 0.0)
        return values

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """The distribution function."""
        points = np.asarray(x, dtype=np.float64)
        below = np.concatenate([[0.0], np.cumsum(self._masses())])
        values = np.where(points >= self.edges[-1], 1.0, 0.0)
        for number, (low, high, panel) in enumerate(zip(self.edges[:-1], self.edges[1:], self.panels, strict=True)):
            inside = (points >= low) & (points < high)
            values[inside] = below[number] + panel.integ(lbnd=low)(points[inside])
        return np.clip(values, 0.0, 1.0)

    def quantile(self, probability: npt.ArrayLike) -> Floats:
        """The inverse of `cdf`."""
        wanted = np.atleast_1d(np.asarray(probability, dtype=np.float64))
        if not ((wanted > 0) & (wanted < 1)).all():
            raise InputError(f"a quantile's probability must be in (0, 1), got {probability!r}")
        below = np.concatenate([[0.0], np.cumsum(self._masses())])
        targets = wanted.ravel() * below[-1]
        numbers = np.clip(np.searchsorted(below, targets, side="right") - 1, 0, len(self.panels) - 1)
        quantiles = np.empty(targets.size)
        for number in np.unique(numbers):
            here = numbers == number
            mass = self.panels[number].integ(lbnd=self.edges[number])
            quantiles[here] = _roots(mass, targets[here] - below[number], self.edges[number], self.edges[number + 1])
        return quantiles.reshape(np.shape(probability))

    def mean(self) -> float:
        """The expectation."""
        return self._moment(lambda x: x)

    def variance(self) -> float:
        """The variance."""
        mean = self.mean()
        return self._moment(lambda x: (x - mean) ** 2)

    def _masses(self) -> Floats:
        ends = zip(self.edges[:-1], self.edges[1:], self.panels, strict=True)
        return np.array([float(panel.integ(lbnd=low)(high)) for low, high, panel in ends])

    def _moment(self, function: Callable[[Floats], Floats]) -> float:
        points, weights = gauss_legendre(self.edges, 2 * FINE_DEGREE)
        rows = points.reshape(len(self.panels), -1)
        densities = np.concatenate([panel(row) for panel, row in zip(self.panels, rows, strict=True)])
        return float((weights * densities * function(points)).sum())


def approximate_density(log_density: LogFunction, low: float, high: float) -> PiecewiseDensity:
    """Locates a density on (low, high), however narrow, and approximates it there.

    Args:
        log_density: Called with an array and a cutoff; -∞ where the density is 0.
        low: Lower end of the support.
        high: Upper end, beyond which the density is negligible.

    Raises:
        InputError: if the density is 0 wherever it was evaluated.
    """
    left, right, peak = _find_support(log_density, low, high)
    edges = list(np.linspace(left, right, 5))
    waiting = list(pairwise(edges))
    accepted: list[tuple[float, float, Floats]] = []
    for _ in range(MOST_SPLITS):
        if not waiting:
            break
        points = np.stack([_nodes(a, b) for a, b in waiting])
        values = log_density(points.ravel(), peak - 2 * NEGLIGIBLE).reshape(points.shape)
        peak = max(peak, float(values.max()))
        split = []
        for (a, b), logs in zip(waiting, values, strict=True):
            if _is_resolved(logs - peak, share=(b - a) / (right - left)):
                accepted.append((a, b, logs))
            else:
                middle = (a + b) / 2
                split += [(a, middle), (middle, b)]
        waiting = split
    if waiting:
        raise InputError("the density could not be resolved: is its logarithm smooth?")
    accepted.sort(key=lambda panel: panel[0])
    return _normalised(accepted, peak)


def _find_support(log_density: LogFunction, low: float, high: float) -> tuple[float, float, float]:
    """Zooms in on the highest point until the part that is not negligible fills a good share of the scan."""
    left, right, peak = low, high, -np.inf
    # Points cluster at both ends, where a support may begin abruptly; the first scan goes down to the very floor, where
    # thousands of nodes without leakage make a peak as narrow as it is high.
    crowded = 0.5 * (1 - np.cos(np.pi * (np.arange(SCAN_POINTS) + 0.5) / SCAN_POINTS))
    shares = np.union1d(crowded, NEAR_THE_FLOOR)
    for _ in range(60):
        points = left + (right - left) * shares
        num_points, shares = len(points), crowded
        # From the top down, where likelihoods are flat: their values show what is negligible further down.
        values = np.empty(num_points)
        for part in np.array_split(np.arange(num_points)[::-1], SCAN_PARTS):
            values[part] = log_density(points[part], peak - 2 * NEGLIGIBLE)
            peak = max(peak, float(values[part].max()))
        if peak == -np.inf:
            raise InputError("the posterior is 0 everywhere: these priors leave no ε possible")
        high_enough = np.flatnonzero(values > peak - NEGLIGIBLE)
        first, last = int(high_enough[0]), int(high_enough[-1])
        new_left = left if first == 0 else float(points[first - 1])
        new_right = right if last == num_points - 1 else float(points[last + 1])
        if len(high_enough) >= SCAN_POINTS // 3 or (new_left, new_right) == (left, right):
            return new_left, new_right, peak
        left, right = new_left, new_right
    return left, right, peak


def _nodes(a: float, b: float) -> Floats:
    """Chebyshev points of the second kind, just inside the ends; every other one makes a set of half the degree."""
    inner = np.cos(np.pi * np.arange(FINE_DEGREE, -1, -1) / FINE_DEGREE)
    return (a + b) / 2 + (b - a) / 2 * inner * (1 - 1e-12)


def _is_resolved(logs: Floats, share: float) -> bool:
    """Whether a panel with this share of the whole width is approximated well enough for the mass it can contain."""
    if not np.isfinite(logs).all():
        # The support begins in this panel, or the density is negligible here.
        return bool(logs.max() < -NEGLIGIBLE or share < TOLERANCE)
    x = np.cos(np.pi * np.arange(FINE_DEGREE, -1, -1) / FINE_DEGREE)
    coarse = np.polynomial.chebyshev.chebfit(x[::2], logs[::2], FINE_DEGREE // 2)
    difference = np.abs(np.polynomial.chebyshev.chebval(x, coarse) - logs)
    # The error of the full degree is about the square of that of half the degree.
    return bool(share * (difference * np.exp(np.minimum(logs, 0.0))).max() < np.sqrt(TOLERANCE) / 10)


def exponential(series: Chebyshev) -> Chebyshev:
    """The exponential of a panel's polynomial, as a polynomial of higher degree."""
    return Chebyshev.interpolate(lambda x: np.exp(series(x)), 2 * FINE_DEGREE, series.domain)


def _normalised(panels: list[tuple[float, float, Floats]], peak: float) -> PiecewiseDensity:
    edges = np.array([panels[0][0], *(b for _, b, _ in panels)])
    densities = []
    for a, b, logs in panels:
        finite = np.where(np.isfinite(logs), logs, peak - 2 * NEGLIGIBLE)
        series = Chebyshev.fit(_nodes(a, b), finite - peak, FINE_DEGREE, domain=[a, b])
        densities.append(exponential(series))
    whole = PiecewiseDensity(edges, tuple(densities), 0.0)
    mass = float(whole._masses().sum())
    return PiecewiseDensity(edges, tuple(density / mass for density in densities), peak + float(np.log(mass)))


def _roots(rising: Chebyshev, levels: Floats, low: float, high: float) -> Floats:
    """Where an increasing function reaches each of the levels, by bisection of [low, high] to the last digit."""
    left, right = np.full_like(levels, low), np.full_like(levels, high)
    for _ in range(BISECTIONS):
        middle = (left + right) / 2
        is_below = rising(middle) < levels
        left, right = np.where(is_below, middle, left), np.where(is_below, right, middle)
    return (left + right) / 2
