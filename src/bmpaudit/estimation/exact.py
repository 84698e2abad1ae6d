"""The exact posterior of ε, by quadrature only: no Monte Carlo error."""

from __future__ import annotations

import numpy as np

from bmpaudit.arrays import Floats
from bmpaudit.estimation.definitions.curve import epsilons_of
from bmpaudit.estimation.density import PiecewiseDensity, approximate_density
from bmpaudit.estimation.joint_density import DEEPEST, JointDensity, approximate_joint_density
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.prior import LogDensity, StrengthPrior, upper_end
from bmpaudit.estimation.support import check_one_parameter, support_lows
from bmpaudit.interfaces import Definition

STRONGEST = 1 - 1e-7  # the ring of a larger s is too thin for double precision
HAIR = 1e-9  # share of the range, next to its lower end, that is left out: there R is too thin for double precision


def exact_density(
    likelihood: Likelihood, definition: Definition, prior: LogDensity, strength: float = 0.0
) -> PiecewiseDensity:
    """The posterior density of the one parameter of a definition.

    log p(ε | data) = log prior + Σ_k [log Pr((α_k, β_k) ∈ R_k) - log |R_k|], on the support that the priors leave.
    """
    (low,) = support_lows(definition, likelihood.log_prior_odds, prior).values()

    def log_posterior(epsilon: Floats, cutoff: float) -> Floats:
        left, right = epsilons_of(definition, epsilon)
        log_prior = prior(epsilon)
        # A prior of 0 leaves 0, whatever the likelihood is.
        lowest = np.where(log_prior == -np.inf, np.inf, cutoff - np.maximum(log_prior, np.finfo(np.float64).min))
        return likelihood(left, right, strength, lowest) + log_prior

    high = upper_end(prior, low)
    return approximate_density(log_posterior, _just_above(low, high), high)


def exact_joint_density(
    likelihood: Likelihood, definition: Definition, prior: LogDensity, strength: float = 0.0
) -> JointDensity:
    """The posterior density of (ε_L, ε_R), with independent priors."""
    low_left, low_right = support_lows(definition, likelihood.log_prior_odds, prior).values()

    def log_posterior(left: Floats, right: Floats) -> Floats:
        return likelihood.on_grid(left, right, strength) + prior(left)[:, None] + prior(right)[None, :]

    high = upper_end(prior, max(low_left, low_right))
    lows = _just_above(low_left, high), _just_above(low_right, high)
    return approximate_joint_density(log_posterior, lows, (high, high))


def exact_strength_density(
    likelihood: Likelihood, definition: Definition, prior: LogDensity, strength_prior: StrengthPrior
) -> JointDensity:
    """The posterior density of (ε, s) of a definition with one ε, for an unknown attack strength s.

    Raises:
        InputError: if the definition has two ε, or a prior is 0 or 1: the ring needs finite prior odds.
    """
    check_one_parameter(definition)
    (low,) = support_lows(definition, likelihood.log_prior_odds, prior).values()

    best = [-np.inf]

    def log_posterior(epsilon: Floats, strength: Floats) -> Floats:
        left, right = epsilons_of(definition, epsilon)
        log_prior = prior(epsilon)[:, None] + strength_prior.log_density(strength)[None, :]
        values = np.empty(log_prior.shape)
        for column, s in enumerate(strength):
            # Rings take long to integrate: skip those that are negligible beside the best value so far.
            cutoff = best[0] - DEEPEST - log_prior[:, column]
            values[:, column] = likelihood(left, right, float(s), cutoff) + log_prior[:, column]
            best[0] = max(best[0], float(values[:, column].max()))
        return values

    high = upper_end(prior, low)
    return approximate_joint_density(log_posterior, (_just_above(low, high), 0.0), (high, STRONGEST))


def _just_above(low: float, high: float) -> float:
    return low + HAIR * (high - low)
