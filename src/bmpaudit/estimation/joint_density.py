"""A density of two parameters on a grid of Gauss-Legendre panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.polynomial import Chebyshev

from bmpaudit.arrays import Flags, Floats
from bmpaudit.errors import InputError
from bmpaudit.estimation.density import (
    NEGLIGIBLE,
    PiecewiseDensity,
    exponential,
    panel_edges,
    piecewise_density,
)
from bmpaudit.estimation.quadrature import gauss_legendre, legendre_rule

Ends = tuple[float, float]
GridFunction = Callable[[Floats, Floats], Floats]
"""Log-density on all pairs of two lists, shape (num_first, num_second)."""

Blocks = dict[tuple[float, ...], Floats]
"""Values at the nodes of pairs of panels, by the ends of the two."""

NODES_PER_PANEL = 12
FEWEST_PANELS = 2
MORE_PANELS = 3
OVERSHOOT = 1.0  # nats by which the density may be higher between the nodes of a panel than at them
POINTS_TO_TELL = 3  # of a panel and axis, whether anything is there
SHALLOW = 22.0  # nats below the peak down to which the panels go
MARGIN = 1.25  # as what is between them may be higher
COARSE_DEGREE = 9  # a panel is fine enough if its polynomial, truncated to this degree, gives the same quantiles
POINTS_PER_PANEL = 32  # for integrating the density itself
DEEPEST = 200.0  # nats below the peak down to which values are distinguished
SCAN_POINTS = 11
NEAR_PEAK = 3.0  # nats between a scan's highest point and its neighbours when it is near enough to the peak
TOLERANCE = 5e-6  # of marginal quantiles between the two degrees; the higher one is far closer to the truth
MARGINAL_TOLERANCE = 1e-9  # of the marginals on one panel between the two degrees
MOST_ROUNDS = 12
MOST_PAIRS = 10_000  # of panels, each of which takes 144 values
CUT_OFF = 1e-8  # of the highest density: if the border of the panels has more, they are extended


@dataclass(frozen=True, eq=False)
class JointDensity:
    """A normalised density on a grid.

    Attributes:
        first: Grid points of the first parameter, shape (G,).
        second: Grid points of the second parameter, shape (H,).
        first_weight: Quadrature weights of the first parameter's points, shape (G,).
        second_weight: Quadrature weights of the second parameter's points, shape (H,).
        values: The density at each pair, shape (G, H).
        first_marginal: Density of the first parameter.
        second_marginal: Density of the second parameter.
        log_mass: Logarithm of the integral before normalisation.
    """

    first: Floats
    second: Floats
    first_weight: Floats
    second_weight: Floats
    values: Floats
    first_marginal: PiecewiseDensity
    second_marginal: PiecewiseDensity
    log_mass: float

    @property
    def mass(self) -> Floats:
        """Density times quadrature weights at each pair; sums to 1, shape (G, H)."""
        return self.values * self.first_weight[:, None] * self.second_weight[None, :]

    def correlation(self) -> float:
        """Correlation of the two parameters."""
        means = self.first_marginal.mean(), self.second_marginal.mean()
        spreads = self.first_marginal.variance(), self.second_marginal.variance()
        product = (self.first - means[0])[:, None] * (self.second - means[1])[None, :]
        return float((self.mass * product).sum() / np.sqrt(spreads[0] * spreads[1]))

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
    log_density: GridFunction,
    low: Ends,
    high: Ends,
    rough: GridFunction | None = None,
    peak: Floats | None = None,
) -> JointDensity:
    """Locates a density on (low[0], high[0]) × (low[1], high[1]) and puts a grid on it, as fine as needed.

    Args:
        log_density: Logarithm of the density.
        low: Lower ends of the support.
        high: Upper ends, beyond which the density is negligible.
        rough: A density that is nearly as high in the same places, to search with if it is much faster. What comes out
            is checked against `log_density`: it changes nothing but the time.
        peak: What `find_peak` gave, if it is known.

    Raises:
        InputError: if the density is 0 wherever it was evaluated, or cannot be resolved.
    """
    logs, edges = resolved_grid(log_density, low, high, rough, [] if peak is None else [peak])
    return _on_panels(logs, edges, degree=NODES_PER_PANEL - 1)


def resolved_grid(
    log_density: GridFunction,
    low: Ends,
    high: Ends,
    rough: GridFunction | None = None,
    peaks: Sequence[Floats] = (),
    tolerance: float = TOLERANCE,
) -> tuple[Floats, list[Floats]]:
    """The log-density at the nodes of panels that are fine enough, -∞ where it is negligible, and their edges.

    Arguments and errors as in `approximate_joint_density`; `peaks` are all that
    count, `tolerance` is that of marginal quantiles.
    """
    search = log_density if rough is None else rough
    if rough is None:
        peaks = peaks or [find_peak(log_density, low, high)]
        # The panels that a cut through the peak needs on either axis are enough if the two parameters depend little.
        cuts = [[_cut(log_density, axis, peak[1 - axis], low, high) for peak in peaks] for axis in (0, 1)]
        edges = [np.unique(np.concatenate(of_axis)) for of_axis in cuts]
    else:
        _, edges = resolved_grid(rough, low, high, peaks=peaks, tolerance=tolerance)
    blocks: Blocks = {}
    for _ in range(MOST_ROUNDS):
        if len(edges[0]) * len(edges[1]) > MOST_PAIRS:
            break
        logs = _where_needed(log_density, edges, _needed_panels(search, edges), blocks)
        fine = _on_panels(logs, edges, degree=NODES_PER_PANEL - 1)
        cut_off = {axis: _cut_off_at(fine, axis, edges[axis], low, high) for axis in (0, 1)}
        for axis, at in cut_off.items():
            if at is not None:
                edges[axis] = _extended(edges[axis], _cut(search, axis, at, low, high), low[axis], high[axis])
        if set(cut_off.values()) != {None}:
            continue
        coarse = _on_panels(logs, edges, degree=COARSE_DEGREE)
        if np.abs(_marginal_quantiles(coarse) - _marginal_quantiles(fine)).max() < tolerance:
            return logs, edges
        edges = _refined(edges, coarse, fine)
    raise InputError("the joint density could not be resolved: is its logarithm smooth?")


def _extended(edges: Floats, wider: Floats, low: float, high: float) -> Floats:
    """Edges that also cover what a cut elsewhere needs, and some panels more: a density that bends goes on further."""
    known = np.concatenate([wider[wider < edges[0]], edges, wider[wider > edges[-1]]])
    more = np.arange(1, MORE_PANELS + 1)
    before, after = known[0] - more * (edges[1] - edges[0]), known[-1] + more * (edges[-1] - edges[-2])
    return np.unique(np.clip(np.concatenate([before, known, after]), low, high))


def _needed_panels(log_density: GridFunction, edges: list[Floats]) -> Flags:
    """Which pairs of panels have a density that is not negligible, from a few points of each, shape (P, Q)."""
    values = log_density(*(gauss_legendre(ends, POINTS_TO_TELL)[0] for ends in edges))
    shape = (len(edges[0]) - 1, POINTS_TO_TELL, len(edges[1]) - 1, POINTS_TO_TELL)
    return np.asarray(values.reshape(shape).max(axis=(1, 3)) > values.max() - MARGIN * SHALLOW)


def _where_needed(log_density: GridFunction, edges: list[Floats], is_needed: Flags, blocks: Blocks) -> Floats:
    """The log-density at the nodes of the panels that are needed, and -∞ elsewhere; `blocks` keeps what is known."""
    first, second = (gauss_legendre(ends, NODES_PER_PANEL)[0] for ends in edges)
    names = [
        [(*edges[0][p : p + 2].tolist(), *edges[1][q : q + 2].tolist()) for q in range(is_needed.shape[1])]
        for p in range(is_needed.shape[0])
    ]
    is_missing = is_needed & np.array([[name not in blocks for name in row] for row in names])
    start = 0
    for stop in range(1, len(is_missing) + 1):  # neighbours that need the same are computed together
        if stop < len(is_missing) and (is_missing[stop] == is_missing[start]).all():
            continue
        columns = np.flatnonzero(is_missing[start])
        if columns.size:
            rows = slice(start * NODES_PER_PANEL, stop * NODES_PER_PANEL)
            nodes = (columns[:, None] * NODES_PER_PANEL + np.arange(NODES_PER_PANEL)).ravel()
            values = log_density(first[rows], second[nodes])
            for p, of_row in enumerate(np.split(values, stop - start)):
                for q, block in zip(columns.tolist(), np.split(of_row, len(columns), axis=1), strict=True):
                    blocks[names[start + p][q]] = block
        start = stop
    nothing = np.full((NODES_PER_PANEL, NODES_PER_PANEL), -np.inf)
    return np.block(
        [
            [blocks[name] if wanted else nothing for name, wanted in zip(row, flags, strict=True)]
            for row, flags in zip(names, is_needed.tolist(), strict=True)
        ]
    )


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


def find_peak(log_density: GridFunction, low: Ends, high: Ends) -> Floats:
    """Roughly where the density is highest, by zooming in on the highest point of a grid."""
    ends = [np.array([start, stop]) for start, stop in zip(low, high, strict=True)]
    share = 0.5 * (1 - np.cos(np.pi * (np.arange(SCAN_POINTS) + 0.5) / SCAN_POINTS))
    for _ in range(8):
        points = [start + (stop - start) * share for start, stop in ends]
        values = log_density(points[0], points[1])
        if values.max() == -np.inf:
            raise InputError("the posterior is 0 everywhere: these priors leave no ε possible")
        best = np.unravel_index(int(values.argmax()), values.shape)
        peak = np.array([points[axis][best[axis]] for axis in (0, 1)])
        padded = [np.concatenate([[ends[axis][0]], points[axis], [ends[axis][1]]]) for axis in (0, 1)]
        ends = [padded[axis][[best[axis], best[axis] + 2]] for axis in (0, 1)]
        around = values[tuple(slice(max(0, at - 1), at + 2) for at in best)]
        if np.ptp(around) < NEAR_PEAK:
            break
    return peak


def _marginal_quantiles(density: JointDensity) -> Floats:
    marginals = (density.first_marginal, density.second_marginal)
    return np.concatenate([marginal.quantile([0.05, 0.5, 0.95]) for marginal in marginals])


def _refined(edges: list[Floats], coarse: JointDensity, fine: JointDensity) -> list[Floats]:
    """Halves the panels, of either axis, on which the two densities' marginals differ most."""
    apart = []
    for axis, ends in enumerate(edges):
        marginals = [density.mass.sum(axis=1 - axis) for density in (coarse, fine)]
        apart.append(np.abs(marginals[0] - marginals[1]).reshape(len(ends) - 1, -1).sum(axis=1))
    least = max(MARGINAL_TOLERANCE, max(float(each.max()) for each in apart) / 10)
    middles = [((ends[1:] + ends[:-1]) / 2)[each > least] for ends, each in zip(edges, apart, strict=True)]
    return [np.sort(np.concatenate([ends, middle])) for ends, middle in zip(edges, middles, strict=True)]


def _on_panels(logs: Floats, edges: list[Floats], degree: int) -> JointDensity:
    """The density from its logarithm at `NODES_PER_PANEL` points per panel and axis, with polynomials in between.

    The logarithm is much smoother than the density, so that few of its values, which are costly, give many densities.
    """
    peak = logs.max()
    between = _between(degree)
    shape = (len(edges[0]) - 1, NODES_PER_PANEL, len(edges[1]) - 1, NODES_PER_PANEL)
    known = np.maximum(logs - peak, -DEEPEST).reshape(shape)
    fine = np.einsum("gi,piqj,hj->pgqh", between, known, between, optimize=True)
    # Where a panel is too wide for its polynomial, that must not tower above all that is known.
    fine = np.minimum(fine, known.max(axis=(1, 3), keepdims=True) + OVERSHOOT)
    (first, first_weight), (second, second_weight) = (gauss_legendre(ends, POINTS_PER_PANEL) for ends in edges)
    density = np.exp(fine.reshape(len(first), len(second)))
    total = float(first_weight @ density @ second_weight)
    log_mass = float(peak + np.log(total))
    return JointDensity(
        first=first,
        second=second,
        first_weight=first_weight,
        second_weight=second_weight,
        values=density / total,
        first_marginal=_marginal(density @ second_weight / total, edges[0], log_mass),
        second_marginal=_marginal(first_weight @ density / total, edges[1], log_mass),
        log_mass=log_mass,
    )


@cache
def _between(degree: int) -> Floats:
    """Takes values at a panel's nodes to a polynomial at its points, shape (POINTS_PER_PANEL, NODES_PER_PANEL).

    With full degree the polynomial interpolates; with a lower one it is the same Legendre series, truncated.
    """
    nodes, _ = legendre_rule(NODES_PER_PANEL)
    points, _ = legendre_rule(POINTS_PER_PANEL)
    series = np.linalg.inv(np.polynomial.legendre.legvander(nodes, NODES_PER_PANEL - 1))
    return np.asarray(np.polynomial.legendre.legvander(points, degree) @ series[: degree + 1], dtype=np.float64)


@cache
def _to_series() -> Floats:
    """From values at the points of a panel to a Chebyshev series."""
    points, _ = legendre_rule(POINTS_PER_PANEL)
    at_points = np.polynomial.chebyshev.chebvander(points, POINTS_PER_PANEL - 1)
    return np.asarray(np.linalg.inv(at_points), dtype=np.float64)


def _marginal(values: Floats, edges: Floats, log_mass: float) -> PiecewiseDensity:
    """Interpolates the logarithm, which is much smoother than the density."""
    num_panels = len(edges) - 1
    logs = np.log(np.maximum(values, values.max() * np.exp(-2 * NEGLIGIBLE)))
    panels = zip(logs.reshape(num_panels, -1) @ _to_series().T, edges[:-1], edges[1:], strict=True)
    series = [Chebyshev(coefficients, domain=[a, b]) for coefficients, a, b in panels]
    return replace(piecewise_density([part for panel in series for part in exponential(panel)], 0.0), log_mass=log_mass)
