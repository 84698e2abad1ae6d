"""The step from errors to what they say about ε."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit import registry
from bmpaudit.attack import ErrorCounts
from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.estimation import Influence, LowerBound, NodeLeakage, Posterior, estimate, lower_bound, node_leakage
from bmpaudit.plan import AuditPlan, Runtime


@dataclass(frozen=True, eq=False)
class Estimates:
    """What the errors say.

    Attributes:
        posteriors: By the variant's name, then by definition.
        leakage: Of every node, main variant.
        bounds: What each variant proves, by its name.
        influences: By definition and parameter, for the headline's: which nodes drive the posterior.
        control_median: Median of `control_definition` from the weak decisions that the null control compares.
        null_medians: The same after each exchange of memberships, shape (R,).
    """

    posteriors: Mapping[str, Mapping[str, Posterior]]
    leakage: NodeLeakage
    bounds: Mapping[str, LowerBound]
    influences: Mapping[tuple[str, str], Influence]
    control_median: float
    null_medians: npt.NDArray[np.float64]


# In which posterior the headline looks for each of its ε: the first of these that was estimated.
HEADLINE_PLACES = (
    (("bmp", "epsilon_right"), ("bmp-r", "epsilon_right")),
    (("bmp", "epsilon_left"), ("bmp-l", "epsilon_left")),
    (("bmp-s", "epsilon"),),
    (("mp", "epsilon"),),
)


def headline_parameters(definitions: Collection[str]) -> list[tuple[str, str]]:
    """Definition and parameter of each ε of the headline."""
    found = (next((place for place in places if place[0] in definitions), None) for places in HEADLINE_PLACES)
    return [place for place in found if place is not None]


def control_definition(plan: AuditPlan) -> str:
    """The definition whose median stands beside those of the null control: the first with one parameter."""
    return next(
        (name for name in plan.definitions if len(registry.build(registry.DEFINITION, name).parameters) == 1), "bmp-r"
    )


def estimation_tasks(plan: AuditPlan) -> list[tuple[str, str]]:
    """Variant and definition of every posterior.

    Two parameters at once take ten times as long as one: only the main variant has them.
    """
    return [
        (variant.name, definition)
        for variant in plan.variants
        for definition in plan.definitions
        if variant == plan.main_variant or len(registry.build(registry.DEFINITION, definition).parameters) == 1
    ]


def run_estimates(plan: AuditPlan, attacks: Attacks, runtime: Runtime) -> Estimates:
    """Estimates every definition for every variant, and what stands beside it."""
    tasks = estimation_tasks(plan)
    posteriors: dict[str, dict[str, Posterior]] = {variant.name: {} for variant in plan.variants}
    with runtime.progress("posteriors", len(tasks) + plan.null_permutations + 1) as progress:
        for done, (variant, definition) in enumerate(tasks):
            posteriors[variant][definition] = _estimate(plan, attacks.counts[variant], definition)
            progress(done + 1)
        medians = []
        control = attacks.null_control
        for done, counts in enumerate((control.counts, *control.null_counts)):
            medians.append(float(_estimate(plan, counts, control_definition(plan)).quantile(0.5)))
            progress(len(tasks) + done + 1)
    return assemble(plan, attacks, posteriors, medians)


def assemble(
    plan: AuditPlan,
    attacks: Attacks,
    posteriors: Mapping[str, Mapping[str, Posterior]],
    control_medians: Sequence[float],
) -> Estimates:
    """Posteriors with what stands beside them; `control_medians` are the real one and those of the null."""
    main = plan.main_variant.name
    return Estimates(
        posteriors=posteriors,
        leakage=node_leakage(attacks.counts[main], plan.level),
        bounds={name: lower_bound(counts, plan.proof_level) for name, counts in attacks.split_counts.items()},
        influences={
            (definition, parameter): posteriors[main][definition].influence(parameter)
            for definition, parameter in headline_parameters(plan.definitions)
        },
        control_median=control_medians[0],
        null_medians=np.array(control_medians[1:]),
    )


def _estimate(plan: AuditPlan, counts: ErrorCounts, definition: Any) -> Posterior:
    return estimate(counts, definition, prior=plan.epsilon_prior, strength=plan.strength)
