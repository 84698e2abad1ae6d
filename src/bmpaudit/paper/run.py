"""One set of shadow models: training and attacks through the audit's pipeline, and where the results are kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit import datasets
from bmpaudit.arrays import Floats32
from bmpaudit.auditing import AuditPlan, Pipeline, Runtime, Subject, Workspace
from bmpaudit.build import build_id
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.paper.counts import AttackCounts, challenge_all
from bmpaudit.paper.experiments import COUNTINGS, RELEASES, Configuration
from bmpaudit.paper.proofs import ADVERSARIES, proof_name, prove_and_expose
from bmpaudit.paper.results import ResultsFile
from bmpaudit.samplers import AnySampler, Priors, prior_probabilities
from bmpaudit.shadow import ShadowRuns, ShadowStore
from bmpaudit.tables import count_in


@dataclass(frozen=True)
class Run:
    """One configuration with one seed, and where it is kept.

    Attributes:
        configuration: What is trained.
        seed: Random seed of the shadow models.
        num_models: J, the number of shadow models.
        root: The folder of all runs.
    """

    configuration: Configuration
    seed: int
    num_models: int
    root: Path

    def plan(self, counting: str) -> AuditPlan:
        """The audit plan, for one way of counting errors."""
        return self.configuration.plan(self.seed, self.num_models, counting)

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.root / "runs" / f"{self.configuration.name}-{self.num_models}-seed{self.seed}"

    @property
    def audit_folder(self) -> Path:
        """An audit folder with the shadow models, which is removed once their errors are counted unless it is kept."""
        return self.folder / "audit"

    @property
    def counts_path(self) -> Path:
        """The errors of the attacks."""
        return self.folder / "counts.npz"

    @property
    def results_path(self) -> Path:
        """What was computed from the errors."""
        return self.folder / "results.json"

    @property
    def results(self) -> ResultsFile:
        """What was computed from the errors."""
        return ResultsFile(self.results_path)


def train_and_attack(
    runs: Sequence[Run], runtime: Runtime, *, proven: Collection[Run] = (), keep_shadows: bool = False
) -> None:
    """Makes sure that every run has the errors of its attacks; shadow models are removed after that unless kept.

    Args:
        runs: The runs.
        runtime: Threads and progress.
        proven: Those of them that also need what their models prove and expose.
        keep_shadows: Whether to keep the shadow models.

    Raises:
        InputError: if a folder holds results of another plan or another version of bmpaudit.
    """
    missing = [run for run in runs if not run.counts_path.exists() or (run in proven and not_proven(run))]
    for run in runs:
        if run.counts_path.exists():
            _check_build(run)
        if run in missing:
            _train_and_attack(run, runtime, f"{missing.index(run) + 1} of {len(missing)}", is_proven=run in proven)
        if not keep_shadows and run.audit_folder.exists():
            shutil.rmtree(run.audit_folder)


def not_proven(run: Run) -> list[tuple[str, str]]:
    """Releases and adversaries of which it is not known what they prove."""
    results = run.results
    return [
        (release, adversary)
        for release in RELEASES
        for adversary in ADVERSARIES
        if proof_name(release, adversary) not in results
    ]


def _train_and_attack(run: Run, runtime: Runtime, number: str, *, is_proven: bool) -> None:
    start = time.perf_counter()
    shadows, about = train(run, runtime)
    if not run.counts_path.exists():
        _attack(run, shadows, about, runtime)
    graph, results = load_graph(run.configuration.dataset), run.results
    priors = known_priors(run.configuration.dataset, run.plan("ours").sampler)
    for release, adversary in not_proven(run) if is_proven else ():
        shown = prove_and_expose(shadows, graph, priors, release, ADVERSARIES[adversary], runtime)
        results.put(proof_name(release, adversary), shown)
    if not runtime.quiet:
        seconds = time.perf_counter() - start
        runtime.notice(f"{run.configuration.name}, seed {run.seed}, ready after {seconds:.1f} s ({number})")


def train(run: Run, runtime: Runtime) -> tuple[ShadowRuns, dict[str, Any]]:
    """The shadow models of a run, trained as far as they are missing, and where they came from, as plain values."""
    graph, plan, workspace = load_graph(run.configuration.dataset), run.plan("ours"), Workspace(run.audit_folder)
    num_before = _num_trained(workspace, graph, plan)
    pipeline = Pipeline(Subject(graph, run.configuration.dataset, plan), workspace, runtime)
    start_processor = time.process_time()
    with pipeline.prepared():
        shadows = pipeline.runs
    about = {
        "plan": plan.shadow_plan.describe(graph),
        "build": build_id(),
        "num_models": shadows.num_models,
        "failed": list(shadows.failed),
        "seconds_training": pipeline.timings["training"],
        "processor_training": time.process_time() - start_processor,
        "models_timed": run.num_models - num_before,
        "train_accuracy": _mean(shadows.train_accuracy),
        "held_out_accuracy": _mean(shadows.held_out_accuracy),
        "mean_sample_size": float(count_in(shadows.memberships).sum() / shadows.num_models),
    }
    return shadows, about


def _attack(run: Run, shadows: ShadowRuns, about: dict[str, Any], runtime: Runtime) -> None:
    priors = known_priors(run.configuration.dataset, run.plan("ours").sampler)
    start, start_processor = time.perf_counter(), time.process_time()
    challenges = {counting: challenge_all(run.plan(counting), shadows, priors, runtime) for counting in COUNTINGS}
    times = {"seconds_attack": time.perf_counter() - start, "processor_attack": time.process_time() - start_processor}
    run.results_path.unlink(missing_ok=True)  # if there are any, they are of errors that are gone
    AttackCounts(challenges, about | times).save(run.counts_path)


def _num_trained(workspace: Workspace, graph: Graph, plan: AuditPlan) -> int:
    if not (workspace.path / "shadows.json").exists():
        return 0
    return int(ShadowStore(workspace.path, graph, plan.shadow_plan, read_only=True).is_done.sum())


@lru_cache(maxsize=4)
def load_counts(run: Run) -> AttackCounts:
    """The errors of a run.

    Raises:
        InputError: if they are of another plan.
    """
    counts = AttackCounts.load(run.counts_path)
    wanted = run.plan("ours").shadow_plan.describe(load_graph(run.configuration.dataset))
    there: dict[str, Any] = counts.about["plan"]
    differing = [name for name in wanted if there.get(name) != wanted[name]]
    if differing:
        raise InputError(
            f"{run.counts_path} holds results of another plan (other {', '.join(differing)}): use a new folder"
        )
    return counts


def _check_build(run: Run) -> None:
    if load_counts(run).about["build"] != build_id():
        raise InputError(
            f"{run.counts_path} holds results of another version of bmpaudit: use a new folder, or --page-only to show "
            "them"
        )


@cache
def load_graph(name: str) -> Graph:
    """A data set, read once."""
    return datasets.load(name)


@cache
def known_priors(dataset: str, sampler: AnySampler) -> Priors:
    """γ(1) of each node, exact or from 100,000 draws; the same for all seeds of the shadow models."""
    return prior_probabilities(load_graph(dataset), sampler)


def _mean(values: Floats32) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None
