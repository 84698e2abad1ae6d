"""From error counts to a posterior of ε."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.estimation.definition import Definition, definition_named
from bmpaudit.estimation.draws import DrawsMarginal
from bmpaudit.estimation.exact import exact_density, exact_joint_density, exact_strength_density
from bmpaudit.estimation.influence import mean_without_constant
from bmpaudit.estimation.joint_density import JointDensity
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.mhaar import CorrelatedCounts, MhaarRun, run_mhaar
from bmpaudit.estimation.posterior import Marginal, Posterior
from bmpaudit.estimation.prior import LogDensity, NormalPrior, StrengthPrior
from bmpaudit.estimation.support import likelihood_of, used_nodes
from bmpaudit.privacy import prior_floor


def estimate(
    counts: ErrorCounts,
    definition: Literal["bmp", "bmp-r", "bmp-l", "bmp-s", "mp"] = "bmp-r",
    *,
    method: Literal["exact", "mhaar"] = "exact",
    prior: LogDensity | None = None,
    strength: float | StrengthPrior = 0.0,
    correlated: CorrelatedCounts | None = None,
    num_iterations: int | None = None,
    num_auxiliary: int = 50,
    num_chains: int = 4,
    seed: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> Posterior:
    """Estimates the parameters of a privacy definition from an attack's errors (Section IV of the paper).

    Args:
        counts: Errors of the attack, node by node.
        definition: `bmp-r`, `bmp-l`, `mp`, `bmp-s` (ε_L = ε_R) or `bmp` (both, jointly).
        method: `exact`: latent error rates integrated out by quadrature; `mhaar`: the paper's Algorithm 3.
        prior: Log-density of each parameter; N(0, 10), variance 10, if not given. `mhaar` takes normal ones only.
        strength: Attack strength s in [0, 1): error rates are uniform on R minus R_{η^s}(sε_L, sε_R). Or its prior: s
            is then estimated beside ε, for definitions with one ε.
        correlated: `mhaar`: correlated counts in place of independent binomials.
        num_iterations: Of a chain of `mhaar`, half of them burn-in; the paper's 10,000 (`bmp`: 50,000) if not given.
        num_auxiliary: `mhaar`: points a node, M of Algorithm 3.
        num_chains: Chains of `mhaar`.
        seed: Of the chains.
        progress: `mhaar`: is told how many iterations are done, over all chains.

    Raises:
        InputError: if no node is left, or a setting is out of bounds.

    >>> counts = ErrorCounts.from_arrays(num_out=[100], num_in=[100], false_positives=[20], false_negatives=[30],
    ...                                  prior_prob=0.5)
    >>> print(estimate(counts, "mp"))
    mp, exact, 1 nodes
                          5 %     50 %     95 %   proven*
      epsilon           1.253    2.664    6.436  ≥  0.653
      * with 95 % confidence, if these are counts of Algorithm 4
    """
    chosen = definition_named(definition)
    log_prior = NormalPrior() if prior is None else prior
    is_used, likelihood = used_nodes(counts, chosen), likelihood_of(counts, chosen)
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
            progress=progress,
        )
        marginals = {name: DrawsMarginal(run.chains(name).ravel()) for name in run.parameter_names}
    elif method != "exact":
        raise InputError(f"method must be exact or mhaar, got method={method!r}")
    elif correlated is not None:
        raise InputError("correlated counts are for method mhaar, got method='exact'")
    else:
        marginals, joint = _exact(likelihood, chosen, log_prior, strength)
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
        status="exact" if run is None else run.status.message,
        joint=joint,
        run=run,
    )
    doubt = _doubt(posterior)
    return posterior if doubt is None else replace(posterior, status=f"{posterior.status}; {doubt}")


def _exact(
    likelihood: Likelihood, definition: Definition, prior: LogDensity, strength: float | StrengthPrior
) -> tuple[Mapping[str, Marginal], JointDensity | None]:
    """The marginals, and the joint density if there are two parameters."""
    names = definition.parameter_names
    if isinstance(strength, StrengthPrior):
        joint = exact_strength_density(likelihood, definition, prior, strength)
        names = (*names, "strength")
    elif definition.is_joint:
        joint = exact_joint_density(likelihood, definition, prior, strength)
    else:
        return {names[0]: exact_density(likelihood, definition, prior, strength)}, None
    return dict(zip(names, (joint.first_marginal, joint.second_marginal), strict=True)), joint


def _doubt(posterior: Posterior) -> str | None:
    """Whether the posterior rests on nodes whose decision never varies, about which the attack knows nothing."""
    is_constant = posterior.is_constant
    if is_constant.all() and (posterior.likelihood.counts[:, :2] > 0).any():
        return "the attack is uninformative: its decision about every node is the same for every model"
    if not is_constant.any():
        return None
    for name in posterior.definition.parameter_names:
        without = mean_without_constant(posterior, name)
        if without < float(posterior.quantile(0.05, name)):
            return (
                f"{name} is driven by {np.count_nonzero(is_constant):,} nodes whose decision never varies: without "
                f"them its mean would be {without:.2f} and not {posterior.mean(name):.2f}"
            )
    return None
