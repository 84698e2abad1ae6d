"""Which nodes drive a posterior: how far its mean moves when they are left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmpaudit.estimation.definitions import epsilons_of
from bmpaudit.estimation.density import NOTHING, PiecewiseDensity, gauss_legendre
from bmpaudit.estimation.likelihood import Likelihood, Rows, upper_end
from bmpaudit.util.values import Flags, Floats, Ints

if TYPE_CHECKING:
    from bmpaudit.estimation.posterior import Posterior

POINTS_PER_PANEL = 12
PANELS_BELOW = 4  # between the floor and the bulk, where the posterior falls to without the nodes that hold it up
BULK = (1e-5, 0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999)
SLID = 1e-3  # share of a posterior below the bulk of the full one from which on it is computed there too
FEW_POINTS = 24  # of a Gauss rule whose weight is the posterior: enough for a likelihood that varies little
LITTLE = 0.3  # nats


@dataclass(frozen=True)
class DrivingNode:
    """A node that the posterior depends on.

    Attributes:
        node: Id or name of the node.
        shift: How far it raises the posterior mean: the mean with it minus the mean without it.
        is_constant: Whether the decision about it never varies, so that it says nothing.
    """

    node: Any
    shift: float
    is_constant: bool


@dataclass(frozen=True, eq=False)
class Influence:
    """How the posterior mean of one parameter changes without each node, and without all nodes of constant decision.

    Leaving node k out divides the posterior by its likelihood L_k. The support stays that of all nodes.

    Attributes:
        mean: Posterior mean with all nodes.
        node: Nodes that count, shape (K,).
        shift: `mean` minus the mean without the node, shape (K,).
        is_constant: Whether the decision about a node never varies, shape (K,).
        mean_without_constant: Posterior mean without all nodes whose decision never varies.
    """

    mean: float
    node: npt.NDArray[Any]
    shift: Floats
    is_constant: Flags
    mean_without_constant: float

    def drivers(self, num_nodes: int = 10) -> tuple[DrivingNode, ...]:
        """The nodes that move the mean most, in either direction, strongest first."""
        order = np.argsort(-np.abs(self.shift), kind="stable")[:num_nodes]
        return tuple(
            DrivingNode(self.node[k].item(), float(self.shift[k]), bool(self.is_constant[k])) for k in order.tolist()
        )


class Cuts:
    """The posterior along one parameter: over its bulk and, only if needed, down to the floor.

    Far below the bulk every likelihood takes long to compute, and few nodes hold a posterior up so that it would fall
    there without them. By quadrature with binomial counts, whatever the posterior's method; if there are two
    parameters, the other one is held at its median.

    Args:
        posterior: The posterior.
        parameter: Name of the parameter; may be left out if there is one.
        likelihood: Its likelihood.

    Raises:
        InputError: if the posterior has no such parameter.
    """

    def __init__(self, posterior: Posterior, parameter: str | None, likelihood: Likelihood) -> None:
        self._posterior, self._parameter, self._likelihood = posterior, parameter, likelihood
        self._low = posterior.support_low(parameter)
        self._bulk = np.maximum(posterior.quantile(BULK, parameter), self._low)
        above = _doubling(float(self._bulk[-2]), float(self._bulk[-1]), upper_end(posterior.prior, self._low))
        marginal, edges = posterior.marginal(parameter), self._bulk
        if isinstance(marginal, PiecewiseDensity):  # it may have several peaks, each with panels of its own
            edges = np.union1d(edges, np.clip(marginal.edges, edges[0], edges[-1]))
        points, weights = gauss_legendre(np.concatenate([edges, above]), POINTS_PER_PANEL)
        with np.errstate(divide="ignore"):
            logs = np.log(marginal.pdf(points)) if posterior.run is None else self._log_posterior(points)
        self._here = _Cut(points, weights, logs)

    @cached_property
    def influence(self) -> Influence:
        """How far the mean moves without each of the nodes."""
        points, mass = gauss_of_measure(self._here.points, self._here.mass, FEW_POINTS)
        logs = self._likelihood.of_rows(*self._ends(points))
        rest = np.exp(logs.min(axis=1, keepdims=True) - logs) * mass
        shifts = mass @ points / mass.sum() - rest @ points / rest.sum(axis=1)
        for row in np.flatnonzero(~(np.ptp(logs, axis=1) < LITTLE)).tolist():
            shifts[row] = self._shift_without(np.bincount([row], minlength=len(logs)))
        return Influence(
            mean=self._posterior.mean(self._parameter),
            node=self._posterior.node,
            shift=shifts[self._likelihood.row_of_node],
            is_constant=self._posterior.is_constant,
            mean_without_constant=self.mean_without_constant,
        )

    @cached_property
    def mean_without_constant(self) -> float:
        """The posterior mean without the nodes whose decision never varies."""
        mean, is_constant = self._posterior.mean(self._parameter), self._posterior.is_constant
        if not is_constant.any():
            return mean
        rows = self._likelihood.row_of_node[is_constant]
        return mean - self._shift_without(np.bincount(rows, minlength=len(self._likelihood.rows)))

    def _shift_without(self, times: Ints) -> float:
        """The mean minus the mean without so many nodes of each row."""
        rows, points = self._likelihood.rows, self._here.points
        left_out = self._likelihood(*self._ends(points), rows=rows.counted(times))
        is_possible = self._here.log_density > -np.inf
        logs = np.where(is_possible, self._here.log_density - np.where(is_possible, left_out, 0.0), -np.inf)
        here = _Cut(points, self._here.weights, logs)
        if here.share_below(self._low) < SLID:
            return self._here.mean() - here.mean()
        below, weights = gauss_legendre(np.linspace(self._low, self._bulk[0], PANELS_BELOW + 1), POINTS_PER_PANEL)
        # Joined to the cut above by the value at its highest point.
        highest, rest = int(logs.argmax()), rows.counted(rows.times - times)
        scale = float(self._log_posterior(points[[highest]], rest)[0])
        cutoff = scale - NOTHING - self._posterior.prior(below)
        below_logs = self._log_posterior(below, rest, cutoff) - scale + logs[highest]
        joined = zip((below, weights, below_logs), (points, self._here.weights, logs), strict=True)
        return self._posterior.mean(self._parameter) - _Cut(*map(np.concatenate, joined)).mean()

    def _log_posterior(self, points: Floats, rows: Rows | None = None, cutoff: npt.ArrayLike = -np.inf) -> Floats:
        return self._likelihood(*self._ends(points), cutoff, rows=rows) + self._posterior.prior(points)

    def _ends(self, points: Floats) -> tuple[Floats, Floats, float]:
        """ε_L, ε_R and s where the parameter takes some values; another ε is held at its median."""
        names = self._posterior.parameter_names
        values = [
            points if len(names) == 1 or name == self._parameter else np.full_like(points, self._medians[name])
            for name in names
        ]
        return *epsilons_of(self._posterior.definition, *values), self._posterior.typical_strength

    @cached_property
    def _medians(self) -> dict[str, float]:
        return {name: float(self._posterior.quantile(0.5, name)) for name in self._posterior.parameter_names}


@dataclass(frozen=True, eq=False)
class _Cut:
    """A density at the points of a quadrature rule, given by its logarithm up to a constant."""

    points: Floats
    weights: Floats
    log_density: Floats

    @property
    def mass(self) -> Floats:
        """What the points stand for, up to a factor."""
        return np.exp(self.log_density - self.log_density.max()) * self.weights

    def mean(self) -> float:
        return float((self.mass * self.points).sum() / self.mass.sum())

    def share_below(self, low: float) -> float:
        """How much mass may lie between `low` and the first point: no more, if the logarithm is concave there."""
        start = float(self.points[0])
        rise = (self.log_density[1] - self.log_density[0]) / max(float(self.points[1]) - start, 1e-300)
        length = min(start - low, 1 / rise) if rise > 0 else start - low
        return float(length * np.exp(self.log_density[0] - self.log_density.max()) / self.mass.sum())


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


def _doubling(before: float, start: float, end: float) -> Floats:
    """Edges of panels from `start` up to `end`, each twice as wide as the one below it."""
    width = max(start - before, 1e-3 * (end - start))
    num_panels = max(int(np.ceil(np.log2((end - start) / width + 1))), 1)
    return np.minimum(start + width * (2.0 ** np.arange(1, num_panels + 1) - 1), end)
