"""From errors to what they say about ε."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bmpaudit.auditing.attack_step import HALF, Attacks
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.posteriors import PosteriorJob, Task, run_posteriors
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import InputError
from bmpaudit.estimation import Influence, NodeLeakage, Posterior, node_leakage
from bmpaudit.estimation.steps import PARTS

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


def estimation_tasks(plan: AuditPlan, attacks: Attacks) -> list[Task]:
    """Every posterior of an audit; with half of the models, those of the main variant that have one parameter.

    Two parameters at once take ten times as long as one: only the main variant has them.
    """
    has_one = {name: len(part.parameters) == 1 for name, part in plan.definitions_by_name.items()}
    halves = [Task(HALF, name) for name in has_one if has_one[name] and attacks.half_counts is not None]
    return [
        Task(variant, definition)
        for variant in attacks.counts
        for definition in has_one
        if variant == attacks.main or has_one[definition]
    ] + halves


def run_estimates(plan: AuditPlan, attacks: Attacks, runtime: Runtime) -> Estimates:
    """Estimates every definition for every variant, and what stands beside it."""
    half = {} if attacks.half_counts is None else {HALF: attacks.half_counts}
    with runtime.progress("posteriors, ‰", PARTS) as progress:
        job = PosteriorJob(plan, {**attacks.counts, **half})
        made = run_posteriors(job, estimation_tasks(plan, attacks), runtime, progress)
    posteriors: dict[str, dict[str, Posterior]] = {name: {} for name in job.counts}
    reasons = []
    for task, posterior in made.items():
        if isinstance(posterior, str):  # what is proven and exposed does not depend on it
            whose = "half of the models" if task.variant == HALF else task.variant
            reasons.append(f"{task.definition} of {whose} could not be estimated: {posterior}")
        else:
            posteriors[task.variant][task.definition] = posterior
    of_half = posteriors.pop(HALF, {})
    main = posteriors[attacks.main]
    if not main:
        raise InputError(reasons[0])
    headline = headline_parameters(main)
    return Estimates(
        posteriors=posteriors,
        leakage=_leakage(plan, attacks, runtime),
        influences={
            (definition, parameter): main[definition].influence(parameter) for definition, parameter in headline
        },
        half_medians={
            (definition, parameter): float(of_half[definition].quantile(0.5, parameter))
            for definition, parameter in headline
            if definition in of_half
        },
        not_estimated=tuple(reasons),
    )


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
