"""A density of two parameters on a grid of Gauss-Legendre panels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev

from bmpaudit.errors import InputError
from bmpaudit.estimation.density import PiecewiseDensity, approximate_density

Floats = npt.NDArray[np.float64]
GridFunction = Callable[[Floats, Floats], Floats]
"""Log-density on all pairs of two lists, shape (num_first, num_second)."""

NODES_PER_PANEL = (11, 15)  # two grids on the same panels, whose difference tells whether the panels are fine enough
SCAN_POINTS = 17
TOLERANCE = 1e-6  # by which marginal quantiles may differ between the two
MOST_HALVINGS = 3


@dataclass(frozen=True, eq=False)
class JointDensity:
    """A normalised density on a grid.

    Attributes:
        first: Grid points of the first parameter, shape (G,).
        second: Grid points of the second parameter, shape (H,).
        mass: Density times quadrature weight at each pair; sums to 1, shape (G, H).
        first_marginal: Density of the first parameter.
        second_marginal: Density of the second parameter.
        log_mass: Logarithm of the integral before it was normalised.
    """

    first: Floats
    second: Floats
    mass: Floats
    first_marginal: PiecewiseDensity
    second_marginal: PiecewiseDensity
    log_mass: float

    def correlation(self) -> float:
        """Of the two parameters."""
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
        cumulative = np.cumsum(self.mass, axis=1)
        second = np.empty(num_draws)
        for row in np.unique(rows):
            chosen = rows == row
            levels = cumulative[row] - self.mass[row] / 2  # mass up to the middle of each point's share
            second[chosen] = np.interp(rng.random(chosen.sum()) * cumulative[row, -1], levels, self.second)
        return np.column_stack([first, second])


def approximate_joint_density(log_density: GridFunction, low: tuple[float, float], high: float) -> JointDensity:
    """Finds where a density on (low[0], high) × (low[1], high) lives and puts a grid on it, as fine as needed.

    Raises:
        InputError: if the density is 0 everywhere it was looked at, or cannot be resolved.
    """
    peak = _find_peak(log_density, low, high)
    # The panels that a cut through the peak needs, on either axis, serve the whole: they hang together little.
    edges = (
        approximate_density(lambda x, _: log_density(x, peak[1:])[:, 0], low[0], high).edges,
        approximate_density(lambda x, _: log_density(peak[:1], x)[0], low[1], high).edges,
    )
    for _ in range(MOST_HALVINGS + 1):
        coarse, fine = (_on_panels(log_density, edges, nodes) for nodes in NODES_PER_PANEL)
        if np.abs(_marginal_quantiles(coarse) - _marginal_quantiles(fine)).max() < TOLERANCE:
            return fine
        edges = (_halved(edges[0]), _halved(edges[1]))
    raise InputError("the joint density could not be resolved: is its logarithm smooth?")


def _find_peak(log_density: GridFunction, low: tuple[float, float], high: float) -> Floats:
    """About where the density is highest, by zooming in on the highest point of a grid."""
    ends = [np.array([start, high]) for start in low]
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
        if np.ptp(values[np.isfinite(values)]) < 1:
            break
    return peak


def _marginal_quantiles(density: JointDensity) -> Floats:
    marginals = (density.first_marginal, density.second_marginal)
    return np.concatenate([marginal.quantile([0.05, 0.5, 0.95]) for marginal in marginals])


def _halved(edges: Floats) -> Floats:
    return np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))


def _on_panels(log_density: GridFunction, edges: tuple[Floats, Floats], nodes: int) -> JointDensity:
    (first, first_weight), (second, second_weight) = _axis(edges[0], nodes), _axis(edges[1], nodes)
    values = log_density(first, second)
    peak = values.max()
    density = np.exp(values - peak)
    mass = density * first_weight[:, None] * second_weight[None, :]
    total = mass.sum()
    log_mass = float(peak + np.log(total))
    return JointDensity(
        first=first,
        second=second,
        mass=mass / total,
        first_marginal=_marginal(density @ second_weight / total, first, edges[0], log_mass),
        second_marginal=_marginal(first_weight @ density / total, second, edges[1], log_mass),
        log_mass=log_mass,
    )


def _axis(edges: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Points and weights of composite Gauss-Legendre quadrature."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * points).ravel(), (half[:, None] * weights).ravel()


def _marginal(values: Floats, points: Floats, edges: Floats, log_mass: float) -> PiecewiseDensity:
    num_panels = len(edges) - 1
    panels = zip(points.reshape(num_panels, -1), values.reshape(num_panels, -1), edges[:-1], edges[1:], strict=True)
    fitted = tuple(Chebyshev.fit(x, y, len(x) - 1, domain=[a, b]) for x, y, a, b in panels)
    return PiecewiseDensity(edges, fitted, log_mass)
