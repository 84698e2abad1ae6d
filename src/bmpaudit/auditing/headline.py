"""The answer in a few lines: the headline's numbers, the verdict in words, and what to beware of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.attack import PermutationTest
from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.auditing.estimate_step import SIDES, Estimates, headline_parameters
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.estimation import LowerBound, Posterior
from bmpaudit.estimation.definitions import StoredDefinition
from bmpaudit.estimation.definitions.curve import smallest_values
from bmpaudit.interfaces import Definition
from bmpaudit.registry import DEFINITION, ENTRIES
from bmpaudit.report.words import count, factor, number, odds, percent
from bmpaudit.samplers import Priors

IS_NOT = (
    "The interval is calibrated under the estimator's own model: ε from its prior, error rates uniform on the region "
    "that ε allows. It is not a confidence statement about a mechanism whose attack behaves otherwise.",
    "Beyond the data the likelihood is flat, so the upper tail of every posterior is the prior's.",
    "The estimate is about the attack that was run. A better attack may find more; only what is proven is certain.",
    "A decision about a node that never varies looks like a strong attack and is none. Such nodes are flagged, and "
    "nodes are ranked by the lower end of their interval.",
    "The errors behind the posterior come from Algorithm 1, whose challenges share models: they vary more than the "
    "binomial that the estimator assumes. What is proven comes from Algorithm 4, whose errors are binomial.",
)


@dataclass(frozen=True)
class HeadlineRow:
    """One ε of the headline.

    Attributes:
        name: Its symbol.
        meaning: In words.
        definition: The definition it is a parameter of.
        parameter: Which of the definition's parameters.
        multiplies_odds: Whether ε bounds by how much the odds change, as in MP, and not the odds themselves.
        p5: 5th percentile of the posterior.
        p50: Median of the posterior.
        p95: 95th percentile of the posterior.
        floor: What the sampler alone gives away, at least (Prop. 1).
        floor_is_exact: Whether the floor comes from a formula.
        floor_level: Confidence of the floor otherwise.
        proven: What the errors of Algorithm 4 prove; None if they prove nothing or there were too few models.
        proof_level: Confidence of what is proven.
        tail_prior_share: How much of the upper tail is the prior's.
    """

    name: str
    meaning: str
    definition: str
    parameter: str
    multiplies_odds: bool
    p5: float
    p50: float
    p95: float
    floor: float
    floor_is_exact: bool
    floor_level: float | None
    proven: float | None
    proof_level: float
    tail_prior_share: float


def headline(plan: AuditPlan, priors: Priors, attacks: Attacks, estimates: Estimates) -> tuple[HeadlineRow, ...]:
    """The ε of the main variant."""
    posteriors = estimates.posteriors[attacks.main]
    rows = []
    for name, parameter_name in headline_parameters(posteriors):
        posterior = posteriors[name]
        definition = posterior.definition
        parameter = next(each for each in definition.parameters if each.name == parameter_name)
        p5, p50, p95 = (float(value) for value in posterior.quantile([0.05, 0.5, 0.95], parameter_name))
        rows.append(
            HeadlineRow(
                name=parameter.symbol if parameter_name in SIDES else f"{_short_title(definition)} {parameter.symbol}",
                meaning=parameter.meaning,
                definition=name,
                parameter=parameter_name,
                multiplies_odds=not definition.uses_prior,
                p5=p5,
                p50=p50,
                p95=p95,
                floor=floor_of(posterior, parameter_name, priors),
                floor_is_exact=priors.floor.is_exact or not definition.uses_prior,
                floor_level=priors.floor.level if definition.uses_prior else None,
                proven=proven_of(estimates.bounds, attacks.main, posterior, parameter_name),
                proof_level=plan.proof_level,
                tail_prior_share=posterior.tail_prior_share(parameter_name),
            )
        )
    return tuple(rows)


def stored_headline(summary: Mapping[str, Any]) -> tuple[HeadlineRow, ...]:
    """The headline as a summary has it, which needs none of the code that made it."""
    numbers = ("p5", "p50", "p95", "floor", "proven", "tail_prior_share")  # infinite ones are texts there
    return tuple(
        HeadlineRow(**row | {name: None if row[name] is None else float(row[name]) for name in numbers})
        for row in summary["headline"]
    )


def proven_of(bounds: Mapping[str, LowerBound], variant: str, posterior: Posterior, parameter: str) -> float | None:
    """What the errors of Algorithm 4 prove about a parameter; None if nothing."""
    return bounds[variant].on(posterior.definition, parameter).bound if variant in bounds else None


def _short_title(definition: Definition) -> str:
    name = registry.name_of(DEFINITION, definition)
    return name.upper() if name in ENTRIES[DEFINITION] else name.rpartition(":")[2]


def floor_of(posterior: Posterior, parameter: str, priors: Priors) -> float:
    """What the sampler alone gives away of a parameter: the smallest value that its floor leaves possible."""
    definition, floor = posterior.definition, priors.floor
    if not definition.uses_prior or isinstance(definition, StoredDefinition):
        return posterior.lows[parameter]
    left, right = smallest_values(definition, np.array([floor.left]), np.array([floor.right]))
    if len(definition.parameters) > 1:
        return floor.left if parameter == definition.parameters[0].name else floor.right
    return float(max(left[0], right[0]))


def verdict(rows: tuple[HeadlineRow, ...], test: PermutationTest) -> str:
    """One or two sentences for the reader in a hurry."""
    row = rows[0]
    state = "was not in" if row.parameter == "epsilon_left" else "was in"
    interval = f"({row.name} = {number(row.p50, 1)}, 90 % interval {number(row.p5, 1)} to {number(row.p95, 1)})"
    if not row.multiplies_odds:
        is_more = row.proven is not None and row.proven > row.floor
        proven = f"at least {odds(row.proven or 0.0)} is proven" if is_more else "nothing beyond that is proven"
        message = (
            f"Estimated: seeing this model, an adversary's odds that a node {state} the training graph reach about "
            f"{odds(row.p50)} {interval}; the sampling alone gives {odds(row.floor)}; {proven}."
        )
    else:
        proven = "nothing is proven" if row.proven is None else f"at least {factor(row.proven)} is proven"
        message = (
            f"Estimated: seeing this model multiplies an adversary's odds that a node {state} the training graph by up "
            f"to about {factor(row.p50)} {interval}; {proven}."
        )
    if not test.is_leakage_found:
        message = (
            "No leakage found: the attack does no better than after shuffling memberships between models. " + message
        )
    return message


def cautions(attacks: Attacks, estimates: Estimates, rows: tuple[HeadlineRow, ...]) -> tuple[str, ...]:
    """What a reader must know before trusting the headline."""
    counts, messages = attacks.main_counts, []
    if not attacks.permutation_test.is_leakage_found:
        messages.append(
            "The permutation test found no leakage: the attack is as strong after shuffling memberships between "
            "models. A large ε then comes from few trials or from decisions that never vary."
        )
    if counts.not_auditable:
        fate = "counted as non-members" if counts.is_kept.any() else "left out"
        messages.append(
            f"{count(len(counts.not_auditable), 'node')} could not be audited and "
            f"{'is' if len(counts.not_auditable) == 1 else 'are'} {fate}, such as {counts.not_auditable[0]}."
        )
    num_constant = int(np.count_nonzero(counts.is_constant))
    if num_constant:
        messages.append(
            f"The decision about {count(num_constant, 'node')} is the same for every model: "
            "the attack says nothing there."
        )
    messages += [
        f"{definition}: {posterior.status}."
        for definition, posterior in estimates.posteriors[attacks.main].items()
        if posterior.status not in ("exact", "converged")
    ]
    dominated = [row for row in rows if row.tail_prior_share > 0.9]
    if dominated:
        names = ", ".join(row.name for row in dominated)
        share = percent(max(row.tail_prior_share for row in dominated))
        messages.append(
            f"{names}: up to {share} of the upper tail has the prior's shape: the data say how large ε is at least, "
            "not at most."
        )
    return tuple(messages)


def driving_nodes(estimates: Estimates, num_nodes: int = 5) -> dict[str, list[dict[str, Any]]]:
    """The nodes that move each ε of the headline most, as plain values."""
    return {
        f"{definition} {parameter}": [vars(node) for node in influence.drivers(num_nodes)]
        for (definition, parameter), influence in estimates.influences.items()
    }
