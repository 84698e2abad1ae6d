"""From errors to what they say about ε."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.attack import ErrorCounts
from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import InputError, UntrustedCodeError
from bmpaudit.estimation import Influence, NodeLeakage, Posterior, estimate, node_leakage
from bmpaudit.estimation.steps import PARTS
from bmpaudit.interfaces import Progress

JOINT_COST = 10.0  # of a posterior of two parameters, against one
SIDES = ("epsilon_right", "epsilon_left")


@dataclass(frozen=True, eq=False)
class Estimates:
    """What the errors say.

    Attributes:
        posteriors: By the variant's name, then by definition.
        leakage: Leakage of every node under the main variant.
        influences: By definition and parameter, for the headline's: which nodes drive the posterior. Empty if the audit
            was read from a folder: the summary has the strongest.
        half_medians: By definition and parameter, for the headline's: the median with half of the models, which tells
            whether the estimate moves with their number. Only of definitions with one parameter, and empty if half are
            too few to attack.
        not_estimated: Why, for each posterior that could not be computed, in words.
    """

    posteriors: Mapping[str, Mapping[str, Posterior]]
    leakage: NodeLeakage
    influences: Mapping[tuple[str, str], Influence]
    half_medians: Mapping[tuple[str, str], float]
    not_estimated: tuple[str, ...] = ()


def headline_parameters(posteriors: Mapping[str, Posterior]) -> list[tuple[str, str]]:
    """Definition and parameter of each ε of the headline, ε_R first and then ε_L.

    A parameter that several definitions share, such as ε_R of `bmp` and of `bmp-r`, is shown once: from a definition
    with one parameter if there is one, as in the paper's tables.
    """
    places: dict[str, tuple[str, str]] = {}
    for name, posterior in sorted(posteriors.items(), key=lambda item: len(item[1].definition.parameters)):
        for parameter in posterior.definition.parameters:
            places.setdefault(parameter.name if parameter.name in SIDES else name, (name, parameter.name))
    return sorted(places.values(), key=lambda place: SIDES.index(place[1]) if place[1] in SIDES else len(SIDES))


def estimation_tasks(plan: AuditPlan, attacks: Attacks) -> list[tuple[str, str]]:
    """Variant and definition of every posterior.

    Two parameters at once take ten times as long as one: only the main variant has them.
    """
    return [
        (variant, definition)
        for variant in attacks.counts
        for definition, part in plan.definitions_by_name.items()
        if variant == attacks.main or len(part.parameters) == 1
    ]


def run_estimates(plan: AuditPlan, attacks: Attacks, runtime: Runtime) -> Estimates:
    """Estimates every definition for every variant, and what stands beside it."""
    tasks = estimation_tasks(plan, attacks)
    posteriors: dict[str, dict[str, Posterior]] = {name: {} for name in attacks.counts}
    reasons = []
    with runtime.progress("posteriors, ‰", PARTS) as progress:
        for (variant, definition), part in zip(tasks, _parts(plan, tasks, progress), strict=True):
            try:
                posteriors[variant][definition] = estimate_one(
                    plan, attacks.counts[variant], plan.definitions_by_name[definition], runtime, part
                )
            except UntrustedCodeError:
                raise
            except InputError as reason:  # what is proven and exposed does not depend on it
                reasons.append(f"{definition} of {variant} could not be estimated: {reason}")
            part(PARTS)
    main = posteriors[attacks.main]
    if not main:
        raise InputError(reasons[0])
    influences = {
        (definition, parameter): main[definition].influence(parameter)
        for definition, parameter in headline_parameters(main)
    }
    return Estimates(
        posteriors=posteriors,
        leakage=_leakage(plan, attacks, runtime),
        influences=influences,
        half_medians=_half_medians(plan, attacks, main, runtime),
        not_estimated=tuple(reasons),
    )


def _parts(plan: AuditPlan, tasks: list[tuple[str, str]], progress: Progress) -> list[Progress]:
    """The progress of each task as a part of all, by how long they take."""
    costs = [JOINT_COST ** (len(plan.definitions_by_name[name].parameters) - 1) for _, name in tasks]
    ends = np.cumsum(costs) / sum(costs)
    return [
        partial(lambda done, start, share: progress(int(PARTS * start + share * done)), start=end - share, share=share)
        for end, share in zip(ends.tolist(), (cost / sum(costs) for cost in costs), strict=True)
    ]


def estimate_one(
    plan: AuditPlan, counts: ErrorCounts, definition: Any, runtime: Runtime, progress: Progress = lambda _: None
) -> Posterior:
    """The posterior of one definition from the errors of one variant."""
    return estimate(
        counts,
        definition,
        prior=plan.epsilon_prior,
        strength=plan.strength,
        num_threads=runtime.num_threads,
        progress=progress,
    )


def _half_medians(
    plan: AuditPlan, attacks: Attacks, main: Mapping[str, Posterior], runtime: Runtime
) -> dict[tuple[str, str], float]:
    if attacks.half_counts is None:
        return {}
    medians = {}
    for definition, parameter in headline_parameters(main):
        if len(main[definition].definition.parameters) > 1:
            continue  # takes too long for a warning
        posterior = estimate_one(plan, attacks.half_counts, plan.definitions_by_name[definition], runtime)
        medians[definition, parameter] = float(posterior.quantile(0.5, parameter))
    return medians


def _leakage(plan: AuditPlan, attacks: Attacks, runtime: Runtime) -> NodeLeakage:
    return node_leakage(attacks.main_counts, plan.level, num_threads=runtime.num_threads)


def posterior_files(estimates: Estimates) -> dict[str, Callable[[Path], None]]:
    """What writes the file of each posterior."""
    return {
        posterior_name(variant, definition): partial(_save, posterior)
        for variant, row in estimates.posteriors.items()
        for definition, posterior in row.items()
    }


def posterior_name(variant: str, definition: str) -> str:
    """The path of a posterior in the folder."""
    return f"posteriors/{variant}_{definition}.npz"


def _save(posterior: Posterior, path: Path) -> None:
    posterior.save(path)


def read_estimates(
    workspace: Workspace, plan: AuditPlan, attacks: Attacks, summary: Mapping[str, Any], runtime: Runtime
) -> Estimates:
    """Reads what the step left; the workspace has checked that it is whole."""
    posteriors = {
        variant: {
            definition: workspace.read(posterior_name(variant, definition), Posterior.load)
            for definition in row["posteriors"]
        }
        for variant, row in summary["variants"].items()
    }
    half_medians = {
        (row["definition"], row["parameter"]): row["half_median"]
        for row in summary["headline"]
        if row["half_median"] is not None
    }
    return Estimates(posteriors, _leakage(plan, attacks, runtime), {}, half_medians)
