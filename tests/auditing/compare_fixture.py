"""Finished audits made from small counts, as objects and as folders, with as little in them as a comparison reads."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from small_audit import leaky_graph, tiny_plan

from bmpaudit.attack import AttackPerformance, Evidence, PermutationTest, RocCurve, Student
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.auditing.answer import _exposure, _posterior, _test, known_mean, release_accuracy
from bmpaudit.auditing.context import Variant, attack_hash, plan_hash, proof_hash
from bmpaudit.auditing.finished import Audit, audit_files
from bmpaudit.auditing.nodes import NODE_COLUMNS
from bmpaudit.auditing.result import PriorsResult
from bmpaudit.auditing.stages import AccessFindings, Attacks, Estimates, Findings, attack_files, proof_files
from bmpaudit.auditing.workspace import Stamp, Workspace
from bmpaudit.estimation import node_leakage
from bmpaudit.estimation.estimate import estimate
from bmpaudit.estimation.posterior import Posterior
from bmpaudit.io.codec import normal
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan, format_plan, plan_table
from bmpaudit.proof import expose
from bmpaudit.samplers import Priors, Snowball, Uniform
from bmpaudit.shadow import ShadowRuns
from bmpaudit.shadow.runs import ViewAccuracy

RELEASES = ("clean", "noisy")
VARIANTS = tuple(Variant(release, ("full",), "strong") for release in RELEASES)
UNIFORM = AuditPlan(
    sampler=Uniform(0.25), queries="full", releases=RELEASES, release_as="scores", rules="strong", shadows=24
)
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


_posteriors: dict[tuple[Any, ...], Posterior] = {}


def posterior_of(counts: ErrorCounts, definition: str = "bmp-r") -> Posterior:
    arrays = (counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives, counts.prior_prob)
    key = (definition, *(tuple(array.tolist()) for array in arrays))
    if key not in _posteriors:
        _posteriors[key] = estimate(counts, definition)
    return _posteriors[key]


def made_runs(plan: AuditPlan, num_nodes: int, leakage: float, noise_seed: int) -> ShadowRuns:
    """Models whose samples follow from the plan's seed and sampler, model by model."""
    key = [plan.seed, *str(plan.sampler).encode()]
    memberships = np.stack([np.random.default_rng([*key, j]).random(num_nodes) < 0.5 for j in range(plan.shadows)])
    memberships[:2] = [[True] * num_nodes, [False] * num_nodes]
    rng = np.random.default_rng(noise_seed)
    views = {f"full_{release}": rng.normal(size=memberships.shape) + leakage * memberships for release in RELEASES}
    runs = ShadowRuns.from_arrays(memberships, views, np.zeros(num_nodes, dtype=int))
    held_out = (0.8 + 0.01 * rng.normal(size=plan.shadows)).astype(np.float32)
    accuracy = {
        view: ViewAccuracy(np.ones_like(held_out), held_out if view == "full_clean" else held_out - np.float32(0.1))
        for view in views
    }
    return ShadowRuns(**vars(runs) | {"held_out_accuracy": held_out, "view_accuracy": accuracy})


@cache
def some_audit() -> Audit:
    """A real audit, for everything that a comparison does not look at."""
    plan = tiny_plan(queries="full", releases=RELEASES, rules="strong", shadows=24)
    return audit(leaky_graph(), plan, pictures="none")


def made_audit(
    counts: ErrorCounts,
    *,
    plan: AuditPlan = UNIFORM,
    definitions: tuple[str, ...] = ("bmp-r",),
    graph_hash: str = "abc",
    names: list[str] | None = None,
    source: str = "tiny",
    is_leakage_found: bool = True,
    leakage: float = 2.0,
    noise_seed: int = 0,
) -> Audit:
    """An audit with these errors, of a graph that is known by its hash alone."""
    plan = plan.replace(definitions=definitions)
    flags, zeros = np.zeros(counts.num_nodes, dtype=np.bool_), np.zeros(counts.num_nodes)
    p_value = 0.005 if is_leakage_found else 0.5
    test = PermutationTest(
        p_value=p_value,
        num_shuffles=199,
        largest=np.full(200, 0.5),
        node=counts.node,
        z=zeros,
        num_in=counts.num_in,
        node_p_value=zeros + p_value,
        is_leaking=flags,
        critical=4.0,
        num_models=400,
    )
    performance = AttackPerformance(300, 100, 0.5, 0.5, {0.01: 0.01}, ROC)
    variants = [variant.name for variant in VARIANTS]
    attacks = Attacks(VARIANTS, dict.fromkeys(variants, counts), dict.fromkeys(variants, performance), None, test)
    posteriors = {definition: posterior_of(counts, definition) for definition in definitions}
    runs = made_runs(plan, counts.num_nodes, leakage, noise_seed)
    prob = np.full(counts.num_nodes, 0.5)
    findings = {
        release: AccessFindings(
            "student, full",
            expose(Student(), Evidence.of_runs(runs, release, ("full",)), prob),
            None,
            None,
            "too few models",
        )
        for release in RELEASES
    }
    template = some_audit().result
    of_variant = template.variants[variants[0]]
    (of_posterior,) = of_variant.posteriors.values()
    rows = {
        definition: replace(
            _posterior(posterior, Priors.from_formula(plan.sampler, np.full(counts.num_nodes, 0.25))),
            prior=of_posterior.prior,
        )
        for definition, posterior in posteriors.items()
    }
    priors = Priors.from_formula(plan.sampler, prob)
    floor = priors.floor
    made_from = f"{graph_hash} {plan_hash(plan)} {counts.false_positives.tolist()} {leakage} {noise_seed}"
    releases = {
        release: replace(
            template.releases[release],
            proof=None,
            certified=None,
            not_proven="too few models",
            held_out_accuracy=known_mean(release_accuracy(plan, runs, release).held_out),
            exposure=_exposure(findings[release].exposure),
        )
        for release in RELEASES
    }
    result = replace(
        template,
        title=f"{source}, {plan.title}",
        is_leakage_found=is_leakage_found,
        releases=releases,
        fingerprint=hashlib.sha256(made_from.encode()).hexdigest(),
        headline=[],
        answer=replace(template.answer, level="traces" if is_leakage_found else "none"),
        permutation_test=_test(test, np.ones(counts.num_nodes, dtype=np.bool_)),
        graph=replace(template.graph, content_hash=graph_hash),
        plan=plan_table(plan, source),
        priors=PriorsResult(0, floor.right, floor.left, None),
        variants={name: replace(of_variant, posteriors=rows) for name in variants},
        timings={},
    )
    return Audit(
        plan=plan,
        source=source,
        priors=priors,
        attacks=attacks,
        findings=Findings({release: {"labels": part, "scores": part} for release, part in findings.items()}),
        estimates=Estimates(dict.fromkeys(variants, posteriors), node_leakage(counts, plan.level), {}, {}),
        graph=_unknown,
        runs=runs,
        result=normal(result),
        nodes=pd.DataFrame(
            {
                **{name: np.full(counts.num_nodes, np.nan) for name in NODE_COLUMNS},
                **dict.fromkeys(("degree", "component", "prior_prob", "prior_standard_error"), 0.0),
                "flag": "",
                "is_leaking": False,
                "node": counts.node,
                "name": names or [str(node) for node in counts.node],
                "class": ["a"] * counts.num_nodes,
            }
        ),
    )


def _unknown() -> Any:
    raise AssertionError("a comparison does not need the graph")


def write_folder(path: Path, counts: ErrorCounts, **options: Any) -> Path:
    """Such an audit on disk, without its graph and its shadow models."""
    made, workspace = made_audit(counts, **options), Workspace(path)
    graph_hash = made.summary["graph"]["content_hash"]
    with workspace.locked():
        workspace.write_plan(format_plan(made.plan, made.source))
        workspace.publish("priors", Stamp("", graph_hash), {"priors.parquet": made.priors.to_frame().to_parquet})
        workspace.publish("attack", Stamp(attack_hash(made.plan), graph_hash, "m"), attack_files(made.attacks))
        workspace.publish("proof", Stamp(proof_hash(made.plan), graph_hash, "m"), proof_files(made.plan, made.findings))
        workspace.publish("estimate", Stamp(plan_hash(made.plan), graph_hash, "m"), audit_files(made))
    return path
