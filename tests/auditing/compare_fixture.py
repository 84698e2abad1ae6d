"""Finished audits made from small counts, as objects and as folders, with as little in them as a comparison reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bmpaudit import Audit, AuditPlan, ErrorCounts, Posterior, Workspace, estimate
from bmpaudit.attack import AttackPerformance, PermutationTest, RocCurve
from bmpaudit.auditing.attack_step import Attacks, attack_files
from bmpaudit.auditing.estimate_step import Estimates
from bmpaudit.auditing.plan_file import format_plan, plan_table
from bmpaudit.auditing.stamps import plan_hash
from bmpaudit.auditing.stored import audit_files, priors_files
from bmpaudit.auditing.variant import Variant
from bmpaudit.auditing.workspace import Stamp
from bmpaudit.estimation import lower_bound, node_leakage
from bmpaudit.samplers import Priors, Snowball, Uniform

VARIANT = Variant("clean", ("full",), "strong")
UNIFORM = AuditPlan(sampler=Uniform(0.25), queries="full", releases="clean", rules="strong")
SNOWBALL = UNIFORM.replace(sampler=Snowball(0.25))
ROC = RocCurve(np.array([0.0, 1.0]), np.array([0.0, 1.0]))


def counts_of(false_positives: npt.ArrayLike, false_negatives: npt.ArrayLike, **other: Any) -> ErrorCounts:
    """Errors on a few nodes, 300 models without and 100 with each."""
    settings: dict[str, Any] = {"num_out": 300, "num_in": 100, "prior_prob": 0.25, **other}
    return ErrorCounts.from_arrays(
        false_positives=np.asarray(false_positives), false_negatives=np.asarray(false_negatives), **settings
    )


def weak() -> ErrorCounts:
    return counts_of([100, 90, 110], [60, 65, 55])


def strong() -> ErrorCounts:
    return counts_of([1, 90, 300], [5, 65, 0])


def posterior_of(counts: ErrorCounts, definition: Any = "bmp-r") -> Posterior:
    return estimate(counts, definition)


def made_audit(
    counts: ErrorCounts,
    *,
    plan: AuditPlan = UNIFORM,
    definitions: tuple[str, ...] = ("bmp-r",),
    graph_hash: str = "abc",
    names: list[str] | None = None,
    source: str = "tiny",
    is_leakage_found: bool = True,
) -> Audit:
    """An audit with these errors, of a graph that is known by its hash alone."""
    plan = plan.replace(definitions=definitions)
    name = VARIANT.name
    test = PermutationTest(1.0 if is_leakage_found else 0.0, np.array([0.5]), counts, (counts,), "strong")
    performance = AttackPerformance(300, 100, 0.5, 0.5, {0.01: 0.01}, ROC)
    attacks = Attacks((VARIANT,), {name: counts}, {name: counts}, {name: performance}, test)
    posteriors = {name: {definition: posterior_of(counts, definition) for definition in definitions}}
    bounds = {name: lower_bound(counts, plan.proof_level)}
    estimates = Estimates(
        posteriors, node_leakage(counts, plan.level), bounds, {}, definitions[0], 1.0, np.array([1.0])
    )
    audit = Audit(
        plan=plan,
        source=source,
        priors=Priors.from_formula(plan.sampler, counts.prior_prob),
        attacks=attacks,
        estimates=estimates,
        graph=_unknown,
        runs=_unknown,
        nodes=pd.DataFrame(
            {
                "node": counts.node,
                "name": names or [str(node) for node in counts.node],
                "class": ["a"] * counts.num_nodes,
            }
        ),
    )
    rows = {
        definition: {
            "floors": {each: lower.on(posterior.definition, each).floor for each in posterior.parameter_names},
            "proven": {each: lower.on(posterior.definition, each).bound for each in posterior.parameter_names},
        }
        for lower in bounds.values()
        for definition, posterior in posteriors[name].items()
    }
    audit.summary = {
        "format": 2,
        "fingerprint": f"{graph_hash} {plan_hash(plan)} {counts.false_positives.tolist()}",
        "headline": [],
        "graph": {"content_hash": graph_hash},
        "plan": plan_table(plan, source),
        "variants": {name: {"posteriors": rows}},
        "permutation_test": {"definition": definitions[0], "control_median": 1.0, "null_medians": [1.0]},
        "timings": {},
    }
    return audit


def _unknown() -> Any:
    raise AssertionError("a comparison needs neither the graph nor the models")


def write_folder(path: Path, counts: ErrorCounts, **options: Any) -> Path:
    """Such an audit on disk."""
    audit, workspace = made_audit(counts, **options), Workspace(path)
    graph_hash = audit.summary["graph"]["content_hash"]
    whole, without_estimation = plan_hash(audit.plan), plan_hash(audit.plan, without_section="estimation")
    with workspace.locked():
        workspace.write_plan(format_plan(audit.plan, audit.source))
        workspace.publish("priors", Stamp("", graph_hash), priors_files(audit.priors))
        workspace.publish("attack", Stamp(without_estimation, graph_hash, "m"), attack_files(audit.attacks))
        workspace.publish("estimate", Stamp(whole, graph_hash, "m"), audit_files(audit))
    return path
