"""Which nodes drive a posterior: how far its mean moves when they are left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmpaudit.estimation.definitions import epsilons_of
from bmpaudit.estimation.density import NEGLIGIBLE, PiecewiseDensity, gauss_legendre, gauss_of_measure
from bmpaudit.estimation.likelihood import Likelihood, Rows, upper_end
from bmpaudit.util.values import Flags, Floats, Ints

if TYPE_CHECKING:
    from bmpaudit.estimation.posterior import Posterior

POINTS_PER_PANEL = 12
PANELS_BELOW = 4  # between the floor and the bulk, where the posterior falls to without the nodes that hold it up
BULK = (1e-5, 0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999)
POINTS_THAT_TELL = (0, 5, 11)  # of a panel, whether anything is there
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
        if posterior.run is None:
            with np.errstate(divide="ignore"):
                log_density = np.log(marginal.pdf(points))
        else:
            log_density = self._log_posterior(points)
        self._here = _Cut(points, weights, log_density)

    @cached_property
    def influence(self) -> Influence:
        """How far the mean moves without each of the nodes."""
        few = self._here.few_points()
        logs = self._likelihood.of_rows(*self._ends(few.points))
        rest = np.exp(logs.min(axis=1, keepdims=True) - logs) * few.weights
        shifts = few.mean() - rest @ few.points / rest.sum(axis=1)
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
        left_out, rest = self._likelihood.rows.split(times)
        here = self._here.without(self._likelihood(*self._ends(self._here.points), rows=left_out))
        if here.share_below(self._low) < SLID:
            return self._here.mean() - here.mean()
        edges = np.linspace(self._low, self._bulk[0], PANELS_BELOW + 1)
        points, weights = gauss_legendre(edges, POINTS_PER_PANEL)
        # Joined to the cut above by the value at its highest point.
        highest = int(here.log_density.argmax())
        scale = float(self._log_rest(here.points[[highest]], rest)[0])
        below = self._log_rest_below(points, rest, scale) - scale + here.log_density[highest]
        return self._posterior.mean(self._parameter) - here.below(_Cut(points, weights, below)).mean()

    def _log_rest_below(self, points: Floats, rest: Rows, scale: float) -> Floats:
        """As `_log_rest`, far below the bulk: -∞ where it is negligible against `scale`, as a few points tell."""
        values = np.full_like(points, -np.inf)
        cutoff = scale - 2 * NEGLIGIBLE - self._posterior.prior(points)
        places = np.arange(len(points)).reshape(PANELS_BELOW, POINTS_PER_PANEL)
        tell = places[:, POINTS_THAT_TELL].ravel()
        values[tell] = self._log_rest(points[tell], rest, cutoff[tell])
        is_needed = (values.reshape(places.shape) > -np.inf).any(axis=1)
        others = np.setdiff1d(places[is_needed], tell)
        values[others] = self._log_rest(points[others], rest, cutoff[others])
        return values

    def _log_rest(self, points: Floats, rest: Rows, cutoff: npt.ArrayLike = -np.inf) -> Floats:
        return self._likelihood(*self._ends(points), cutoff, rows=rest) + self._posterior.prior(points)

    def _log_posterior(self, points: Floats) -> Floats:
        return self._likelihood(*self._ends(points)) + self._posterior.prior(points)

    def _ends(self, points: Floats) -> tuple[Floats, Floats, float]:
        """ε_L, ε_R and s where the parameter takes some values; another ε is held at its median."""
        values = [points]
        if len(self._posterior.parameter_names) > 1:
            held = np.full_like(points, self._held)
            values = [points if name == self._parameter else held for name in self._posterior.parameter_names]
        return *epsilons_of(self._posterior.definition, *values), self._posterior.typical_strength

    @cached_property
    def _held(self) -> float:
        """The median of the other ε."""
        (other,) = (name for name in self._posterior.parameter_names if name != self._parameter)
        return float(self._posterior.quantile(0.5, other))


@dataclass(frozen=True, eq=False)
class _Cut:
    """A density at the points of a quadrature rule, given by its logarithm up to a constant."""

    points: Floats
    weights: Floats
    log_density: Floats

    def below(self, lower: _Cut) -> _Cut:
        """This cut and another below it."""
        pairs = zip(
            (lower.points, lower.weights, lower.log_density), (self.points, self.weights, self.log_density), strict=True
        )
        return _Cut(*(np.concatenate(pair) for pair in pairs))

    def without(self, log_likelihood: Floats) -> _Cut:
        """The density divided by a likelihood."""
        is_possible = self.log_density > -np.inf
        rest = np.where(is_possible, self.log_density - np.where(is_possible, log_likelihood, 0.0), -np.inf)
        return _Cut(self.points, self.weights, rest)

    def few_points(self) -> _Cut:
        """The same density as a Gauss rule of its own: few points, all of them of the same density."""
        points, weights = gauss_of_measure(self.points, self._mass(), FEW_POINTS)
        return _Cut(points, weights, np.zeros_like(points))

    def mean(self) -> float:
        mass = self._mass()
        return float((mass * self.points).sum() / mass.sum())

    def share_below(self, low: float) -> float:
        """How much mass may lie between `low` and the first point: no more, if the logarithm is concave there."""
        mass, start = self._mass(), float(self.points[0])
        rise = (self.log_density[1] - self.log_density[0]) / max(float(self.points[1]) - start, 1e-300)
        length = min(start - low, 1 / rise) if rise > 0 else start - low
        return float(length * np.exp(self.log_density[0] - self.log_density.max()) / mass.sum())

    def _mass(self) -> Floats:
        return np.exp(self.log_density - self.log_density.max()) * self.weights


def _doubling(before: float, start: float, end: float) -> Floats:
    """Edges of panels from `start` up to `end`, each twice as wide as the one below it."""
    width = max(start - before, 1e-3 * (end - start))
    num_panels = max(int(np.ceil(np.log2((end - start) / width + 1))), 1)
    return np.minimum(start + width * (2.0 ** np.arange(1, num_panels + 1) - 1), end)
