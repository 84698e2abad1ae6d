"""Coordinates of (ε_L, ε_R) in which a posterior that reaches down to the floor is one smooth hill.

Near the floor, R is thin: what the nodes say depends on how thick it is, 1/(1/p + 1/q) with p and q the distances from
the two floors, and on where it is thickest, p/q. In (ε_L, ε_R) such a posterior is a narrow cone or a bent needle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Protocol

import numpy as np
from numpy.polynomial import Chebyshev

from bmpaudit.arrays import Floats
from bmpaudit.estimation.density import NEGLIGIBLE, PiecewiseDensity, approximate_density, piecewise_density
from bmpaudit.estimation.joint_density import (
    DEEPEST,
    NODES_PER_PANEL,
    OVERSHOOT,
    TOLERANCE,
    Ends,
    GridFunction,
    JointDensity,
    find_peak,
    resolved_grid,
)
from bmpaudit.estimation.quadrature import gauss_legendre, legendre_rule

PointFunction = Callable[[Floats, Floats], Floats]
"""Log-density of pairs, which broadcast."""

RayFunction = Callable[[Ends, Floats, tuple[Floats, Floats]], Floats]
"""Log-density along rays from a point, shape (num_distances, num_directions)."""

THINNEST = 1e-12  # of the range
MOST_LOPSIDED = 36.0  # log p/q, either way
THIN = 0.3  # distance from a floor at the peak
NEEDLE = 0.02  # of the larger distance
NEARER = 1e-4  # of the distance at the peak, where the density is compared with it
WIDEST = 20.0  # a posterior's reach, against its peak's distance from the floor
POINTS_PER_PANEL = 32
MARGINAL_TOLERANCE = 1e-7
MUCH_LOWER = 20.0  # nats below the highest peak, others do not count
SCAN_POINTS = 25  # of either coordinate, where peaks are looked for
STEEP = 5.0  # nats for every unit beyond the panels
MORE = 4.0
NEXT_TO_NOTHING = 1e-8  # of the mass, next to the floor
DEGREE = 24  # of the density on a panel
SAME = 1e-9  # relative distance of two ends of panels that are one
PICTURE_LEVELS = (1e-5, 1e-3, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999, 1 - 1e-5)
PICTURE_POINTS = 8


class FloorCoordinates(Protocol):
    """Two coordinates of p = ε_L - low_L and q = ε_R - low_R."""

    def distances(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Log p and log q."""

    def of(self, log_p: Floats, log_q: Floats) -> tuple[Floats, Floats]:
        """The coordinates."""

    def log_jacobian(self, x: Floats, y: Floats) -> Floats:
        """Log of the area in (p, q) of an area in the coordinates."""

    def ends(self, reach: float) -> tuple[Ends, Ends]:
        """Lower and upper ends of the coordinates if p and q go up to `reach`."""

    @property
    def begins_at_floor(self) -> tuple[bool, bool]:
        """Whether the low end of each coordinate is at the floor, where the density of (p, q) goes on as it is."""

    def across(self, axis: int) -> tuple[int, Callable[[Floats], Floats]]:
        """A coordinate c, and how far log p (axis 0) or log q (axis 1) is above the other one at each c."""


class ConeCoordinates:
    """Thickness and place: (v, t) with p = e^v (1 + e^t) and q = e^v (1 + e^-t)."""

    begins_at_floor = (True, False)

    def distances(self, v: Floats, t: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        return v + np.logaddexp(0.0, t), v + np.logaddexp(0.0, -t)

    def of(self, log_p: Floats, log_q: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        return -np.logaddexp(-log_p, -log_q), log_p - log_q

    def log_jacobian(self, v: Floats, t: Floats) -> Floats:  # noqa: D102
        return 2 * v + 2 * np.logaddexp(t / 2, -t / 2)

    def ends(self, reach: float) -> tuple[Ends, Ends]:  # noqa: D102
        return (np.log(THINNEST * reach), -MOST_LOPSIDED), (np.log(reach), MOST_LOPSIDED)

    def across(self, axis: int) -> tuple[int, Callable[[Floats], Floats]]:  # noqa: D102
        return 1, lambda t: np.logaddexp(0.0, t if axis == 0 else -t)


class LogCoordinates:
    """(log p, log q), for a needle: one of them is far smaller than the other, and reaches down to its floor."""

    def __init__(self, is_left_smaller: bool) -> None:
        self.begins_at_floor = (is_left_smaller, not is_left_smaller)

    def distances(self, log_p: Floats, log_q: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        return log_p, log_q

    def of(self, log_p: Floats, log_q: Floats) -> tuple[Floats, Floats]:  # noqa: D102
        return log_p, log_q

    def log_jacobian(self, log_p: Floats, log_q: Floats) -> Floats:  # noqa: D102
        return log_p + log_q

    def ends(self, reach: float) -> tuple[Ends, Ends]:  # noqa: D102
        return (np.log(THINNEST * reach),) * 2, (np.log(reach),) * 2

    def across(self, axis: int) -> tuple[int, Callable[[Floats], Floats]]:  # noqa: D102
        return 1 - axis, np.zeros_like


def floor_coordinates(log_density: PointFunction, peak: Floats, low: Ends) -> FloorCoordinates | None:
    """Coordinates for a density that is highest at `peak`; None if it does not reach down to the floor there.

    Or if priors differ so much that R is not thin for most nodes, even at the floor.
    """
    away = peak - np.array(low)
    if not max(0.0, low[0] + low[1]) < away.min() < THIN:
        return None
    nearer = np.array(low) + NEARER * away
    is_needle = away.min() < NEEDLE * away.max()
    if is_needle:
        nearer = np.where(away > away.min(), peak, nearer)
    values = log_density(np.array([peak[0], nearer[0]]), np.array([peak[1], nearer[1]]))
    if not values[1] > values[0] - NEGLIGIBLE:
        return None
    return LogCoordinates(bool(away[0] < away[1])) if is_needle else ConeCoordinates()


def floor_tolerance(peak: Floats, low: Ends) -> float:
    """How precise the coordinates, all of them logarithms, must be for the distances from the floor to be precise."""
    return TOLERANCE / min(1.0, WIDEST * float((peak - np.array(low)).max()))


@dataclass(frozen=True)
class JointLogDensity:
    """A log-density of (ε_L, ε_R).

    Attributes:
        on_grid: On all pairs of two lists.
        on_rays: At all distances from a point, in all directions: what a distance of 1 adds to either parameter.
    """

    on_grid: GridFunction
    on_rays: RayFunction

    def in_coordinates(self, coordinates: FloorCoordinates, low: Ends) -> GridFunction:
        """The log-density in coordinates, on all pairs of two lists of them."""

        def log_density(x: Floats, y: Floats) -> Floats:
            pairs = np.broadcast_arrays(x[:, None], y[None, :])
            if isinstance(coordinates, LogCoordinates):
                values = self.on_grid(low[0] + np.exp(x), low[1] + np.exp(y))
            else:
                values = self.on_rays(low, np.exp(x), (1 + np.exp(y), 1 + np.exp(-y)))
            return values + coordinates.log_jacobian(*pairs)

        return log_density


def joint_density_at_floor(
    log_density: JointLogDensity,
    coordinates: FloorCoordinates,
    low: Ends,
    high: Ends,
    rough: JointLogDensity | None = None,
    tolerance: float = TOLERANCE,
) -> JointDensity:
    """As `approximate_joint_density`, in coordinates of a density that reaches down to the floor.

    Raises:
        InputError: if the density cannot be resolved.
    """
    search = None if rough is None else rough.in_coordinates(coordinates, low)
    ends = coordinates.ends(max(high[0] - low[0], high[1] - low[1]))
    exact = log_density.in_coordinates(coordinates, low)
    # A cone has one peak.
    peaks = _peaks(exact if search is None else search, *ends) if isinstance(coordinates, LogCoordinates) else []
    surface = _Surface(*resolved_grid(exact, *ends, search, peaks, tolerance), coordinates)
    marginals = [_marginal(surface, coordinates, axis, low[axis]) for axis in (0, 1)]
    axes = [
        gauss_legendre(_picture_edges(marginal, start), PICTURE_POINTS)
        for marginal, start in zip(marginals, low, strict=True)
    ]
    (first, first_weight), (second, second_weight) = axes
    at = coordinates.of(np.log(first - low[0])[:, None], np.log(second - low[1])[None, :])
    values = np.exp(surface.continued(*at) - coordinates.log_jacobian(*at) - surface.highest)
    return JointDensity(
        first=first,
        second=second,
        first_weight=first_weight,
        second_weight=second_weight,
        values=values / (first_weight @ values @ second_weight),
        first_marginal=marginals[0],
        second_marginal=marginals[1],
        log_mass=surface.highest + float(np.log(surface.mass)),
    )


def _picture_edges(marginal: PiecewiseDensity, low: float) -> Floats:
    """Ends of panels for a grid of the density itself: between quantiles, and in even steps of the logarithm."""
    levels = marginal.quantile(PICTURE_LEVELS)
    edges = np.union1d(levels, low + np.geomspace(levels[0] - low, levels[-1] - low, len(PICTURE_LEVELS)))
    # Some of the one kind are some of the other but for the last digit.
    return edges[np.diff(edges, prepend=-np.inf) > SAME * (edges - low)]


def _peaks(log_density: GridFunction, low: Ends, high: Ends) -> list[Floats]:
    """All peaks that count: with a needle at each floor there are two, and next to nothing between them."""
    axes = [np.linspace(start, stop, SCAN_POINTS) for start, stop in zip(low, high, strict=True)]
    values = np.pad(log_density(axes[0], axes[1]), 1, constant_values=-np.inf)
    around = [np.roll(values, shift, (0, 1)) for shift in product((-1, 0, 1), repeat=2)]
    is_peak = (values == np.max(around, axis=0)) & (values > values.max() - MUCH_LOWER)
    places = np.argwhere(is_peak[1:-1, 1:-1])
    peaks = []
    for place in places:
        near = [(axis[max(at - 1, 0)], axis[min(at + 1, len(axis) - 1)]) for axis, at in zip(axes, place, strict=True)]
        peaks.append(find_peak(log_density, (near[0][0], near[1][0]), (near[0][1], near[1][1])))
    return peaks


class _Surface:
    """A log-density on panels, as the polynomials between its values; -∞ beyond the panels."""

    def __init__(self, logs: Floats, edges: list[Floats], coordinates: FloorCoordinates) -> None:
        self._edges, self._coordinates, self.highest = edges, coordinates, float(logs.max())
        shape = (len(edges[0]) - 1, NODES_PER_PANEL, len(edges[1]) - 1, NODES_PER_PANEL)
        known = np.maximum(logs, self.highest - DEEPEST).reshape(shape)
        # Where a panel is too wide for its polynomial, that must not tower above all that is known.
        self._most = known.max(axis=(1, 3)) + OVERSHOOT
        nodes, _ = legendre_rule(NODES_PER_PANEL)
        to_series = np.linalg.inv(np.polynomial.legendre.legvander(nodes, NODES_PER_PANEL - 1))
        self._series = np.einsum("mi,piqj,nj->pqmn", to_series, known, to_series, optimize=True)

    def ends(self, axis: int) -> Ends:
        """Where the panels of an axis begin and end."""
        return float(self._edges[axis][0]), float(self._edges[axis][-1])

    def rule(self, axis: int) -> tuple[Floats, Floats]:
        """Points and weights that integrate over an axis."""
        return gauss_legendre(self._edges[axis], POINTS_PER_PANEL)

    @property
    def mass(self) -> float:
        """The integral of the density, the highest value of which is 1."""
        (v, v_weight), (t, t_weight) = self.rule(0), self.rule(1)
        points, _ = legendre_rule(POINTS_PER_PANEL)
        basis = np.polynomial.legendre.legvander(points, NODES_PER_PANEL - 1)
        values = np.einsum("gm,pqmn,hn->pgqh", basis, self._series, basis, optimize=True)
        values = np.minimum(values, self._most[:, None, :, None]).reshape(len(v), len(t))
        return float(v_weight @ np.exp(values - self.highest) @ t_weight)

    def continued(self, x: Floats, y: Floats) -> Floats:
        """The log-density, beyond the panels too: down to the floor as it is, and falling fast elsewhere."""
        pair = np.broadcast_arrays(x, y)
        inside = [np.clip(values, edges[0], edges[-1]) for values, edges in zip(pair, self._edges, strict=True)]
        found = self(*inside)
        for axis, to_floor in enumerate(self._coordinates.begins_at_floor):
            beyond = pair[axis] - inside[axis]
            found = found - STEEP * np.where(beyond < 0, 0.0 if to_floor else -beyond, beyond)
            if to_floor:
                down = [np.minimum(pair[axis], inside[axis]) if each == axis else inside[each] for each in (0, 1)]
                found = found + self._coordinates.log_jacobian(*down) - self._coordinates.log_jacobian(*inside)
        return found

    def __call__(self, x: Floats, y: Floats) -> Floats:
        pairs = np.broadcast_arrays(x, y)
        values = np.full(pairs[0].shape, -np.inf)
        inside = np.ones(pairs[0].shape, dtype=bool)
        for x, edges in zip(pairs, self._edges, strict=True):
            inside &= (x >= edges[0]) & (x <= edges[-1])
        panels, bases = [], []
        for x, edges in zip(pairs, self._edges, strict=True):
            number = np.clip(np.searchsorted(edges, x[inside], side="right") - 1, 0, len(edges) - 2)
            position = (2 * x[inside] - edges[number] - edges[number + 1]) / (edges[number + 1] - edges[number])
            panels.append(number)
            bases.append(np.polynomial.legendre.legvander(position, NODES_PER_PANEL - 1))
        found = np.empty(int(inside.sum()))
        pair = panels[0] * (len(self._edges[1]) - 1) + panels[1]
        order = np.argsort(pair, kind="stable")
        numbers, starts = np.unique(pair[order], return_index=True)
        for number, here in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            panel = divmod(number, len(self._edges[1]) - 1)
            between = ((bases[0][here] @ self._series[panel]) * bases[1][here]).sum(axis=1)
            found[here] = np.minimum(between, self._most[panel])
        values[inside] = found
        return values


def _marginal(surface: _Surface, coordinates: FloorCoordinates, axis: int, low: float) -> PiecewiseDensity:
    """The density of ε_L or ε_R: for every value of one coordinate, there is one of the other that gives it."""
    held, shift = coordinates.across(axis)
    points, weights = surface.rule(held)
    above, log_weights = shift(points), np.log(weights)

    def log_density(distance: Floats, _: float) -> Floats:
        other = distance[:, None] - above
        pair = (other, points[None, :]) if held == 1 else (points[None, :], other)
        logs = surface.continued(*pair)
        with np.errstate(divide="ignore"):
            return np.log(np.exp(logs + log_weights - surface.highest).sum(axis=1))

    start, stop = surface.ends(1 - held)
    of_logarithm = approximate_density(
        log_density, start + float(above.min()) - MORE, stop + float(above.max()) + MORE, tolerance=MARGINAL_TOLERANCE
    )
    return _without_logarithm(of_logarithm, low)


def _without_logarithm(of_logarithm: PiecewiseDensity, low: float) -> PiecewiseDensity:
    """The density of ε from that of log(ε - low): as it is at the low end, it goes on to the floor."""
    start, stop = float(of_logarithm.quantile(NEXT_TO_NOTHING)), float(of_logarithm.edges[-1])
    inner = of_logarithm.edges[(of_logarithm.edges > start) & (of_logarithm.edges < stop)]
    steps = np.arange(start, stop, np.log(2.0))
    distances = np.exp(np.union1d(np.append(inner, [start, stop]), steps))
    edges = np.unique(low + distances)

    def density(epsilon: Floats) -> Floats:
        distance = np.maximum(epsilon - low, 1e-300)
        return of_logarithm.pdf(np.log(distance)) / distance

    floor = Chebyshev([NEXT_TO_NOTHING / (edges[0] - low)], domain=[low, edges[0]])
    panels = [Chebyshev.interpolate(density, DEGREE, ends) for ends in pairwise(edges.tolist())]
    return piecewise_density([floor, *panels], of_logarithm.log_mass)
