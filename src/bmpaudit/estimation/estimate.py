"""From error counts to a posterior of ε."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.estimation.definition import definition_named
from bmpaudit.estimation.draws import DrawsMarginal
from bmpaudit.estimation.exact import exact_density, exact_joint_density
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.mhaar import MhaarRun, run_mhaar
from bmpaudit.estimation.posterior import Marginal, Posterior
from bmpaudit.estimation.prior import LogDensity, NormalPrior
from bmpaudit.privacy import prior_floor


def estimate(
    counts: ErrorCounts,
    definition: Literal["bmp", "bmp-r", "bmp-l", "bmp-s", "mp"] = "bmp-r",
    *,
    method: Literal["exact", "mhaar"] = "exact",
    prior: LogDensity | None = None,
    strength: float = 0.0,
    num_iterations: int | None = None,
    num_chains: int = 4,
    seed: int = 0,
) -> Posterior:
    """Estimates the parameters of a privacy definition from an attack's errors (Section IV of the paper).

    Args:
        counts: Errors of the attack, node by node.
        definition: `bmp-r`, `bmp-l`, `mp`, `bmp-s` (ε_L = ε_R) or `bmp` (both, jointly).
        method: `exact`: latent error rates integrated out by quadrature; `mhaar`: the paper's Algorithm 3.
        prior: Log-density of each parameter; N(0, 10), variance 10, if not given. `mhaar` takes normal ones only.
        strength: Attack strength s in [0, 1): error rates are uniform on R minus R_{η^s}(sε_L, sε_R).
        num_iterations: Of a chain of `mhaar`, half of them burn-in; the paper's 10,000 (`bmp`: 50,000) if not given.
        num_chains: Chains of `mhaar`.
        seed: Of the chains.

    Raises:
        InputError: if no node is left, or a setting is out of bounds.

    >>> counts = ErrorCounts.from_arrays(num_out=[100], num_in=[100], false_positives=[20], false_negatives=[30],
    ...                                  prior_prob=0.5)
    >>> print(estimate(counts, "mp"))
    mp, exact, 1 nodes
      epsilon           1.253    2.664    6.436   (5 %, 50 %, 95 %)
    """
    chosen = definition_named(definition)
    log_prior = NormalPrior() if prior is None else prior
    with np.errstate(divide="ignore"):
        log_odds = np.log(counts.prior_odds)
    is_empty = chosen.empties_support(log_odds)
    if is_empty.all():
        raise InputError(f"{definition} has no finite ε for these priors: every node's membership is certain")
    table = np.column_stack([counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives])
    likelihood = Likelihood(table[~is_empty].astype(np.float64), chosen.log_odds(log_odds[~is_empty]))
    marginals: dict[str, Marginal]
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
            num_chains=num_chains,
            strength=strength,
            seed=seed,
        )
        marginals = {name: DrawsMarginal(run.chains(name).ravel()) for name in chosen.parameter_names}
    elif method != "exact":
        raise InputError(f"method must be exact or mhaar, got method={method!r}")
    elif chosen.is_joint:
        if strength:
            raise InputError("an attack strength is for definitions with one parameter, got definition='bmp'")
        joint = exact_joint_density(likelihood, chosen, log_prior)
        marginals = dict(zip(chosen.parameter_names, (joint.first_marginal, joint.second_marginal), strict=True))
    else:
        marginals = {chosen.parameter_names[0]: exact_density(likelihood, chosen, log_prior, strength)}
    return Posterior(
        definition=chosen,
        method=method,
        marginals=marginals,
        counts=counts,
        left_out=tuple(counts.node[is_empty].tolist()),
        likelihood=likelihood,
        prior=log_prior,
        strength=strength,
        floor=prior_floor(counts.prior_odds[~is_empty]),
        status="exact" if run is None else run.status.message,
        run=run,
    )
