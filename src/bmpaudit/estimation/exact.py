"""The exact posterior of ε: no Monte Carlo, quadrature only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import InputError
from bmpaudit.estimation.definition import Definition
from bmpaudit.estimation.density import PiecewiseDensity, approximate_density
from bmpaudit.estimation.joint_density import DEEPEST, JointDensity, approximate_joint_density
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.prior import LogDensity, StrengthPrior, upper_end
from bmpaudit.estimation.support import support_low

Floats = npt.NDArray[np.float64]

STRONGEST = 1 - 1e-7  # the ring of a larger s is too thin for double precision
HAIR = 1e-9  # share of the range, next to its lower end, that is left out: there R is too thin for double precision


def exact_density(
    likelihood: Likelihood, definition: Definition, prior: LogDensity, strength: float = 0.0
) -> PiecewiseDensity:
    """The posterior density of the one parameter of a definition.

    log p(ε | data) = log prior + Σ_k [log Pr((α_k, β_k) ∈ R_k) - log |R_k|], on the support that the priors leave.
    """
    low = support_low(definition, likelihood.log_prior_odds, prior, definition.parameter_names[0])

    def log_posterior(epsilon: Floats, cutoff: float) -> Floats:
        infinite = np.full_like(epsilon, np.inf)
        left = epsilon if definition.bounds_left else infinite
        right = epsilon if definition.bounds_right else infinite
        log_prior = prior(epsilon)
        with np.errstate(invalid="ignore"):  # a prior of 0 leaves 0 whatever the likelihood is
            return likelihood(left, right, strength, cutoff - log_prior) + log_prior

    high = upper_end(prior, low)
    return approximate_density(log_posterior, _just_above(low, high), high)


def exact_joint_density(
    likelihood: Likelihood, definition: Definition, prior: LogDensity, strength: float = 0.0
) -> JointDensity:
    """The posterior density of (ε_L, ε_R), with independent priors."""
    low_left, low_right = (
        support_low(definition, likelihood.log_prior_odds, prior, name) for name in definition.parameter_names
    )

    def log_posterior(left: Floats, right: Floats) -> Floats:
        return likelihood.on_grid(left, right, strength) + prior(left)[:, None] + prior(right)[None, :]

    high = upper_end(prior, max(low_left, low_right))
    lows = _just_above(low_left, high), _just_above(low_right, high)
    return approximate_joint_density(log_posterior, lows, (high, high))


def exact_strength_density(
    likelihood: Likelihood, definition: Definition, prior: LogDensity, strength_prior: StrengthPrior
) -> JointDensity:
    """The posterior density of (ε, s) of a definition with one ε, the attack strength s being unknown.

    Raises:
        InputError: if the definition has two ε, or a prior is 0 or 1: the ring needs finite prior odds.
    """
    if definition.is_joint:
        raise InputError("strength can be estimated for one-parameter definitions only, got definition='bmp'")
    low = support_low(definition, likelihood.log_prior_odds, prior, definition.parameter_names[0])

    best = [-np.inf]

    def log_posterior(epsilon: Floats, strength: Floats) -> Floats:
        infinite = np.full_like(epsilon, np.inf)
        left = epsilon if definition.bounds_left else infinite
        right = epsilon if definition.bounds_right else infinite
        log_prior = prior(epsilon)[:, None] + strength_prior.log_density(strength)[None, :]
        values = np.empty(log_prior.shape)
        for column, s in enumerate(strength):
            # Rings take long to integrate: what is negligible against the best seen so far is not.
            cutoff = best[0] - DEEPEST - log_prior[:, column]
            values[:, column] = likelihood(left, right, float(s), cutoff) + log_prior[:, column]
            best[0] = max(best[0], float(values[:, column].max()))
        return values

    high = upper_end(prior, low)
    return approximate_joint_density(log_posterior, (_just_above(low, high), 0.0), (high, STRONGEST))


def _just_above(low: float, high: float) -> float:
    return low + HAIR * (high - low)
