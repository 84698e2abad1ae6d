"""The steps of an audit in a folder: each reads what the ones before left there, and leaves its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.audit.attack_step import Attacks, check_enough_models, run_attacks
from bmpaudit.audit.audit import Audit, attack_and_estimate, find_priors, timed, train
from bmpaudit.audit.estimate_step import Estimates, run_estimates
from bmpaudit.audit.folder import AuditFolder, check_new_or_audit
from bmpaudit.audit.report_step import write_report
from bmpaudit.audit.summary import fingerprint
from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.graph import Graph
from bmpaudit.plan import AuditPlan, Runtime
from bmpaudit.samplers import Priors, draw_memberships
from bmpaudit.shadow import ALL_VIEWS, ShadowRuns


@dataclass(frozen=True, eq=False)
class Subject:
    """What is audited, and how.

    Attributes:
        graph: The graph.
        source: Where it came from; empty if it was given as an object.
        plan: The plan.
        folder: Where the audit lives.
    """

    graph: Graph
    source: str
    plan: AuditPlan
    folder: AuditFolder

    @classmethod
    def read(cls, path: str | Path) -> Subject:
        """The one that a folder is about."""
        folder = AuditFolder(path)
        found = folder.read_plan()
        return cls(folder.load_graph(found.graph), found.graph, found.plan, folder)


def run_audit(subject: Subject, runtime: Runtime, *, pictures: bool = True) -> dict[str, Any]:
    """All steps; what is there already is kept, and a finished audit is left alone. Returns its summary."""
    runs, priors, timings = prepare(subject, runtime)
    told = finished_summary(subject, runs)
    if told is not None:
        return told
    audit = attack_and_estimate(subject.graph, subject.source, subject.plan, priors, runs, runtime, timings)
    subject.folder.write_audit(audit)
    write_report(audit, subject.folder, runtime, pictures=pictures)
    return audit.summary


def prepare(subject: Subject, runtime: Runtime) -> tuple[ShadowRuns, Priors, dict[str, float]]:
    """The first half: priors and shadow models, with the seconds they took."""
    check_new_or_audit(subject.folder.path)
    timings: dict[str, float] = {}
    with timed(timings, "training"):
        runs = train(subject.graph, subject.plan, subject.folder.path, runtime)
    # Only now: a folder of another plan is refused by its shadow models, and keeps its own plan.
    subject.folder.write_plan(subject.plan, subject.source, subject.graph)
    with timed(timings, "priors"):
        priors = find_priors(subject.graph, subject.plan, runtime)
    return runs, priors, timings


def finished_summary(subject: Subject, runs: ShadowRuns) -> dict[str, Any] | None:
    """The summary if the folder holds the finished audit of just this plan and these models."""
    try:
        told = subject.folder.read_summary()
    except DataError:
        return None
    is_same = told.get("fingerprint") == fingerprint(subject.graph, subject.plan, runs)
    return told if is_same and subject.folder.report_path.exists() else None


def sample_step(subject: Subject, runtime: Runtime) -> Priors:
    """Writes the plan, the priors, and who is in which sample, for models that are trained elsewhere."""
    check_new_or_audit(subject.folder.path)
    priors = find_priors(subject.graph, subject.plan, runtime)
    memberships = draw_memberships(subject.graph, subject.plan.sampler, subject.plan.num_shadows, subject.plan.seed)
    subject.folder.path.mkdir(parents=True, exist_ok=True)
    subject.folder.write_plan(subject.plan, subject.source, subject.graph)
    subject.folder.write_priors(priors)
    with atomic_write(subject.folder.path / "memberships.npz") as temporary:
        np.savez_compressed(temporary, memberships=memberships)
    return priors


def attack_step(subject: Subject, runtime: Runtime, runs_path: Path | None = None) -> Attacks:
    """Attacks the folder's shadow models, or those of a file, and writes the errors."""
    plan = subject.plan
    if runs_path is None:
        runs = subject.folder.read_runs(subject.graph, plan)
    else:
        runs = read_runs_file(runs_path, subject.graph)
        known = {view.name: view for view in ALL_VIEWS}
        plan = replace(plan, views=tuple(known[name] for name in runs.statistics), num_shadows=runs.num_models)
        subject.folder.write_plan(plan, subject.source, subject.graph)
    check_enough_models(runs)
    priors = find_priors(subject.graph, plan, runtime)
    attacks = run_attacks(plan, runs, priors, runtime)
    subject.folder.write_priors(priors)
    subject.folder.write_attacks(attacks)
    return attacks


def estimate_step(subject: Subject, runtime: Runtime, runs_path: Path | None = None) -> Audit:
    """Estimates from the folder's errors, and writes posteriors, nodes and the summary."""
    attacks = subject.folder.read_attacks(subject.plan)
    timings: dict[str, float] = {}
    with timed(timings, "estimation"):
        estimates = run_estimates(subject.plan, attacks, runtime)
    audit = _audit_of(subject, runs_path, attacks, estimates, timings)
    subject.folder.write_audit(audit)
    return audit


def report_step(subject: Subject, runtime: Runtime, runs_path: Path | None = None, *, pictures: bool = True) -> Path:
    """Writes the page, the tables and the pictures from what the folder holds."""
    folder, plan = subject.folder, subject.plan
    attacks = folder.read_attacks(plan)
    timings = folder.read_summary()["timings"]
    audit = _audit_of(subject, runs_path, attacks, folder.read_estimates(plan, attacks), timings)
    return write_report(audit, folder, runtime, pictures=pictures)


def _audit_of(
    subject: Subject, runs_path: Path | None, attacks: Attacks, estimates: Estimates, timings: dict[str, float]
) -> Audit:
    folder, plan, graph = subject.folder, subject.plan, subject.graph
    runs = folder.read_runs(graph, plan) if runs_path is None else read_runs_file(runs_path, graph)
    return Audit(graph, subject.source, plan, folder.read_priors(plan), runs, attacks, estimates, timings)


def read_runs_file(path: Path, graph: Graph) -> ShadowRuns:
    """Models trained elsewhere: an `.npz` archive with `memberships` and, by view, logits or margins.

    Raises:
        DataError: if the file is missing or damaged, or has an unknown view.
        InputError: if shapes do not fit.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError) as damage:
        raise DataError(f"{path}: damaged or not an .npz archive: {damage}") from None
    if "memberships" not in arrays:
        raise DataError(f"{path}: memberships is missing; found {', '.join(arrays) or 'none'}")
    memberships = arrays.pop("memberships")
    names = [view.name for view in ALL_VIEWS]
    for name in arrays:
        if name not in names:
            raise DataError(f"{path}: unknown view {name!r}; views are {', '.join(names)}")
    if not arrays:
        raise DataError(f"{path}: no view; at least one of {', '.join(names)} is needed")
    if memberships.ndim == 2 and memberships.shape[1] != graph.num_nodes:
        raise InputError(
            f"{path}: memberships are of {memberships.shape[1]:,} nodes, the graph has {graph.num_nodes:,}"
        )
    ordered = {name: arrays[name] for name in names if name in arrays}
    return ShadowRuns.from_arrays(memberships, ordered, graph.labels)
