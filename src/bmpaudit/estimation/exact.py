"""The exact posterior of ε: no Monte Carlo, quadrature only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import InputError
from bmpaudit.estimation.definition import Definition
from bmpaudit.estimation.density import NEGLIGIBLE, PiecewiseDensity, approximate_density
from bmpaudit.estimation.joint_density import JointDensity, approximate_joint_density
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.prior import LogDensity

Floats = npt.NDArray[np.float64]

FURTHEST = 1e6  # an ε beyond which no prior is followed


def exact_density(
    likelihood: Likelihood, definition: Definition, prior: LogDensity, strength: float = 0.0
) -> PiecewiseDensity:
    """The posterior density of the one parameter of a definition.

    log p(ε | data) = log prior + Σ_k [log Pr((α_k, β_k) ∈ R_k) - log |R_k|], on the support that the priors leave.
    """
    low = _support_low(likelihood, definition, prior)

    def log_posterior(epsilon: Floats, cutoff: float) -> Floats:
        infinite = np.full_like(epsilon, np.inf)
        left = epsilon if definition.bounds_left else infinite
        right = epsilon if definition.bounds_right else infinite
        log_prior = prior(epsilon)
        return likelihood(left, right, strength, cutoff - log_prior) + log_prior

    return approximate_density(log_posterior, low, _upper_end(prior, low))


def exact_joint_density(likelihood: Likelihood, definition: Definition, prior: LogDensity) -> JointDensity:
    """The posterior density of (ε_L, ε_R), with independent priors."""
    low = definition.support_low(likelihood.log_prior_odds)

    def log_posterior(left: Floats, right: Floats) -> Floats:
        return likelihood.on_grid(left, right) + prior(left)[:, None] + prior(right)[None, :]

    return approximate_joint_density(log_posterior, low, _upper_end(prior, max(low)))


def _support_low(likelihood: Likelihood, definition: Definition, prior: LogDensity) -> float:
    left, right = definition.support_low(likelihood.log_prior_odds)
    low = max(left if definition.bounds_left else -np.inf, right if definition.bounds_right else -np.inf)
    # Without a bound from the nodes (all of them certainly out) the prior alone says where to begin.
    return low if low > -np.inf else -_upper_end(lambda epsilon: prior(-epsilon), 0.0)


def _upper_end(prior: LogDensity, low: float) -> float:
    """Where the prior, and so the posterior (the likelihood is flat up there), has become negligible."""
    distance = 1.0
    scan = prior(low + np.geomspace(1e-3, FURTHEST, 400))
    highest = float(np.max(scan))
    while float(prior(np.array([low + distance]))[0]) > highest - 2 * NEGLIGIBLE:
        distance *= 1.5
        if distance > FURTHEST:
            raise InputError("the prior must vanish for large ε: the likelihood does not")
    return low + distance
