"""Models that were trained elsewhere: memberships and logits, probabilities or statistics from a file."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from bmpaudit import registry, shadow
from bmpaudit.auditing.pipeline import Pipeline
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.plan_file import format_plan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.stored import OWN_GRAPH
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph
from bmpaudit.reading.archive import read_archive
from bmpaudit.registry import ENTRIES, QUERY, RELEASE
from bmpaudit.shadow import ShadowRuns, TrainedElsewhere

MEMBERSHIPS = "memberships"


def import_runs(
    subject: Subject, workspace: Workspace, path: Path, runtime: Runtime, *, allow_misfit: bool = False
) -> Subject:
    """Puts models that were trained elsewhere into an audit folder; later steps find them there.

    Args:
        subject: The graph, and the sampler that the models are said to have been trained with.
        workspace: The folder.
        path: An archive as `read_runs_file` takes it.
        runtime: Threads and progress.
        allow_misfit: Whether to go on if the memberships do not fit the sampler.

    Returns:
        The subject with the plan that says so.

    Raises:
        DataError: if the file is missing or damaged, or has an unknown view.
        InputError: if shapes or memberships do not fit, or the folder has other shadow models.
    """
    runs = read_runs_file(path, subject.graph)
    imported = Subject(subject.graph, subject.source, outside_plan(subject.plan, runs))
    pipeline = Pipeline(imported, workspace, runtime, may_run=("attack",), allow_misfit=allow_misfit)
    with workspace.locked():
        pipeline.check_fit(runs)  # before anything is stored
        shadow.import_runs(subject.graph, imported.plan.shadow_plan, runs, workspace.path)
        workspace.write_plan(format_plan(imported.plan, subject.source or OWN_GRAPH))
    return imported


def outside_plan(plan: AuditPlan, runs: ShadowRuns) -> AuditPlan:
    """The plan with what is known of the models: how many there are and what they were asked, not their training."""
    views = list(runs.statistics)
    queries = [name for name in ENTRIES[QUERY] if any(view.startswith(f"{name}_") for view in views)]
    releases = [name for name in ENTRIES[RELEASE] if any(view.endswith(f"_{name}") for view in views)]
    missing = [
        f"{query}_{release}" for query, release in product(queries, releases) if f"{query}_{release}" not in views
    ]
    if missing:
        raise InputError(f"every release must be asked with every query: {', '.join(missing)} is missing")
    kept = {registry.label(RELEASE, release): release for release in plan.releases}
    return plan.replace(
        model=TrainedElsewhere(),
        queries=queries,
        releases=[kept.get(name, name) for name in releases],
        shadows=runs.num_models,
    )


def read_runs_file(path: Path, graph: Graph) -> ShadowRuns:
    """An `.npz` archive with `memberships` and, by view, logits, probabilities or label margins.

    Raises:
        DataError: if the file is missing or damaged, or has an unknown view.
        InputError: if shapes do not fit.
    """
    names = view_names()
    arrays = read_archive(path, names, required=(MEMBERSHIPS,), only=True)
    memberships = arrays.pop(MEMBERSHIPS)
    if not arrays:
        raise DataError(f"{path}: no view; at least one of {', '.join(names)} is needed")
    if memberships.ndim == 2 and memberships.shape[1] != graph.num_nodes:
        raise InputError(
            f"{path}: memberships are of {memberships.shape[1]:,} nodes, the graph has {graph.num_nodes:,}"
        )
    try:
        return ShadowRuns.from_arrays(memberships, {name: arrays[name] for name in names if name in arrays}, graph)
    except InputError as wrong:
        raise InputError(f"{path}: {wrong}") from None


def view_names() -> list[str]:
    """The names of all views that built-in queries and releases make."""
    return [f"{query}_{release}" for query in ENTRIES[QUERY] for release in ENTRIES[RELEASE]]
