"""The steps of an audit in a folder: each reads what the ones before left there, and leaves its own."""

from __future__ import annotations

import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.auditing.attack_step import Attacks, check_enough_models, run_attacks
from bmpaudit.auditing.audit import Audit, attack_and_estimate, find_priors, timed, train
from bmpaudit.auditing.estimate_step import run_estimates
from bmpaudit.auditing.folder import AuditFolder, check_new_or_audit
from bmpaudit.auditing.report_step import write_report
from bmpaudit.auditing.summary import fingerprint
from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.graph import Graph
from bmpaudit.plan import AuditPlan, Runtime
from bmpaudit.samplers import Priors, draw_memberships
from bmpaudit.shadow import ShadowRuns, ShadowStore


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
    timings: dict[str, float] = {}
    with timed(timings, "training"):
        runs = train_step(subject, runtime)
    check_enough_models(runs)
    told = finished_summary(subject, runs)
    if told is not None:
        with suppress(DataError):  # what is missing or damaged is made anew
            if not is_reported(subject.folder, told, pictures=pictures):
                report_step(subject, runtime, pictures=pictures)
            return told
    with timed(timings, "priors"):
        priors = find_priors(subject.graph, subject.plan, runtime)
    audit = attack_and_estimate(subject.graph, subject.source, subject.plan, priors, runs, runtime, timings)
    subject.folder.write_audit(audit)
    write_report(audit, subject.folder, runtime, pictures=pictures)
    return audit.summary


def finished_summary(subject: Subject, runs: ShadowRuns) -> dict[str, Any] | None:
    """The summary if the folder holds the estimates of just this plan and these models."""
    try:
        told = subject.folder.read_summary()
    except DataError:
        return None
    return told if told.get("fingerprint") == fingerprint(subject.graph, subject.plan, runs) else None


def is_reported(folder: AuditFolder, told: dict[str, Any], *, pictures: bool) -> bool:
    """Whether the page, written last, is of this summary; and whether there are pictures, if they are wanted."""
    path = folder.report_path
    if not path.exists() or told["fingerprint"] not in path.read_text(encoding="utf-8"):
        return False
    return not pictures or any((folder.path / "figures").glob("*.pdf"))


def sample_step(subject: Subject, runtime: Runtime) -> Priors:
    """Writes the plan, the priors, and who is in which sample, for models that are trained elsewhere."""
    _check_folder(subject)
    priors = find_priors(subject.graph, subject.plan, runtime)
    memberships = draw_memberships(subject.graph, subject.plan.sampler, subject.plan.num_shadows, subject.plan.seed)
    subject.folder.path.mkdir(parents=True, exist_ok=True)
    subject.folder.write_plan(subject.plan, subject.source, subject.graph)
    subject.folder.write_priors(priors)
    with atomic_write(subject.folder.path / "memberships.npz") as temporary:
        np.savez_compressed(temporary, memberships=memberships)
    return priors


def train_step(subject: Subject, runtime: Runtime, *, keep_logits: bool = False) -> ShadowRuns:
    """Makes sure that the folder holds the plan's shadow models, and writes the plan."""
    _check_folder(subject)
    runs = train(subject.graph, subject.plan, subject.folder.path, runtime, keep_logits=keep_logits)
    # Only now: a folder of another plan is refused by its shadow models, and keeps its own plan.
    subject.folder.write_plan(subject.plan, subject.source, subject.graph)
    return runs


def _check_folder(subject: Subject) -> None:
    """Refuses a folder that holds something else, or samples or models of another plan; changes nothing there."""
    path = subject.folder.path
    check_new_or_audit(path)
    if (path / "shadows.json").exists():
        ShadowStore(path, subject.graph, subject.plan.shadow_plan, read_only=True)
    samples = path / "memberships.npz"
    if samples.exists():
        found = _read_arrays(samples).get("memberships", np.empty((0, 0)))[:8]
        drawn = draw_memberships(subject.graph, subject.plan.sampler, len(found), subject.plan.seed)
        if not np.array_equal(found, drawn):
            raise InputError(f"{path} holds samples of another graph, sampler or seed; use a new folder")


def attack_step(subject: Subject, runtime: Runtime, runs_path: Path | None = None) -> Attacks:
    """Attacks the folder's shadow models, or those of a file, and writes the errors."""
    plan = subject.plan
    if runs_path is None:
        runs = subject.folder.read_runs(subject.graph, plan)
    else:
        if (subject.folder.path / "shadows").exists():
            raise InputError(f"{subject.folder.path} has shadow models of its own; attack others in a new folder")
        runs = read_runs_file(runs_path, subject.graph, plan)
        plan = replace(plan, num_shadows=runs.num_models)
        subject.folder.write_plan(plan, subject.source, subject.graph)
    check_enough_models(runs)
    priors = find_priors(subject.graph, plan, runtime)
    attacks = run_attacks(plan, runs, priors, runtime)
    subject.folder.write_priors(priors)
    subject.folder.write_attacks(attacks, fingerprint(subject.graph, plan, runs, attack_only=True))
    return attacks


def estimate_step(subject: Subject, runtime: Runtime, runs_path: Path | None = None) -> Audit:
    """Estimates from the folder's errors, and writes posteriors, nodes and the summary."""
    folder, plan, graph = subject.folder, subject.plan, subject.graph
    attacks = folder.read_attacks(plan)
    runs = _runs(subject, runs_path)
    if folder.attack_fingerprint() != fingerprint(graph, plan, runs, attack_only=True):
        raise DataError(f"{folder.path}: the errors there are of another plan or other models: bmpaudit attack")
    timings: dict[str, float] = {}
    with timed(timings, "estimation"):
        estimates = run_estimates(plan, attacks, runtime)
    audit = Audit(graph, subject.source, plan, folder.read_priors(plan), runs, attacks, estimates, timings)
    folder.write_audit(audit)
    return audit


def report_step(subject: Subject, runtime: Runtime, runs_path: Path | None = None, *, pictures: bool = True) -> Path:
    """Writes the page, the tables and the pictures from what the folder holds."""
    folder, plan, graph = subject.folder, subject.plan, subject.graph
    told = folder.read_summary()
    runs = _runs(subject, runs_path)
    if told["fingerprint"] != fingerprint(graph, plan, runs):
        raise DataError(f"{folder.path}: the estimates there are of another plan or other models: bmpaudit estimate")
    attacks = folder.read_attacks(plan)
    estimates = folder.read_estimates(plan, attacks)
    audit = Audit(graph, subject.source, plan, folder.read_priors(plan), runs, attacks, estimates, told["timings"])
    return write_report(audit, folder, runtime, pictures=pictures)


def _runs(subject: Subject, runs_path: Path | None) -> ShadowRuns:
    if runs_path is not None:
        return read_runs_file(runs_path, subject.graph, subject.plan)
    return subject.folder.read_runs(subject.graph, subject.plan)


def read_runs_file(path: Path, graph: Graph, plan: AuditPlan) -> ShadowRuns:
    """Models trained elsewhere: an `.npz` archive with `memberships` and, by view, logits or margins.

    Raises:
        DataError: if the file is missing or damaged, or has an unknown view.
        InputError: if shapes do not fit.
    """
    arrays = _read_arrays(path)
    if "memberships" not in arrays:
        raise DataError(f"{path}: memberships is missing; found {', '.join(arrays) or 'none'}")
    memberships = arrays.pop("memberships")
    names = [view.name for view in plan.views]
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
    try:
        return ShadowRuns.from_arrays(memberships, ordered, graph)
    except InputError as wrong:
        raise InputError(f"{path}: {wrong}") from None


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error) as damage:
        raise DataError(f"{path}: damaged or not an .npz archive: {damage}") from None
