"""From errors to what they say about ε."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.arrays import Floats
from bmpaudit.attack import ErrorCounts
from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.estimation import Influence, LowerBound, NodeLeakage, Posterior, estimate, lower_bound, node_leakage
from bmpaudit.samplers import Priors

# The default choice of what stands beside the permutation test, where it was estimated.
PREFERRED_CONTROL = "bmp-r"
SIDES = ("epsilon_right", "epsilon_left")


@dataclass(frozen=True, eq=False)
class Estimates:
    """What the errors say.

    Attributes:
        posteriors: By the variant's name, then by definition.
        leakage: Leakage of every node under the main variant.
        bounds: What each variant proves, by its name; empty with too few models.
        influences: By definition and parameter, for the headline's: which nodes drive the posterior. Empty if the audit
            was read from a folder: the summary has the strongest.
        control_definition: Definition whose median is computed for the permutation test too.
        control_median: Its median from the weak decisions that the permutation test compares.
        null_medians: Its median after each shuffle of memberships, shape (R,).
    """

    posteriors: Mapping[str, Mapping[str, Posterior]]
    leakage: NodeLeakage
    bounds: Mapping[str, LowerBound]
    influences: Mapping[tuple[str, str], Influence]
    control_definition: str
    control_median: float
    null_medians: Floats


def headline_parameters(posteriors: Mapping[str, Posterior]) -> list[tuple[str, str]]:
    """Definition and parameter of each ε of the headline, ε_R first and then ε_L.

    A parameter that several definitions share, such as ε_R of `bmp` and of `bmp-r`, is shown once, from the first.
    """
    places: dict[str, tuple[str, str]] = {}
    for name, posterior in posteriors.items():
        for parameter in posterior.definition.parameters:
            places.setdefault(parameter.name if parameter.name in SIDES else name, (name, parameter.name))
    return sorted(places.values(), key=lambda place: SIDES.index(place[1]) if place[1] in SIDES else len(SIDES))


def control_definition(plan: AuditPlan) -> str:
    """The definition whose median stands beside those of the permutation test: the first with one parameter."""
    names = [name for name, definition in plan.definitions_by_name.items() if len(definition.parameters) == 1]
    return names[0] if names else PREFERRED_CONTROL


def estimation_tasks(plan: AuditPlan, names: Iterable[str]) -> list[tuple[str, str]]:
    """Variant and definition of every posterior.

    Two parameters at once take ten times as long as one: only the main variant, the first, has them.
    """
    return [
        (variant, definition)
        for number, variant in enumerate(names)
        for definition, part in plan.definitions_by_name.items()
        if number == 0 or len(part.parameters) == 1
    ]


def run_estimates(plan: AuditPlan, attacks: Attacks, priors: Priors, runtime: Runtime) -> Estimates:
    """Estimates every definition for every variant, and what stands beside it."""
    tasks, test = estimation_tasks(plan, attacks.counts), attacks.permutation_test
    control = control_definition(plan)
    posteriors: dict[str, dict[str, Posterior]] = {name: {} for name in attacks.counts}
    with runtime.progress("posteriors", len(tasks) + len(test.null_counts) + 1) as progress:
        for done, (variant, definition) in enumerate(tasks):
            posteriors[variant][definition] = estimate_one(
                plan, attacks.counts[variant], plan.definitions_by_name[definition], runtime
            )
            progress(done + 1)
        medians = []
        for done, counts in enumerate((test.counts, *test.null_counts)):
            part = plan.definitions_by_name.get(control, control)
            medians.append(float(estimate_one(plan, counts, part, runtime).quantile(0.5)))
            progress(len(tasks) + done + 1)
    main = posteriors[attacks.main]
    influences = {
        (definition, parameter): main[definition].influence(parameter)
        for definition, parameter in headline_parameters(main)
    }
    return assemble(plan, attacks, priors, posteriors, influences, control, medians, runtime)


def estimate_one(plan: AuditPlan, counts: ErrorCounts, definition: Any, runtime: Runtime) -> Posterior:
    """The posterior of one definition from the errors of one variant."""
    return estimate(
        counts, definition, prior=plan.epsilon_prior, strength=plan.strength, num_threads=runtime.num_threads
    )


def assemble(
    plan: AuditPlan,
    attacks: Attacks,
    priors: Priors,
    posteriors: Mapping[str, Mapping[str, Posterior]],
    influences: Mapping[tuple[str, str], Influence],
    control: str,
    medians: list[float],
    runtime: Runtime,
) -> Estimates:
    """Posteriors with everything that follows from the errors at once; `medians` has the real one first."""
    draws = priors.num_draws if plan.prior_source == "exact" else _num_fitting(attacks)
    return Estimates(
        posteriors=posteriors,
        leakage=node_leakage(attacks.main_counts, plan.level, num_threads=runtime.num_threads),
        bounds={
            name: lower_bound(counts, plan.proof_level, prior_draws=draws)
            for name, counts in attacks.split_counts.items()
        },
        influences=influences,
        control_definition=control,
        control_median=medians[0],
        null_medians=np.array(medians[1:]),
    )


def _num_fitting(attacks: Attacks) -> int:
    """Models whose samples gave the priors of the split attack, where priors are frequencies."""
    counts, halves = attacks.main_counts, attacks.split_counts.get(attacks.main)
    return 0 if halves is None else int(counts.num_out[0] + counts.num_in[0] - halves.num_out[0] - halves.num_in[0])


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
    workspace: Workspace,
    plan: AuditPlan,
    attacks: Attacks,
    priors: Priors,
    summary: Mapping[str, Any],
    runtime: Runtime,
) -> Estimates:
    """Reads what the step left; the workspace has checked that it is whole."""
    posteriors = {
        variant: {
            definition: workspace.read(posterior_name(variant, definition), Posterior.load)
            for definition in row["posteriors"]
        }
        for variant, row in summary["variants"].items()
    }
    test = summary["permutation_test"]
    medians = [test["control_median"], *test["null_medians"]]
    return assemble(plan, attacks, priors, posteriors, {}, test["definition"], medians, runtime)
