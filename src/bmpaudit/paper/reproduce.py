"""Runs the experiments: trains, attacks, estimates; goes on where it left off and computes nothing twice."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import numpy.typing as npt

from bmpaudit import datasets
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.paper import measures
from bmpaudit.paper.counts import AttackCounts
from bmpaudit.paper.experiments import (
    COUNTINGS,
    JOINT,
    MEASURES,
    MHAAR_SUBSET,
    NODES_SHOWN,
    NODES_SHOWN_VARIANT,
    NUM_MODELS,
    QUICK_SHARE,
    VARIANTS,
    Configuration,
    Counting,
    Measure,
    Variant,
)
from bmpaudit.paper.results import ResultsFile
from bmpaudit.samplers import Snowball, Uniform, prior_probabilities
from bmpaudit.shadow import train_shadows

Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Called with what is counted and how many there are; gives a function to be told how many are done."""

REPORT_EVERY = 16
MHAAR_ITERATIONS = 10_000

Computation = Callable[[AttackCounts], dict[str, Any]]


@dataclass(frozen=True)
class Run:
    """One configuration with one seed, and where it is kept.

    Attributes:
        configuration: What is trained.
        seed: Of the shadow models.
        num_models: J.
        root: The folder of all runs.
    """

    configuration: Configuration
    seed: int
    num_models: int
    root: Path

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.root / "runs" / f"{self.configuration.name}-{self.num_models}-seed{self.seed}"

    @property
    def counts_path(self) -> Path:
        """The attacks' errors."""
        return self.folder / "counts.npz"

    @property
    def shadows(self) -> Path:
        """The shadow models, which may be gone once the attacks' errors are there."""
        return self.folder / "shadow-models"

    @property
    def results(self) -> ResultsFile:
        """What was computed from the errors."""
        return ResultsFile(self.folder / "results.json")


@dataclass(frozen=True)
class Task:
    """Something to compute from a run's errors, kept under a name in its results."""

    run: Run
    name: str
    compute: Computation


@contextmanager
def run_folder_lock(out: Path) -> Iterator[None]:
    """Keeps a second process off the folder.

    Raises:
        InputError: if another process uses it.
    """
    out.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(out / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise InputError(f"{out} is in use by another process") from None
    try:
        yield
    finally:
        lock.release()


def train_and_attack(
    runs: Sequence[Run],
    watch: Watch,
    *,
    num_threads: int | None = None,
    keep_shadows: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Makes sure that every run has its attacks' errors; shadow models are removed after that unless kept.

    Raises:
        InputError: if a folder holds results of another plan.
    """
    missing = []
    for run in runs:
        if run.counts_path.exists():
            load_counts(run)
            if not keep_shadows and run.shadows.exists():  # a stop came just before they were to be removed
                shutil.rmtree(run.shadows)
        else:
            missing.append(run)
    if not missing:
        return
    with watch("shadow models", sum(run.num_models for run in missing)) as progress:
        before = 0
        for run in missing:
            _train_and_attack(run, lambda done, before=before: progress(before + done), num_threads, report)  # type: ignore[misc]
            before += run.num_models
            if not keep_shadows:
                shutil.rmtree(run.shadows)


def _train_and_attack(
    run: Run, progress: Callable[[int], None], num_threads: int | None, report: Callable[[str], None]
) -> None:
    configuration = run.configuration
    graph, plan = load_graph(configuration.dataset), configuration.plan(run.seed)
    already: list[int] = []

    def told(done: int) -> None:
        already.append(done)
        progress(done)

    start = time.perf_counter()
    shadows = train_shadows(
        graph, plan, run.num_models, run.shadows, num_threads=num_threads, progress=told, report=report
    )
    trained = time.perf_counter()
    prior = exact_priors(configuration.dataset, configuration.sampler)
    drawn = time.perf_counter()
    about = {
        "plan": plan.describe(graph),
        "seconds_training": trained - start,
        "models_timed": run.num_models - already[0],
        "train_accuracy": _mean(shadows.train_accuracy),
        "held_out_accuracy": _mean(shadows.held_out_accuracy),
        "mean_sample_size": float(shadows.memberships.sum(axis=1).mean()),
        "failed": list(shadows.failed),
    }
    counts = AttackCounts.of_runs(shadows, prior, about, num_threads)
    attacked = {**about, "seconds_attack": time.perf_counter() - drawn}
    AttackCounts(counts.num_models, counts.num_in, counts.prior_prob, counts.errors, attacked).save(run.counts_path)
    report(f"{configuration.name}, seed {run.seed}: {shadows.num_models:,} models in {trained - start:.1f} s")


def compute_all(
    tasks: Iterable[Task], watch: Watch, what: str = "posteriors", report: Callable[[str], None] = lambda _: None
) -> None:
    """Computes what is not there yet, storing each result at once; reports every sixteenth."""
    results: dict[Run, ResultsFile] = {}
    todo = []
    for task in tasks:
        results.setdefault(task.run, task.run.results)
        if task.name not in results[task.run]:
            todo.append(task)
    if not todo:
        return
    with watch(what, len(todo)) as progress:
        for number, task in enumerate(todo):
            results[task.run].put(task.name, task.compute(load_counts(task.run)))
            progress(number + 1)
            if (number + 1) % REPORT_EVERY == 0:
                report(f"{number + 1:,} of {len(todo):,} {what}")


def cell_name(variant: Variant, measure: Measure, counting: Counting) -> str:
    """Under which a cell's posterior is kept."""
    return f"{variant.name}/{measure}/{counting}"


def cell_tasks(runs: Sequence[Run], counting: Counting) -> list[Task]:
    """The 16 posteriors of each run, counted one way; BMP-R of all runs comes first, it is the quicker one."""

    def task(run: Run, variant: Variant, measure: Measure) -> Task:
        return Task(
            run,
            cell_name(variant, measure, counting),
            lambda counts: measures.measure_cell(counts.error_counts(variant, counting), measure),
        )

    return [task(run, variant, measure) for measure in MEASURES for run in runs for variant in VARIANTS]


def mhaar_task(run: Run, variant: Variant, measure: Measure) -> Task:
    """One cell by Algorithm 3, counted the paper's way; a quick run takes a tenth of the iterations too."""
    iterations = MHAAR_ITERATIONS if run.num_models >= NUM_MODELS else MHAAR_ITERATIONS // QUICK_SHARE
    return Task(
        run,
        f"{variant.name}/{measure}/mhaar",
        lambda counts: measures.measure_by_mhaar(counts.error_counts(variant, "paper"), measure, run.seed, iterations),
    )


def mhaar_tasks(runs: Iterable[Run]) -> list[Task]:
    """The chosen subset by Algorithm 3, for the first seed."""
    chosen = [run for run in runs if run.configuration in MHAAR_SUBSET and run.seed == 0]
    clean = [variant for variant in VARIANTS if variant.output == "clean"]
    return [mhaar_task(run, variant, measure) for run in chosen for variant in clean for measure in MEASURES]


def unflagged_tasks(runs: Iterable[Run]) -> list[Task]:
    """Cells under snowball sampling without any node whose decision never varies, for the first seed."""

    def task(run: Run, variant: Variant, measure: Measure) -> Task:
        return Task(
            run,
            f"{variant.name}/{measure}/unflagged",
            lambda counts: measures.measure_unflagged(counts.error_counts(variant, "ours"), measure),
        )

    chosen = [run for run in runs if run.configuration.sampling == "snowball" and run.seed == 0]
    return [task(run, variant, measure) for run in chosen for variant in VARIANTS for measure in MEASURES]


def figure_tasks(runs: Iterable[Run]) -> list[Task]:
    """What Figures 3 and 4 and the findings about nodes need, for the first seed."""

    def nodes(run: Run, counting: Counting) -> Task:
        keep = run.configuration in NODES_SHOWN and counting == "paper"
        return Task(
            run,
            f"nodes/{counting}",
            lambda counts: measures.measure_nodes(counts.error_counts(NODES_SHOWN_VARIANT, counting), keep_nodes=keep),
        )

    def joint(run: Run, variant: Variant, counting: Counting) -> Task:
        return Task(
            run,
            f"{variant.name}/bmp/{counting}",
            lambda counts: measures.measure_joint(counts.error_counts(variant, counting), run.seed),
        )

    first = [run for run in runs if run.seed == 0]
    tasks = [nodes(run, counting) for run in first for counting in COUNTINGS]
    clean = [variant for variant in VARIANTS if variant.output == "clean"]
    shown = [run for run in first if run.configuration in JOINT]
    return tasks + [joint(run, variant, counting) for counting in COUNTINGS for run in shown for variant in clean]


def deciding_task(run: Run, variant: Variant, measure: Measure) -> Task:
    """What a cell hangs on."""
    return Task(
        run,
        f"{variant.name}/{measure}/deciding",
        lambda counts: measures.measure_deciding_nodes(counts.error_counts(variant, "paper"), measure),
    )


@cache
def load_graph(name: str) -> Graph:
    """A data set, read once."""
    return datasets.load(name)


@cache
def exact_priors(dataset: str, sampler: Uniform | Snowball) -> npt.NDArray[np.float64]:
    """γ(1) of each node, exact or over 100,000 draws, made once for all seeds."""
    return prior_probabilities(load_graph(dataset), sampler).prob


@lru_cache(maxsize=4)
def load_counts(run: Run) -> AttackCounts:
    """A run's errors, checked to be of its plan."""
    counts = AttackCounts.load(run.counts_path)
    counts.check_plan(run.configuration.plan(run.seed).describe(load_graph(run.configuration.dataset)), run.counts_path)
    return counts


def _mean(values: npt.NDArray[np.float32]) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None
