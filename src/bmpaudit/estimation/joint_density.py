"""A density of two parameters: on a grid of Gauss-Legendre panels, or in coordinates that follow the floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise, product

import numpy as np
from numpy.polynomial import Chebyshev, chebyshev, legendre

from bmpaudit.estimation.density import (
    NEGLIGIBLE,
    NOTHING,
    PiecewiseDensity,
    approximate_density,
    gauss_legendre,
    legendre_rule,
    panel_edges,
)
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats

Ends = tuple[float, float]
Rule = tuple[Floats, Floats]  # points and weights
GridFunction = Callable[[Floats, Floats], Floats]  # log-density on all pairs of two lists, (num_first, num_second)
PointFunction = Callable[[Floats, Floats], Floats]  # log-density of pairs, which broadcast

NODES_PER_PANEL = 12
FEWEST_PANELS = 2
MORE_PANELS = 3
OVERSHOOT = 1.0  # nats by which the density may be higher between the nodes of a panel than at them
SHALLOW = 22.0  # nats below the peak down to which the panels go
COARSE_DEGREE = 9  # a panel is fine enough if its polynomial, truncated to this degree, gives the same quantiles
POINTS_PER_PANEL = 32  # for integrating the density itself
DEEPEST = 200.0  # nats below the peak down to which values are distinguished
SCAN_POINTS = 11
MOST_SCANS = 8
NEAR_PEAK = 3.0  # nats between a scan's highest point and its neighbours when it is near enough to the peak
TOLERANCE = 5e-6  # of marginal quantiles between the two degrees; the higher one is far closer to the truth
MARGINAL_TOLERANCE = 1e-9  # of the marginals on one panel between the two degrees
MOST_ROUNDS = 12
MOST_PAIRS = 10_000  # of panels, each of which takes 144 values
CUT_OFF = 1e-8  # of the highest density: if the border of the panels has more, they are extended
HAIR = 1e-13  # share of the range, next to its lower end, that is left out: there R is too thin for double precision


@dataclass(frozen=True, eq=False)
class JointDensity:
    """A normalised density on a grid."""

    first: Floats  # grid points of the first parameter, shape (G,)
    second: Floats  # grid points of the second parameter, shape (H,)
    first_weight: Floats  # quadrature weights, shape (G,)
    second_weight: Floats  # quadrature weights, shape (H,)
    values: Floats  # the density at each pair, shape (G, H)
    first_marginal: PiecewiseDensity
    second_marginal: PiecewiseDensity

    @classmethod
    def normalised(cls, first: Rule, second: Rule, values: Floats, *marginals: PiecewiseDensity) -> JointDensity:
        """The density that is proportional to these values on the grid of two quadrature rules."""
        return cls(first[0], second[0], first[1], second[1], values / (first[1] @ values @ second[1]), *marginals)

    @property
    def mass(self) -> Floats:
        """Density times quadrature weights at each pair; sums to 1, shape (G, H)."""
        return self.values * self.first_weight[:, None] * self.second_weight[None, :]

    def sample(self, num_draws: int, rng: np.random.Generator) -> Floats:
        """Independent draws, shape (num_draws, 2).

        The first parameter from its marginal; the second from its conditional at the nearest grid point of the first,
        interpolated between its grid points.
        """
        first = self.first_marginal.quantile(rng.uniform(1e-12, 1 - 1e-12, num_draws))
        rows = np.abs(self.first[None, :] - first[:, None]).argmin(axis=1)
        mass = self.mass
        cumulative = np.cumsum(mass, axis=1)
        second = np.empty(num_draws)
        for row in np.unique(rows):
            chosen = rows == row
            levels = cumulative[row] - mass[row] / 2  # mass up to the middle of each point's share
            second[chosen] = np.interp(rng.random(chosen.sum()) * cumulative[row, -1], levels, self.second)
        return np.column_stack([first, second])


def approximate_joint_density(
    log_density: GridFunction, low: Ends, high: Ends, peak: Floats | None = None
) -> JointDensity:
    """Locates a density on (low[0], high[0]) × (low[1], high[1]) and puts a grid on it, as fine as needed.

    It is negligible beyond `high`; `peak` is what `find_peak` gave, if it is known. An `InputError` if the density is 0
    wherever it was evaluated, or cannot be resolved.
    """
    return _resolved(log_density, low, high, [] if peak is None else [peak], TOLERANCE).joint_density()


def find_peak(log_density: GridFunction, low: Ends, high: Ends) -> Floats:
    """Roughly where the density is highest, by zooming in on the highest point of a grid."""
    ends = [np.array([start, stop]) for start, stop in zip(low, high, strict=True)]
    share = 0.5 * (1 - np.cos(np.pi * (np.arange(SCAN_POINTS) + 0.5) / SCAN_POINTS))
    for _ in range(MOST_SCANS):
        points = [start + (stop - start) * share for start, stop in ends]
        values = log_density(points[0], points[1])
        if values.max() == -np.inf:
            raise InputError("the posterior is 0 everywhere: these priors leave no ε possible")
        best = np.unravel_index(int(values.argmax()), values.shape)
        peak = np.array([points[axis][best[axis]] for axis in (0, 1)])
        padded = [np.concatenate([[ends[axis][0]], points[axis], [ends[axis][1]]]) for axis in (0, 1)]
        ends = [padded[axis][[best[axis], best[axis] + 2]] for axis in (0, 1)]
        if np.ptp(values[tuple(slice(max(0, at - 1), at + 2) for at in best)]) < NEAR_PEAK:
            break
    return peak


class _Surface:
    """A log-density at the nodes of pairs of panels, with polynomials in between.

    The logarithm is much smoother than the density, so that few of its values, which are costly, give many densities.
    """

    def __init__(self, logs: Floats, edges: list[Floats]) -> None:
        self.edges, self.highest = edges, float(logs.max())
        shape = (len(edges[0]) - 1, NODES_PER_PANEL, len(edges[1]) - 1, NODES_PER_PANEL)
        known = np.maximum(logs - self.highest, -DEEPEST).reshape(shape)
        # Where a panel is too wide for its polynomial, that must not tower above all that is known.
        self._most = known.max(axis=(1, 3)) + OVERSHOOT
        to_series = np.linalg.inv(_legendre_basis(NODES_PER_PANEL))
        self._series = np.einsum("mi,piqj,nj->pqmn", to_series, known, to_series, optimize=True)

    @cached_property
    def rules(self) -> tuple[Rule, Rule]:
        """Points and weights that integrate over either axis."""
        return gauss_legendre(self.edges[0], POINTS_PER_PANEL), gauss_legendre(self.edges[1], POINTS_PER_PANEL)

    def density(self, degree: int = NODES_PER_PANEL - 1) -> Floats:
        """The density at the points of both rules, relative to the highest value; of polynomials cut to a degree."""
        basis = _legendre_basis(POINTS_PER_PANEL)[:, : degree + 1]
        series = self._series[:, :, : degree + 1, : degree + 1]
        logs = np.einsum("gm,pqmn,hn->pgqh", basis, series, basis, optimize=True)
        logs = np.minimum(logs, self._most[:, None, :, None])
        return np.exp(logs.reshape(logs.shape[0] * logs.shape[1], -1))

    def log_mass(self, density: Floats) -> float:
        """The logarithm of the integral of what `density` gives."""
        return self.highest + float(np.log(self.rules[0][1] @ density @ self.rules[1][1]))

    def joint_density(self, degree: int = NODES_PER_PANEL - 1) -> JointDensity:
        """The density on the grid of both rules, and its marginals."""
        density = self.density(degree)
        log_mass = self.log_mass(density)
        first = _marginal(density @ self.rules[1][1], self.edges[0], log_mass)
        second = _marginal(self.rules[0][1] @ density, self.edges[1], log_mass)
        return JointDensity.normalised(*self.rules, density, first, second)

    def __call__(self, x: Floats, y: Floats) -> Floats:
        """The log-density, relative to the highest value, at pairs within the panels; they broadcast."""
        pairs = np.broadcast_arrays(x, y)
        panels, bases = [], []
        for values, edges in zip(map(np.ravel, pairs), self.edges, strict=True):
            number = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
            low, high = edges[number], edges[number + 1]
            panels.append(number)
            bases.append(legendre.legvander((2 * values - low - high) / (high - low), NODES_PER_PANEL - 1))
        found = np.empty(pairs[0].size)
        pair = np.ravel_multi_index(tuple(panels), self._most.shape)
        order = np.argsort(pair, kind="stable")
        numbers, starts = np.unique(pair[order], return_index=True)
        for number, here in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            panel = divmod(number, self._most.shape[1])
            between = ((bases[0][here] @ self._series[panel]) * bases[1][here]).sum(axis=1)
            found[here] = np.minimum(between, self._most[panel])
        return found.reshape(pairs[0].shape)


@cache
def _legendre_basis(num_points: int) -> Floats:
    """Polynomials of Legendre at the points of a panel, shape (num_points, NODES_PER_PANEL)."""
    return np.asarray(legendre.legvander(legendre_rule(num_points)[0], NODES_PER_PANEL - 1), dtype=np.float64)


# From values at the points of a panel to a Chebyshev series.
_TO_CHEBYSHEV = np.linalg.inv(chebyshev.chebvander(legendre_rule(POINTS_PER_PANEL)[0], POINTS_PER_PANEL - 1))


def _marginal(values: Floats, edges: Floats, log_mass: float) -> PiecewiseDensity:
    """Interpolates the logarithm, which is much smoother than the density."""
    logs = np.log(np.maximum(values / values.max(), np.exp(-NOTHING))).reshape(len(edges) - 1, -1)
    return replace(PiecewiseDensity.from_logs(edges, logs @ _TO_CHEBYSHEV.T, 0.0), log_mass=log_mass)


def _resolved(log_density: GridFunction, low: Ends, high: Ends, peaks: Sequence[Floats], tolerance: float) -> _Surface:
    """The log-density on panels that are fine enough for this tolerance of marginal quantiles; with all its peaks."""
    peaks = peaks or [find_peak(log_density, low, high)]
    # The panels that a cut through the peak needs on either axis are enough if the two parameters depend little.
    edges = [
        np.unique(np.concatenate([_cut(log_density, axis, peak[1 - axis], low, high) for peak in peaks]))
        for axis in (0, 1)
    ]
    for _ in range(MOST_ROUNDS):
        if len(edges[0]) * len(edges[1]) > MOST_PAIRS:
            break
        surface = _Surface(log_density(*(gauss_legendre(ends, NODES_PER_PANEL)[0] for ends in edges)), edges)
        fine = surface.joint_density()
        cut_off = [_cut_off_at(fine, axis, edges[axis], low, high) for axis in (0, 1)]
        if cut_off != [None, None]:
            edges = [
                ends if at is None else _extended(ends, _cut(log_density, axis, at, low, high), low[axis], high[axis])
                for axis, (ends, at) in enumerate(zip(edges, cut_off, strict=True))
            ]
            continue
        coarse = surface.joint_density(COARSE_DEGREE)
        if np.abs(_marginal_quantiles(coarse) - _marginal_quantiles(fine)).max() < tolerance:
            return surface
        edges = _refined(edges, coarse, fine)
    raise InputError("the joint density could not be resolved: is its logarithm smooth?")


def _cut(log_density: GridFunction, axis: int, at: float, low: Ends, high: Ends) -> Floats:
    """Edges of the panels that the density needs along one axis where the other parameter is `at`."""
    held = np.array([at])

    def along(x: Floats, _: float) -> Floats:
        return log_density(x, held)[:, 0] if axis == 0 else log_density(held, x)[0]

    edges = panel_edges(along, low[axis], high[axis], SHALLOW)
    # These polynomials have a lower degree; if there are several panels, some are narrower than they need to be.
    return edges if len(edges) > FEWEST_PANELS else np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))


def _cut_off_at(density: JointDensity, axis: int, edges: Floats, low: Ends, high: Ends) -> float | None:
    """Where, on the other axis, the density extends beyond the panels of an axis; None if it does not."""
    values = density.values if axis == 0 else density.values.T
    other = density.second if axis == 0 else density.first
    ends = [(0, edges[0] > low[axis]), (-1, edges[-1] < high[axis])]
    worst = max(((values[row].max(), row) for row, can_extend in ends if can_extend), default=(0.0, 0))
    return float(other[int(values[worst[1]].argmax())]) if worst[0] > CUT_OFF * values.max() else None


def _extended(edges: Floats, wider: Floats, low: float, high: float) -> Floats:
    """Edges that also cover what a cut elsewhere needs, and some panels more: a density that bends goes on further."""
    known = np.concatenate([wider[wider < edges[0]], edges, wider[wider > edges[-1]]])
    more = np.arange(1, MORE_PANELS + 1)
    before, after = known[0] - more * (edges[1] - edges[0]), known[-1] + more * (edges[-1] - edges[-2])
    return np.unique(np.clip(np.concatenate([before, known, after]), low, high))


def _marginal_quantiles(density: JointDensity) -> Floats:
    marginals = (density.first_marginal, density.second_marginal)
    return np.concatenate([marginal.quantile([0.05, 0.5, 0.95]) for marginal in marginals])


def _refined(edges: list[Floats], coarse: JointDensity, fine: JointDensity) -> list[Floats]:
    """Halves the panels, of either axis, on which the two densities' marginals differ most."""
    apart = [
        np.abs((coarse.mass - fine.mass).sum(axis=1 - axis)).reshape(len(ends) - 1, -1).sum(axis=1)
        for axis, ends in enumerate(edges)
    ]
    least = max(MARGINAL_TOLERANCE, max(float(each.max()) for each in apart) / 10)
    middles = [((ends[1:] + ends[:-1]) / 2)[each > least] for ends, each in zip(edges, apart, strict=True)]
    return [np.sort(np.concatenate([ends, middle])) for ends, middle in zip(edges, middles, strict=True)]


# Coordinates of (ε_L, ε_R) in which a posterior that reaches down to the floor is one smooth hill
#
# Near the floor, R is thin: what the nodes say depends on how thick it is, 1/(1/p + 1/q) with p and q the distances
# from the two floors, and on where it is thickest, p/q. In (ε_L, ε_R) such a posterior is a narrow cone or a bent
# needle, which no grid resolves.

THINNEST = 1e-12  # of the range
MOST_LOPSIDED = 36.0  # log p/q, either way
THIN = 0.3  # distance from a floor at the peak
NEEDLE = 0.02  # of the larger distance
NEARER = 1e-4  # of the distance at the peak, where the density is compared with it
WIDEST = 20.0  # a posterior's reach, against its peak's distance from the floor
FLOOR_MARGINAL_TOLERANCE = 1e-7
MUCH_LOWER = 20.0  # nats below the highest peak, others do not count
FLOOR_SCAN_POINTS = 25  # of either coordinate, where peaks are looked for
STEEP = 5.0  # nats for every unit beyond the panels
MORE = 4.0
NEXT_TO_NOTHING = 1e-8  # of the mass, next to the floor
DEGREE = 24  # of the density on a panel
SAME = 1e-9  # relative distance of two ends of panels that are one
PICTURE_LEVELS = (1e-5, 1e-3, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999, 1 - 1e-5)
PICTURE_POINTS = 8


class ConeCoordinates:
    """Thickness and place: (v, t) with p = e^v (1 + e^t) and q = e^v (1 + e^-t)."""

    begins_at_floor = (True, False)
    """Whether the low end of each coordinate is at the floor, where the density of (p, q) goes on as it is."""

    def distances(self, v: Floats, t: Floats) -> tuple[Floats, Floats]:
        """Log p and log q."""
        return v + np.logaddexp(0.0, t), v + np.logaddexp(0.0, -t)

    def of(self, log_p: Floats, log_q: Floats) -> tuple[Floats, Floats]:
        """The coordinates."""
        return -np.logaddexp(-log_p, -log_q), log_p - log_q

    def log_jacobian(self, v: Floats, t: Floats) -> Floats:
        """Log of the area in (p, q) of an area in the coordinates."""
        return 2 * v + 2 * np.logaddexp(t / 2, -t / 2)

    def ends(self, reach: float) -> tuple[Ends, Ends]:
        """Lower and upper ends of the coordinates if p and q go up to `reach`."""
        return (np.log(THINNEST * reach), -MOST_LOPSIDED), (np.log(reach), MOST_LOPSIDED)

    def across(self, axis: int) -> tuple[int, Callable[[Floats], Floats]]:
        """A coordinate c, and how far log p (axis 0) or log q (axis 1) is above the other one at each c."""
        return 1, lambda t: np.logaddexp(0.0, t if axis == 0 else -t)


class LogCoordinates:
    """(log p, log q), for a needle: one of them is far smaller than the other, and reaches down to its floor."""

    def __init__(self, is_left_smaller: bool) -> None:
        self.begins_at_floor = (is_left_smaller, not is_left_smaller)

    def distances(self, log_p: Floats, log_q: Floats) -> tuple[Floats, Floats]:
        """The coordinates themselves."""
        return log_p, log_q

    of = distances

    def log_jacobian(self, log_p: Floats, log_q: Floats) -> Floats:
        """Log of the area in (p, q) of an area in the coordinates."""
        return log_p + log_q

    def ends(self, reach: float) -> tuple[Ends, Ends]:
        """Lower and upper ends of the coordinates if p and q go up to `reach`."""
        return (np.log(THINNEST * reach),) * 2, (np.log(reach),) * 2

    def across(self, axis: int) -> tuple[int, Callable[[Floats], Floats]]:
        """The other coordinate; neither is above the other."""
        return 1 - axis, np.zeros_like


FloorCoordinates = ConeCoordinates | LogCoordinates


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


def joint_density_above_floor(on_grid: GridFunction, at_points: PointFunction, low: Ends, high: Ends) -> JointDensity:
    """As `approximate_joint_density`, for a log-density of (ε_L, ε_R) that may reach down to their floors, `low`."""
    above = low[0] + HAIR * (high[0] - low[0]), low[1] + HAIR * (high[1] - low[1])
    peak = find_peak(on_grid, above, high)
    coordinates = floor_coordinates(at_points, peak, low)
    if coordinates is None:
        return approximate_joint_density(on_grid, above, high, peak)

    def in_coordinates(x: Floats, y: Floats) -> Floats:
        if isinstance(coordinates, LogCoordinates):
            values = on_grid(low[0] + np.exp(x), low[1] + np.exp(y))
        else:
            log_p, log_q = coordinates.distances(x[:, None], y)
            values = at_points(low[0] + np.exp(log_p), low[1] + np.exp(log_q))
        return values + coordinates.log_jacobian(x[:, None], y)

    ends = coordinates.ends(max(high[0] - low[0], high[1] - low[1]))
    # A cone has one peak.
    peaks = _peaks(in_coordinates, *ends) if isinstance(coordinates, LogCoordinates) else []
    # How precise the coordinates, all of them logarithms, must be for the distances from the floor to be precise.
    tolerance = TOLERANCE / min(1.0, WIDEST * float((peak - np.array(low)).max()))
    surface = _resolved(in_coordinates, *ends, peaks, tolerance)
    log_mass = surface.log_mass(surface.density())
    marginals = [replace(_floor_marginal(surface, coordinates, axis, low[axis]), log_mass=log_mass) for axis in (0, 1)]
    first, second = (
        gauss_legendre(_picture_edges(marginal, start), PICTURE_POINTS)
        for marginal, start in zip(marginals, low, strict=True)
    )
    at = coordinates.of(np.log(first[0] - low[0])[:, None], np.log(second[0] - low[1])[None, :])
    values = np.exp(_continued(surface, coordinates, *at) - coordinates.log_jacobian(*at))
    return JointDensity.normalised(first, second, values, *marginals)


def _peaks(log_density: GridFunction, low: Ends, high: Ends) -> list[Floats]:
    """All peaks that count: with a needle at each floor there are two, and next to nothing between them."""
    axes = [np.linspace(start, stop, FLOOR_SCAN_POINTS) for start, stop in zip(low, high, strict=True)]
    values = np.pad(log_density(axes[0], axes[1]), 1, constant_values=-np.inf)
    around = [np.roll(values, shift, (0, 1)) for shift in product((-1, 0, 1), repeat=2)]
    is_peak = (values == np.max(around, axis=0)) & (values > values.max() - MUCH_LOWER)
    peaks = []
    for place in np.argwhere(is_peak[1:-1, 1:-1]):
        near = [(axis[max(at - 1, 0)], axis[min(at + 1, len(axis) - 1)]) for axis, at in zip(axes, place, strict=True)]
        peaks.append(find_peak(log_density, (near[0][0], near[1][0]), (near[0][1], near[1][1])))
    return peaks


def _continued(surface: _Surface, coordinates: FloorCoordinates, x: Floats, y: Floats) -> Floats:
    """The log-density, beyond the panels too: down to the floor as it is, and falling fast elsewhere."""
    pair = np.broadcast_arrays(x, y)
    inside = [np.clip(values, edges[0], edges[-1]) for values, edges in zip(pair, surface.edges, strict=True)]
    found = surface(*inside)
    for axis, to_floor in enumerate(coordinates.begins_at_floor):
        beyond = pair[axis] - inside[axis]
        found = found - STEEP * np.where(beyond < 0, 0.0 if to_floor else -beyond, beyond)
        if to_floor:
            down = [np.minimum(pair[axis], inside[axis]) if each == axis else inside[each] for each in (0, 1)]
            found = found + coordinates.log_jacobian(*down) - coordinates.log_jacobian(*inside)
    return found


def _floor_marginal(surface: _Surface, coordinates: FloorCoordinates, axis: int, low: float) -> PiecewiseDensity:
    """The density of ε_L or ε_R: for every value of one coordinate, there is one of the other that gives it."""
    held, shift = coordinates.across(axis)
    points, weights = surface.rules[held]
    above, log_weights = shift(points), np.log(weights)

    def log_density(distance: Floats, _: float) -> Floats:
        other = distance[:, None] - above
        pair = (other, points[None, :]) if held == 1 else (points[None, :], other)
        with np.errstate(divide="ignore"):
            return np.log(np.exp(_continued(surface, coordinates, *pair) + log_weights).sum(axis=1))

    ends = surface.edges[1 - held]
    start, stop = ends[0] + above.min() - MORE, ends[-1] + above.max() + MORE
    of_logarithm = approximate_density(log_density, float(start), float(stop), FLOOR_MARGINAL_TOLERANCE)
    # The density of ε from that of log(ε - low): as it is at the low end, it goes on to the floor.
    start, stop = float(of_logarithm.quantile(NEXT_TO_NOTHING)), float(of_logarithm.edges[-1])
    inner = of_logarithm.edges[(of_logarithm.edges > start) & (of_logarithm.edges < stop)]
    steps = np.arange(start, stop, np.log(2.0))
    edges = np.unique(low + np.exp(np.union1d(np.append(inner, [start, stop]), steps)))

    def density(epsilon: Floats) -> Floats:
        distance = np.maximum(epsilon - low, 1e-300)
        return of_logarithm.pdf(np.log(distance)) / distance

    panels = [Chebyshev.interpolate(density, DEGREE, ends).coef for ends in pairwise(edges.tolist())]
    floor = np.zeros(DEGREE + 1)
    floor[0] = NEXT_TO_NOTHING / (edges[0] - low)
    return PiecewiseDensity.normalised(np.append(low, edges), np.stack([floor, *panels]), 0.0)


def _picture_edges(marginal: PiecewiseDensity, low: float) -> Floats:
    """Ends of panels for a grid of the density itself: between quantiles, and in even steps of the logarithm."""
    levels = marginal.quantile(PICTURE_LEVELS)
    edges = np.union1d(levels, low + np.geomspace(levels[0] - low, levels[-1] - low, len(PICTURE_LEVELS)))
    # Some of the one kind are some of the other but for the last digit.
    return edges[np.diff(edges, prepend=-np.inf) > SAME * (edges - low)]
