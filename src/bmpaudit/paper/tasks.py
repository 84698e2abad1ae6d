"""What is computed from the errors of the runs: each result is stored at once, and computed once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bmpaudit.attack import ErrorCounts
from bmpaudit.auditing import AuditPlan, Runtime
from bmpaudit.auditing.variant import Variant
from bmpaudit.paper import cell_results
from bmpaudit.paper.experiments import (
    COUNTINGS,
    DEFINITIONS,
    JOINT,
    MHAAR_SUBSET,
    NODES_SHOWN,
    NODES_SHOWN_VARIANT,
    NUM_MODELS,
    QUICK_SHARE,
    VARIANTS,
)
from bmpaudit.paper.run import Run, load_counts

MHAAR_ITERATIONS = 10_000
CLEAN = tuple(variant for variant in VARIANTS if variant.release == "clean")


@dataclass(frozen=True)
class Task:
    """A result to compute from a run's errors.

    Attributes:
        run: The run.
        name: Name of the result in the run's file.
        variant: The attack whose errors are used.
        counting: How they are counted.
        compute: Makes the result from the errors and the plan.
    """

    run: Run
    name: str
    variant: Variant
    counting: str
    compute: Callable[[ErrorCounts, AuditPlan, Runtime], dict[str, Any]]


def compute_all(tasks: Sequence[Task], runtime: Runtime, what: str = "posteriors") -> None:
    """Computes the results that are missing, and stores each at once."""
    results = {run: run.results for run in {task.run for task in tasks}}
    missing = [task for task in tasks if task.name not in results[task.run]]
    if not missing:
        return
    with runtime.progress(what, len(missing)) as progress:
        for done, task in enumerate(missing, 1):
            counts = load_counts(task.run).error_counts(task.variant, task.counting)
            start = time.process_time()
            result = task.compute(counts, task.run.plan(task.counting), runtime)
            results[task.run].put(task.name, {**result, "processor_seconds": time.process_time() - start})
            progress(done)
    if not runtime.quiet:
        runtime.notice(f"{len(missing):,} {what} computed")


def result_name(variant: Variant, definition: str, kind: str) -> str:
    """The name of a result about one cell; `kind` is the way of counting for the cell's own posterior."""
    return f"{variant.name}/{definition}/{kind}"


def cell_tasks(runs: Sequence[Run], counting: str) -> list[Task]:
    """The 16 posteriors of each run, counted one way; BMP-R of all runs comes first, because it is faster."""
    return [cell_task(run, variant, name, counting) for name in DEFINITIONS for run in runs for variant in VARIANTS]


def cell_task(run: Run, variant: Variant, definition: str, counting: str) -> Task:
    """The exact posterior of one cell."""
    compute = partial(cell_results.cell_posterior, definition=definition)
    return Task(run, result_name(variant, definition, counting), variant, counting, compute)


def mhaar_task(run: Run, variant: Variant, definition: str) -> Task:
    """One cell by Algorithm 3, counted the paper's way; a quick run takes a tenth of the iterations too."""
    iterations = MHAAR_ITERATIONS if run.num_models >= NUM_MODELS else MHAAR_ITERATIONS // QUICK_SHARE
    compute = partial(cell_results.mhaar_posterior, definition=definition, num_iterations=iterations)
    return Task(run, result_name(variant, definition, "mhaar"), variant, "paper", compute)


def mhaar_tasks(runs: Iterable[Run]) -> list[Task]:
    """The chosen subset by Algorithm 3, for the first seed."""
    chosen = [run for run in _first_seed(runs) if run.configuration in MHAAR_SUBSET]
    return [mhaar_task(run, variant, name) for run in chosen for variant in CLEAN for name in DEFINITIONS]


def unflagged_task(run: Run, variant: Variant, definition: str) -> Task:
    """One cell without the nodes whose decision never varies."""
    compute = partial(cell_results.unflagged_posterior, definition=definition)
    return Task(run, result_name(variant, definition, "unflagged"), variant, "ours", compute)


def unflagged_tasks(runs: Iterable[Run]) -> list[Task]:
    """All cells without such nodes, for the first seed."""
    return [
        unflagged_task(run, variant, name) for run in _first_seed(runs) for variant in VARIANTS for name in DEFINITIONS
    ]


def deciding_task(run: Run, variant: Variant, definition: str) -> Task:
    """The nodes on which a cell depends most."""
    compute = partial(cell_results.deciding_nodes, definition=definition)
    return Task(run, result_name(variant, definition, "deciding"), variant, "paper", compute)


def figure_tasks(runs: Iterable[Run]) -> list[Task]:
    """What Figures 3 and 4 and the findings about nodes need, for the first seed."""
    first = _first_seed(runs)
    tasks = []
    for run in first:
        for counting in COUNTINGS:
            is_shown = run.configuration in NODES_SHOWN and counting == "paper"
            compute = partial(cell_results.node_summary, keep_nodes=is_shown)
            tasks.append(Task(run, f"nodes/{counting}", NODES_SHOWN_VARIANT, counting, compute))
    return tasks + [
        Task(run, result_name(variant, "bmp", counting), variant, counting, cell_results.joint_posterior)
        for counting in COUNTINGS
        for run in first
        if run.configuration in JOINT
        for variant in CLEAN
    ]


def _first_seed(runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if run.seed == 0]
