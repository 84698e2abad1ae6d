"""The answer in a few lines: the headline's numbers, the verdict in words, and what to beware of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmpaudit.attack import NullControl
from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.auditing.estimate_step import Estimates, headline_parameters
from bmpaudit.estimation import LowerBound, Posterior
from bmpaudit.plan import AuditPlan
from bmpaudit.privacy import EpsilonPair

LINES = {
    "epsilon_right": ("ε_R", "how sure an adversary can become that a node was in"),
    "epsilon_left": ("ε_L", "how sure an adversary can become that a node was not in"),
    "bmp-s": ("BMP ε", "both, with ε_L = ε_R"),
    "mp": ("MP ε", "how far the odds move, whatever the prior"),
}

IS_NOT = (
    "The interval is calibrated under the estimator's own model: ε from its prior, error rates uniform on the region "
    "that ε allows. It is not a confidence statement about a mechanism whose attack behaves otherwise.",
    "Beyond the data the likelihood is flat, so the upper tail of every posterior is the prior's.",
    "The estimate is about the attack that was run. A better attack may find more; the proven bound only says what is "
    "certain to leak.",
    "A decision about a node that never varies looks like a strong attack and is none. Such nodes are flagged, and "
    "nodes are ranked by the lower end of their interval.",
    "The errors behind the posterior come from Algorithm 1, whose challenges share models: they vary more than the "
    "binomial that the estimator assumes. The proven bound comes from Algorithm 4, whose errors are binomial.",
)

LARGEST_SHOWN_ODDS = 1e6


@dataclass(frozen=True)
class HeadlineRow:
    """One ε of the headline.

    Attributes:
        name: Its symbol.
        meaning: In words.
        definition: What was estimated.
        parameter: Which of its parameters.
        p5: Percentile of the posterior.
        p50: Percentile of the posterior.
        p95: Percentile of the posterior.
        floor: What the sampler alone gives away (Prop. 1).
        proven: What Algorithm 4's errors prove; None with too few models.
        proof_level: With this confidence.
        tail_prior_share: How much of the upper tail is the prior's.
    """

    name: str
    meaning: str
    definition: str
    parameter: str
    p5: float
    p50: float
    p95: float
    floor: float
    proven: float | None
    proof_level: float
    tail_prior_share: float


def headline(plan: AuditPlan, estimates: Estimates) -> tuple[HeadlineRow, ...]:
    """The lines that were estimated, of the main variant."""
    main = plan.main_variant.name
    posteriors, bound = estimates.posteriors[main], estimates.bounds.get(main)
    rows = []
    for definition, parameter in headline_parameters(posteriors):
        name, meaning = LINES[definition if parameter == "epsilon" else parameter]
        posterior = posteriors[definition]
        floor = _floor(posterior.floor, definition, parameter)
        p5, p50, p95 = (float(value) for value in posterior.quantile([0.05, 0.5, 0.95], parameter))
        rows.append(
            HeadlineRow(
                name=name,
                meaning=meaning,
                definition=definition,
                parameter=parameter,
                p5=p5,
                p50=p50,
                p95=p95,
                floor=floor,
                proven=None if bound is None else _proven(bound, posterior, parameter),
                proof_level=plan.proof_level,
                tail_prior_share=posterior.tail_prior_share(parameter),
            )
        )
    return tuple(rows)


def _floor(floor: EpsilonPair[float], definition: str, parameter: str) -> float:
    if definition == "mp":
        return 0.0
    return {"epsilon_right": floor.right, "epsilon_left": floor.left, "epsilon": max(floor.left, floor.right)}[
        parameter
    ]


def _proven(bound: LowerBound, posterior: Posterior, parameter: str) -> float | None:
    return bound.on(posterior.definition, parameter).bound


def odds_in_words(epsilon: float) -> str:
    """e^ε : 1, or 1 : e^-ε below even odds.

    >>> odds_in_words(math.log(120)), odds_in_words(math.log(1 / 3)), odds_in_words(40.0)
    ('120 : 1', '1 : 3', 'over 1,000,000 : 1')
    """
    odds = math.exp(min(abs(epsilon), 700.0))
    if odds > LARGEST_SHOWN_ODDS:
        return f"over {LARGEST_SHOWN_ODDS:,.0f} : 1" if epsilon > 0 else f"below 1 : {LARGEST_SHOWN_ODDS:,.0f}"
    shown = f"{odds:,.0f}" if odds >= 20 else f"{odds:.2g}"
    return f"{shown} : 1" if epsilon >= 0 else f"1 : {shown}"


def _factor(epsilon: float) -> str:
    """e^ε as odds_in_words has it."""
    return odds_in_words(epsilon).removesuffix(" : 1")


def verdict(rows: tuple[HeadlineRow, ...], control: NullControl) -> str:
    """One or two sentences for the reader in a hurry."""
    row = rows[0]
    sides = {"ε_L": "was not in"}
    what = f"a node {sides.get(row.name, 'was in')} the training graph"
    proven = "nothing was proven, for lack of models"
    if row.proven is not None:
        is_more = row.proven > row.floor
        proven = (
            f"the attack proves at least {odds_in_words(row.proven)}"
            if is_more
            else "the attack proves nothing beyond that"
        )
    told = (
        f"Estimated: seeing this model, an adversary's odds that {what} reach about {odds_in_words(row.p50)} "
        f"({row.name} = {row.p50:.1f}, 90 % interval {row.p5:.1f} to {row.p95:.1f}); "
        f"the sampling alone gives {odds_in_words(row.floor)}; {proven}."
    )
    if row.name == "MP ε":
        if row.proven is not None:
            proven = f"the attack proves {f'at least {_factor(row.proven)}' if row.proven > 0 else 'nothing'}"
        told = (
            f"Estimated: seeing this model multiplies an adversary's odds that {what} by up to about "
            f"{_factor(row.p50)} (MP ε = {row.p50:.1f}, 90 % interval {row.p5:.1f} to {row.p95:.1f}); {proven}."
        )
    if not control.leakage_found:
        told = f"No leakage found: the attack does no better than with memberships exchanged. {told}"
    return told


def cautions(plan: AuditPlan, attacks: Attacks, estimates: Estimates) -> tuple[str, ...]:
    """What a reader must know before trusting the headline."""
    main = plan.main_variant.name
    counts, told = attacks.counts[main], []
    if not attacks.null_control.leakage_found:
        told.append(
            "The null control found no leakage: exchanging memberships between models gives as strong an attack. "
            "A large ε then comes from few trials or from decisions that never vary."
        )
    if counts.not_auditable:
        fate = "kept as never a member" if counts.is_kept.any() else "left out"
        told.append(
            f"{len(counts.not_auditable):,} nodes could not be audited and are {fate}, "
            f"such as {counts.not_auditable[0]}."
        )
    num_constant = int(np.count_nonzero(counts.is_constant))
    if num_constant:
        told.append(
            f"The decision about {num_constant:,} nodes is the same for every model: the attack says nothing there."
        )
    told += [
        f"{definition}: {posterior.status}."
        for definition, posterior in estimates.posteriors[main].items()
        if posterior.status not in ("exact", "converged")
    ]
    told += [_tail_caution(row) for row in headline(plan, estimates) if row.tail_prior_share > 0.9]
    return tuple(told)


def _tail_caution(row: HeadlineRow) -> str:
    return (
        f"{row.name}: {row.tail_prior_share:.0%} of the upper tail is the prior's shape: the data say how large it is "
        "at least, not how large at most."
    )


def driving_nodes(
    estimates: Estimates, posterior: Posterior, parameter: str, num_nodes: int = 5
) -> list[dict[str, object]]:
    """The nodes that move a posterior of the main variant most, as plain values."""
    found = estimates.influences[posterior.name, parameter].drivers(num_nodes)
    return [{"node": each.node, "shift": each.shift, "is_constant": each.is_constant} for each in found]
