"""Which nodes drive a posterior: how far its mean moves when they are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.prior import upper_end

if TYPE_CHECKING:
    from bmpaudit.estimation.posterior import Posterior

Floats = npt.NDArray[np.float64]

POINTS_PER_PANEL = 12
PANELS_BELOW = 4  # between the floor and the bulk, where the posterior goes without the nodes that hold it up
BULK = (0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999)


@dataclass(frozen=True)
class DrivingNode:
    """A node that the posterior hangs on.

    Attributes:
        node: Its id or name.
        shift: By how much it raises the posterior mean: the mean with it minus the mean without it.
        is_constant: Whether the decision about it never varies, so that it tells nothing.
    """

    node: Any
    shift: float
    is_constant: bool


@dataclass(frozen=True, eq=False)
class Influence:
    """The posterior mean of one parameter without a node, for every node, and without all nodes of constant decision.

    Leaving node k out divides the posterior by its likelihood L_k. The support stays that of all nodes.

    Attributes:
        mean: With all nodes, by the same quadrature.
        node: The nodes that count, shape (K,).
        shift: `mean` minus the mean without the node, shape (K,).
        is_constant: Shape (K,).
        mean_without_constant: Without all nodes whose decision never varies.
    """

    mean: float
    node: npt.NDArray[Any]
    shift: Floats
    is_constant: npt.NDArray[np.bool_]
    mean_without_constant: float

    def drivers(self, num_nodes: int = 10) -> tuple[DrivingNode, ...]:
        """The nodes that move the mean most, either way, the strongest first."""
        order = np.argsort(-np.abs(self.shift), kind="stable")[:num_nodes]
        return tuple(
            DrivingNode(self.node[k].item(), float(self.shift[k]), bool(self.is_constant[k])) for k in order.tolist()
        )


def influence(posterior: Posterior, parameter: str | None = None) -> Influence:
    """How far the posterior mean of a parameter moves without each of the nodes.

    By quadrature with binomial counts, whatever the posterior's method. Of `bmp`, and where a strength was estimated,
    the other parameter is held at its median.

    Raises:
        InputError: if the posterior has no such parameter.
    """
    cut = _Cut(posterior, parameter)
    rows = np.column_stack([posterior.likelihood.counts, posterior.likelihood.log_prior_odds])
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    means = np.array([cut.mean_without(Likelihood(row[None, :4], row[4:])) for row in distinct])
    mean = cut.mean()
    return Influence(
        mean=mean,
        node=posterior.node,
        shift=mean - means[place.ravel()],
        is_constant=posterior.is_constant,
        mean_without_constant=_without_constant(cut, posterior),
    )


def mean_without_constant(posterior: Posterior, parameter: str | None = None) -> float:
    """The posterior mean without the nodes whose decision never varies; `influence` of them alone, and much faster."""
    marginal, low = posterior.marginal(parameter), posterior.support_low(parameter)
    edges = np.maximum(marginal.quantile(BULK), low)
    # Where the posterior is known already, the likelihood of the nodes left out is all that is needed.
    points, weights = _quadrature(edges)
    with np.errstate(divide="ignore"):
        rest = np.log(marginal.pdf(points)) - _constant(posterior)(*_both_sides(posterior, parameter, points))
    density = np.exp(rest - rest.max()) * weights
    if density[:POINTS_PER_PANEL].sum() > 0.01 * density.sum():  # it goes where the posterior is next to nothing
        return _without_constant(_Cut(posterior, parameter), posterior)
    return float((density * points).sum() / density.sum())


def _without_constant(cut: _Cut, posterior: Posterior) -> float:
    return cut.mean_without(_constant(posterior)) if posterior.is_constant.any() else cut.mean()


def _constant(posterior: Posterior) -> Likelihood:
    """The likelihood of the nodes whose decision never varies."""
    chosen, likelihood = posterior.is_constant, posterior.likelihood
    return Likelihood(likelihood.counts[chosen], likelihood.log_prior_odds[chosen])


def _quadrature(edges: Floats) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(POINTS_PER_PANEL)
    half = np.diff(edges)[:, None] / 2
    return ((edges[1:] + edges[:-1])[:, None] / 2 + half * nodes).ravel(), (half * weights).ravel()


def _both_sides(posterior: Posterior, parameter: str | None, points: Floats) -> tuple[Floats, Floats, float]:
    """ε_L, ε_R and s where one parameter takes some values; the other of `bmp` is held at its median."""
    definition, infinite = posterior.definition, np.full_like(points, np.inf)
    left = points if definition.bounds_left else infinite
    right = points if definition.bounds_right else infinite
    if definition.is_joint:
        medians = [np.full_like(points, posterior.quantile(0.5, name)) for name in definition.parameter_names]
        left, right = (left, medians[1]) if parameter == "epsilon_left" else (medians[0], right)
    return left, right, posterior.typical_strength


class _Cut:
    """The posterior along one parameter, on a quadrature that also covers where it may go without some nodes."""

    def __init__(self, posterior: Posterior, parameter: str | None) -> None:
        low = posterior.support_low(parameter)
        bulk = np.maximum(posterior.quantile(BULK, parameter), low)
        below, high = np.linspace(low, bulk[0], PANELS_BELOW + 1)[:-1], upper_end(posterior.prior, low)
        self._points, self._weights = _quadrature(np.concatenate([below, bulk, [high]]))
        self._ends = _both_sides(posterior, parameter, self._points)
        self._log_posterior = posterior.likelihood(*self._ends) + posterior.prior(self._points)

    def mean(self) -> float:
        return self._mean(self._log_posterior)

    def mean_without(self, left_out: Likelihood) -> float:
        return self._mean(self._log_posterior - left_out(*self._ends))

    def _mean(self, log_density: Floats) -> float:
        density = np.exp(log_density - log_density.max()) * self._weights
        return float((density * self._points).sum() / density.sum())
