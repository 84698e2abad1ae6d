"""Which nodes drive a posterior: how far its mean moves when they are left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Floats
from bmpaudit.estimation.definitions.curve import epsilons_of
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.prior import upper_end
from bmpaudit.estimation.quadrature import gauss_legendre

if TYPE_CHECKING:
    from bmpaudit.estimation.posterior import Posterior

POINTS_PER_PANEL = 12
PANELS_BELOW = 4  # between the floor and the bulk, where the posterior falls to without the nodes that hold it up
BULK = (1e-5, 0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999)
SLID = 1e-3  # share of a posterior below the bulk of the full one from which on it is computed there too


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


def influence(posterior: Posterior, parameter: str | None = None, *, num_threads: int | None = None) -> Influence:
    """How far the posterior mean of a parameter moves without each of the nodes.

    By quadrature with binomial counts, whatever the posterior's method. If there are two parameters, the other one is
    held at its median.

    Args:
        posterior: The posterior.
        parameter: Name of the parameter; may be left out if there is one.
        num_threads: Number of threads; as many as `posterior.likelihood` has if None.

    Raises:
        InputError: if the posterior has no such parameter.
    """
    cuts = _Cuts(posterior, parameter, num_threads)
    likelihood = cuts.likelihood
    rows = np.column_stack([likelihood.counts, likelihood.log_prior_odds])
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    shifts = np.array([cuts.shift_of(replace(likelihood, counts=r[None, :4], log_prior_odds=r[4:])) for r in distinct])
    mean = posterior.mean(parameter)
    return Influence(
        mean=mean,
        node=posterior.node,
        shift=shifts[place.ravel()],
        is_constant=posterior.is_constant,
        mean_without_constant=_without_constant(cuts, posterior, mean),
    )


def mean_without_constant(posterior: Posterior, parameter: str | None = None) -> float:
    """The posterior mean without the nodes whose decision never varies; much faster than all of `influence`."""
    return _without_constant(_Cuts(posterior, parameter), posterior, posterior.mean(parameter))


def _without_constant(cuts: _Cuts, posterior: Posterior, mean: float) -> float:
    chosen, likelihood = posterior.is_constant, cuts.likelihood
    if not chosen.any():
        return mean
    return mean - cuts.shift_of(
        replace(likelihood, counts=likelihood.counts[chosen], log_prior_odds=likelihood.log_prior_odds[chosen])
    )


class _Cuts:
    """The posterior along one parameter: over its bulk and, only if needed, down to the floor.

    Far below the bulk every likelihood takes long to compute, and few nodes hold a posterior up so that it would fall
    there without them.
    """

    def __init__(self, posterior: Posterior, parameter: str | None, num_threads: int | None = None) -> None:
        self._posterior, self._parameter = posterior, parameter
        self.likelihood = posterior.likelihood
        if num_threads is not None:
            self.likelihood = replace(self.likelihood, num_threads=num_threads)
        self._low = posterior.support_low(parameter)
        self._bulk = np.maximum(posterior.quantile(BULK, parameter), self._low)
        self._above = _doubling(float(self._bulk[-2]), float(self._bulk[-1]), upper_end(posterior.prior, self._low))
        points, weights = gauss_legendre(np.concatenate([self._bulk, self._above]), POINTS_PER_PANEL)
        if posterior.run is None:
            with np.errstate(divide="ignore"):
                log_density = np.log(posterior.marginal(parameter).pdf(points))
        else:
            log_density = self._log_posterior(points)
        self._here = _Cut(points, weights, log_density)

    def shift_of(self, left_out: Likelihood) -> float:
        """The mean minus the mean without some nodes."""
        without = self._here.without(left_out(*self._ends(self._here.points)))
        if without.share_below(self._low) < SLID:
            return self._here.mean() - without.mean()
        return self._down.mean() - self._down.without(left_out(*self._ends(self._down.points))).mean()

    @cached_property
    def _down(self) -> _Cut:
        below = np.linspace(self._low, self._bulk[0], PANELS_BELOW + 1)[:-1]
        points, weights = gauss_legendre(np.concatenate([below, self._bulk, self._above]), POINTS_PER_PANEL)
        return _Cut(points, weights, self._log_posterior(points))

    def _log_posterior(self, points: Floats) -> Floats:
        return self.likelihood(*self._ends(points)) + self._posterior.prior(points)

    def _ends(self, points: Floats) -> tuple[Floats, Floats, float]:
        """ε_L, ε_R and s where the parameter takes some values; another ε is held at its median."""
        values = [points]
        if len(self._posterior.parameter_names) > 1:
            held = np.full_like(points, self._held)
            values = [points if name == self._parameter else held for name in self._posterior.parameter_names]
        return *epsilons_of(self._posterior.definition, *values), self._strength

    @cached_property
    def _held(self) -> float:
        """The median of the other ε."""
        (other,) = (name for name in self._posterior.parameter_names if name != self._parameter)
        return float(self._posterior.quantile(0.5, other))

    @cached_property
    def _strength(self) -> float:
        return self._posterior.typical_strength


@dataclass(frozen=True, eq=False)
class _Cut:
    """A density at the points of a quadrature rule, given by its logarithm up to a constant."""

    points: Floats
    weights: Floats
    log_density: Floats

    def without(self, log_likelihood: Floats) -> _Cut:
        """The density divided by a likelihood."""
        is_possible = self.log_density > -np.inf
        rest = np.where(is_possible, self.log_density - np.where(is_possible, log_likelihood, 0.0), -np.inf)
        return _Cut(self.points, self.weights, rest)

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
