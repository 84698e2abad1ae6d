"""From error counts to a posterior of ε."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from bmpaudit import registry
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.estimation.definitions.curve import parameter_names
from bmpaudit.estimation.draws import DrawsMarginal
from bmpaudit.estimation.exact import exact_density, exact_joint_density, exact_strength_density
from bmpaudit.estimation.joint_density import JointDensity
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.lower_bound import check_prior_draws
from bmpaudit.estimation.marginal import Marginal
from bmpaudit.estimation.mhaar import CorrelatedCounts, MhaarRun, run_mhaar
from bmpaudit.estimation.posterior import Posterior
from bmpaudit.estimation.prior import LogDensity, NormalPrior, StrengthPrior
from bmpaudit.estimation.steps import PARTS
from bmpaudit.estimation.support import likelihood_of, support_lows, used_nodes
from bmpaudit.interfaces import Definition, Progress
from bmpaudit.privacy import prior_floor


def estimate(
    counts: ErrorCounts,
    definition: str | Mapping[str, Any] | Definition = "bmp-r",
    *,
    method: Literal["exact", "mhaar"] = "exact",
    prior: LogDensity | None = None,
    strength: float | StrengthPrior = 0.0,
    correlated: CorrelatedCounts | None = None,
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
                          5 %     50 %     95 %   proven*
      epsilon           1.253    2.664    6.436  ≥  0.653
      * with 95 % confidence, if these counts come from Algorithm 4
    """
    chosen = _definition(definition)
    check_prior_draws(counts, prior_draws)
    log_prior = NormalPrior() if prior is None else prior
    is_used = used_nodes(counts, chosen)
    likelihood = likelihood_of(counts, chosen, is_used, num_threads=num_threads)
    marginals: Mapping[str, Marginal]
    joint: JointDensity | None = None
    run: MhaarRun | None = None
    if method == "mhaar":
        if not isinstance(log_prior, NormalPrior):
            raise InputError("method mhaar takes a NormalPrior; method exact takes any log-density")
        run = run_mhaar(
            likelihood.counts,
            likelihood.log_prior_odds,
            chosen,
            log_prior,
            num_iterations=num_iterations,
            num_auxiliary=num_auxiliary,
            num_chains=num_chains,
            seed=seed,
            strength=strength,
            correlated=correlated,
            num_threads=num_threads,
            progress=progress,
        )
        marginals = {name: DrawsMarginal(run.chains(name).ravel()) for name in run.parameter_names}
    elif method != "exact":
        raise InputError(f"method must be exact or mhaar, got method={method!r}")
    elif correlated is not None:
        raise InputError("correlated counts are for method mhaar, got method='exact'")
    else:
        marginals, joint = _exact(likelihood, chosen, log_prior, strength, progress)
        progress(PARTS)
    posterior = Posterior(
        definition=chosen,
        method=method,
        marginals=marginals,
        counts=counts,
        is_used=is_used,
        likelihood=likelihood,
        prior=log_prior,
        strength=strength,
        floor=prior_floor(counts.prior_odds[is_used]),
        lows=support_lows(chosen, likelihood.log_prior_odds, log_prior),
        status="exact" if run is None else run.status.message,
        prior_draws=prior_draws,
        joint=joint,
        run=run,
    )
    doubt = _doubt(posterior)
    return posterior if doubt is None else posterior.with_status(f"{posterior.status}; {doubt}")


def _definition(given: Any) -> Definition:
    definition = registry.build(registry.DEFINITION, given)
    if isinstance(definition, type) or not isinstance(definition, Definition):
        raise InputError(
            "definition must be a name, module:Name or an object with parameters, uses_prior, epsilons and "
            f"empties_support, got {given!r}"
        )
    return definition


def _exact(
    likelihood: Likelihood,
    definition: Definition,
    prior: LogDensity,
    strength: float | StrengthPrior,
    progress: Progress,
) -> tuple[Mapping[str, Marginal], JointDensity | None]:
    """The marginals, and the joint density if there are two parameters."""
    names = parameter_names(definition)
    if isinstance(strength, StrengthPrior):
        joint = exact_strength_density(likelihood, definition, prior, strength, progress)
        names = (*names, "strength")
    elif len(names) == 2:
        joint = exact_joint_density(likelihood, definition, prior, strength, progress)
    else:
        return {names[0]: exact_density(likelihood, definition, prior, strength, progress)}, None
    return dict(zip(names, (joint.first_marginal, joint.second_marginal), strict=True)), joint


def _doubt(posterior: Posterior) -> str | None:
    """Whether the posterior rests on nodes whose decision never varies, about which the attack knows nothing."""
    is_constant = posterior.is_constant
    if is_constant.all() and (posterior.likelihood.counts[:, :2] > 0).any():
        return "the attack is uninformative: its decision about every node is the same for every model"
    if not is_constant.any():
        return None
    for name in posterior.parameter_names:
        without = posterior.mean_without_constant(name)
        if without < float(posterior.quantile(0.05, name)):
            return (
                f"{name} is driven by {np.count_nonzero(is_constant):,} nodes whose decision never varies: without "
                f"them its mean would be {without:.2f}, not {posterior.mean(name):.2f}"
            )
    return None
