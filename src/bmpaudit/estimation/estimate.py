"""From error counts to a posterior of ε: exact, by quadrature only, or by MHAAR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from bmpaudit import registry
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import joint_density, mhaar
from bmpaudit.estimation.definitions import epsilons_of, parameter_names
from bmpaudit.estimation.density import PiecewiseDensity, approximate_density
from bmpaudit.estimation.joint_density import JointDensity
from bmpaudit.estimation.likelihood import (
    STRONGEST,
    Likelihood,
    LogDensity,
    NormalPrior,
    StrengthPrior,
    check_strength,
    likelihood_of,
    support_lows,
    upper_end,
    used_nodes,
)
from bmpaudit.estimation.lower_bound import check_prior_draws
from bmpaudit.estimation.posterior import DrawsMarginal, Marginal, Posterior
from bmpaudit.interfaces import Definition, Progress
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats

PARTS = 1_000  # what an exact posterior reports when it is done
FURTHEST_RING = 600.0  # where e^-ε comes near the smallest double
TYPICAL_POINTS, TYPICAL_PAIRS = 60, 3_000  # half of what a posterior of one, or of two parameters, is computed at


def estimate(
    counts: ErrorCounts,
    definition: str | Mapping[str, Any] | Definition = "bmp-r",
    *,
    method: Literal["exact", "mhaar"] = "exact",
    prior: LogDensity | None = None,
    strength: float | StrengthPrior = 0.0,
    correlated: mhaar.CorrelatedCounts | None = None,
    num_iterations: int | None = None,
    num_auxiliary: int = 50,
    num_chains: int = 4,
    seed: int = 0,
    prior_draws: int = 0,
    num_threads: int | None = None,
    progress: Progress = lambda _: None,
) -> Posterior:
    """Estimates the parameters of a privacy definition from an attack's errors (Section IV of the paper).

    Args:
        counts: Errors of the attack, node by node.
        definition: `bmp-r`, `bmp-l`, `mp`, `bmp-s` (ε_L = ε_R), `bmp` (both, jointly), `module:Name` of your own, or a
            definition object (docs/estimation.md).
        method: `exact`: latent error rates integrated out by quadrature; `mhaar`: the paper's Algorithm 3.
        prior: Log-density of each parameter; N(0, 10), variance 10, if None. `mhaar` accepts normal priors only.
        strength: Attack strength s in [0, 1): error rates are uniform on R minus R_{η^s}(sε_L, sε_R). Or its prior: s
            is then estimated together with ε, for definitions with one ε.
        correlated: Model of correlated counts instead of independent binomials (`mhaar`).
        num_iterations: Number of iterations of a chain (`mhaar`), half of them burn-in; the paper's 10,000, or 50,000
            with two ε, if None.
        num_auxiliary: Number of points per node, M of Algorithm 3 (`mhaar`).
        num_chains: Number of chains (`mhaar`).
        seed: Random seed of the chains (`mhaar`).
        prior_draws: Number of independent draws behind each `counts.prior_prob`, for what the errors prove; 0 if these
            are exact. The posterior itself takes them as known.
        num_threads: Number of threads; all processors if None.
        progress: Called with the number of iterations done so far, over all chains (`mhaar`), or with the number of
            thousandths done (`exact`).

    Raises:
        InputError: if no node is left, or a setting is out of bounds.

    >>> counts = ErrorCounts.from_arrays(num_out=[100], num_in=[100], false_positives=[20], false_negatives=[30],
    ...                                  prior_prob=0.5)
    >>> print(estimate(counts, "mp"))
    mp, exact, 1 node
                          5 %     50 %     95 %
      epsilon           1.253    2.664    6.436
    """
    chosen = registry.build(registry.DEFINITION, definition)
    if isinstance(chosen, type) or not isinstance(chosen, Definition):
        raise InputError(
            "definition must be a name, module:Name or an object with parameters, uses_prior, epsilons and "
            f"empties_support, got {definition!r}"
        )
    if method not in ("exact", "mhaar"):
        raise InputError(f"method must be exact or mhaar, got method={method!r}")
    check_prior_draws(counts, prior_draws)
    check_strength(strength, chosen)
    log_prior = NormalPrior() if prior is None else prior
    is_used = used_nodes(counts, chosen)
    likelihood = likelihood_of(counts, chosen, is_used, num_threads=num_threads)
    lows = support_lows(chosen, likelihood.log_prior_odds, log_prior)
    marginals: Mapping[str, Marginal]
    joint, run = None, None
    if method == "mhaar":
        if not isinstance(log_prior, NormalPrior):
            raise InputError("method mhaar takes a NormalPrior; method exact takes any log-density")
        if num_iterations is None:
            num_iterations = mhaar.DEFAULT_ITERATIONS if len(lows) == 1 else mhaar.DEFAULT_JOINT_ITERATIONS
        tau_variance = None if correlated is None else correlated.tau_variance
        settings = mhaar.MhaarSettings(
            num_iterations, num_iterations // 2, num_auxiliary, num_chains, seed, tau_variance
        )
        run = mhaar.run_mhaar(likelihood, chosen, log_prior, strength, settings, progress)
        marginals = {name: DrawsMarginal(run.chains(name).ravel()) for name in run.parameter_names}
    elif correlated is not None:
        raise InputError("correlated counts are for method mhaar, got method='exact'")
    else:
        density = _exact(likelihood, chosen, log_prior, [*lows.values()], strength, progress)
        if isinstance(density, JointDensity):
            joint = density
            names = mhaar.estimated_names(chosen, strength)
            marginals = dict(zip(names, (joint.first_marginal, joint.second_marginal), strict=True))
        else:
            marginals = dict.fromkeys(lows, density)
        progress(PARTS)
    posterior = Posterior(
        definition=chosen,
        marginals=marginals,
        counts=counts,
        is_used=is_used,
        likelihood=likelihood,
        prior=log_prior,
        strength=strength,
        lows=lows,
        status="exact" if run is None else run.status,
        prior_draws=prior_draws,
        joint=joint,
        run=run,
    )
    doubt = _doubt(posterior)
    return posterior if doubt is None else replace(posterior, status=f"{posterior.status}; {doubt}")


def _exact(
    likelihood: Likelihood,
    definition: Definition,
    prior: LogDensity,
    lows: Sequence[float],
    strength: float | StrengthPrior,
    progress: Progress,
) -> PiecewiseDensity | JointDensity:
    """The density of ε; of (ε_L, ε_R), with independent priors; or of (ε, s), with a prior of the strength s."""
    high = upper_end(prior, max(lows))  # beyond which the posterior of every ε is negligible
    if strength != 0 and high > FURTHEST_RING:
        raise InputError(
            f"with an attack strength the prior must be negligible beyond ε = {FURTHEST_RING:g}, got one that "
            f"reaches ε = {high:.4g}: choose a smaller variance or mean"
        )
    low = lows[0] + joint_density.HAIR * (high - lows[0])
    is_single = len(lows) == 1 and not isinstance(strength, StrengthPrior)
    steps = Steps(progress, len(likelihood.rows), TYPICAL_POINTS if is_single else TYPICAL_PAIRS)
    if isinstance(strength, StrengthPrior):
        strength_prior, best = strength, -np.inf

        def with_strength(epsilon: Floats, strengths: Floats) -> Floats:
            nonlocal best
            ends = epsilons_of(definition, epsilon)
            log_prior = prior(epsilon)[:, None] + strength_prior.log_density(strengths)
            values = np.empty(log_prior.shape)
            for column, s in enumerate(strengths.tolist()):
                # Rings take long to integrate: skip those that are negligible beside the best value so far.
                cutoff, step = best - joint_density.DEEPEST - log_prior[:, column], steps.step(len(epsilon))
                values[:, column] = likelihood(*ends, s, cutoff, progress=step) + log_prior[:, column]
                best = max(best, float(values[:, column].max()))
            return values

        return joint_density.approximate_joint_density(with_strength, (low, 0.0), (high, STRONGEST))
    if is_single:

        def along(epsilon: Floats, cutoff: float) -> Floats:
            log_prior = prior(epsilon)
            # A prior of 0 leaves 0, whatever the likelihood is.
            lowest = np.where(log_prior == -np.inf, np.inf, cutoff - np.maximum(log_prior, np.finfo(np.float64).min))
            ends = epsilons_of(definition, epsilon)
            return likelihood(*ends, strength, lowest, progress=steps.step(len(epsilon))) + log_prior

        return approximate_density(along, low, high)

    def on_grid(left: Floats, right: Floats) -> Floats:
        values = likelihood.on_grid(left, right, strength, progress=steps.step(len(left) * len(right)))
        return values + prior(left)[:, None] + prior(right)

    def at_points(left: Floats, right: Floats) -> Floats:
        values = likelihood(left, right, strength, progress=steps.step(left.size))
        return values + prior(left) + prior(right)

    return joint_density.joint_density_above_floor(on_grid, at_points, (lows[0], lows[1]), (high, high))


class Steps:
    """Progress through a search of which nobody knows beforehand how long it takes, in thousandths.

    Each step goes through all rows, and takes a share of what is left, so that progress never goes back and never
    stands still: half of it for a step of `typical_points`.
    """

    def __init__(self, progress: Progress, num_rows: int, typical_points: int) -> None:
        self._progress, self._num_rows, self._typical_points = progress, num_rows, typical_points
        self._reached, self._begun = 0.0, 0.0

    def step(self, num_points: int) -> Progress:
        """Begins the next step, which is told how many of the rows it has been through."""
        start = self._begun
        self._begun = end = 1 - (1 - start) * 2.0 ** -(num_points / self._typical_points)

        def update(done: int) -> None:
            self._reached = max(self._reached, start + (end - start) * min(1.0, done / self._num_rows))
            self._progress(int(PARTS * self._reached))

        return update


def _doubt(posterior: Posterior) -> str | None:
    """Whether the posterior rests on nodes whose decision never varies, about which the attack knows nothing."""
    is_constant = posterior.is_constant
    if is_constant.all() and (posterior.likelihood.counts[:, :2] > 0).any():
        return "the attack is uninformative: its decision about every node is the same for every model"
    if not is_constant.any():
        return None
    for name in parameter_names(posterior.definition):
        without = posterior.mean_without_constant(name)
        if without < float(posterior.quantile(0.05, name)):
            return (
                f"{name} is driven by {np.count_nonzero(is_constant):,} nodes whose decision never varies: without "
                f"them its mean would be {without:.2f}, not {posterior.mean(name):.2f}"
            )
    return None
