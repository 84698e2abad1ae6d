"""Models that were trained elsewhere: memberships with logits, probabilities or statistics from a file, and proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from bmpaudit import registry, shadow
from bmpaudit.attack import Evidence
from bmpaudit.auditing.context import Runtime, Subject, queries_of
from bmpaudit.auditing.finished import OWN_GRAPH, read_priors, read_runs, stored_subject
from bmpaudit.auditing.stages import CANDIDATES
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.graph import Graph
from bmpaudit.io.readers import read_archive
from bmpaudit.models import TrainedElsewhere
from bmpaudit.pipeline.pipeline import PRIOR_SECONDS, Pipeline
from bmpaudit.plan import AuditPlan, format_plan
from bmpaudit.proof import Proof, prove
from bmpaudit.proof.prove import Method
from bmpaudit.registry import ATTACK, ENTRIES, QUERY, RELEASE
from bmpaudit.samplers import prior_probabilities
from bmpaudit.shadow import ShadowRuns
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.values import Floats

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


# What the models of an audit prove, and what models from elsewhere do.


ALWAYS, SOMETIMES = ("memberships", "prior_prob"), ("labels", "edges")  # besides views


@dataclass(frozen=True)
class ProofSettings:
    """How to prove.

    Attributes:
        attacks: Attacks to choose from on the fitting models.
        release: Label of the release; the first one if empty.
        level: Confidence of each bound.
        method: One guess per model with a fixed split, or the prequential form, which holds at any time; the plan's if
            None, and one-guess where there is no plan.
        num_fitting: Number of models to fit on; chosen by their number if None.
    """

    attacks: Sequence[str] = CANDIDATES
    release: str = ""
    level: float = 0.95
    method: Method | None = None
    num_fitting: int | None = None


def prove_folder(
    folder: str | Path, settings: ProofSettings, runtime: Runtime | None = None, *, trust_code: bool = False
) -> Proof:
    """What the shadow models of an audit folder prove; nothing is written.

    Raises:
        DataError: if it has no shadow models.
        InputError: if they are too few, or have no such release.
    """
    workspace, runtime = Workspace(folder), runtime or Runtime()
    subject = stored_subject(workspace, trust_code=trust_code)
    plan, graph = subject.plan, subject.graph
    runs = read_runs(workspace, graph, plan)
    if workspace.has("priors"):
        priors = read_priors(workspace, plan.sampler)
    else:
        with runtime.progress("priors", plan.prior_draws) as progress:
            priors = prior_probabilities(
                graph,
                plan.sampler,
                num_draws=plan.prior_draws,
                seed=plan.seed,
                seconds=PRIOR_SECONDS,
                progress=progress,
                num_threads=runtime.num_threads,
            )
    queries = list(queries_of(plan))
    releases = [registry.label(RELEASE, release) for release in plan.releases]
    return _prove(runs, graph, queries, releases, priors.prob, priors.num_draws, settings, runtime, plan.proof_method)


def prove_file(path: Path, settings: ProofSettings, runtime: Runtime | None = None) -> Proof:
    """What models from a file prove, without a folder and without a graph.

    Args:
        path: `.npz` archive with `memberships` (J, N), `prior_prob` (N,), and one or more views by name, such as
            `full_clean`: label margins (J, N), or logits (J, N, C) together with `labels` (N,); optionally `edges`
            (E, 2), with which an attack can use the neighbours' answers.
        settings: How to prove.
        runtime: Threads and progress.

    Raises:
        DataError: if the file is missing or damaged, or lacks an array.
        InputError: if shapes do not fit, or there are too few models.
    """
    known = view_names()
    arrays = read_archive(path, (*known, *SOMETIMES), required=ALWAYS, only=True)
    views = {name: values for name, values in arrays.items() if name in known}
    if not views:
        raise DataError(f"{path}: no view; at least one of {', '.join(known)} is needed")
    memberships = arrays["memberships"]
    num_nodes = memberships.shape[-1] if memberships.ndim else 0
    if "labels" not in arrays and any(values.ndim == 3 for values in views.values()):
        raise DataError(f"{path}: labels is missing: logits need them")
    try:
        labels = arrays.get("labels", np.zeros(num_nodes, dtype=np.int64))
        runs = ShadowRuns.from_arrays(memberships, views, labels)
        graph = Graph.from_edges(arrays["edges"], np.ones((num_nodes, 1)), labels) if "edges" in arrays else None
        queries = list(dict.fromkeys(name.partition("_")[0] for name in views))
        releases = list(dict.fromkeys(name.partition("_")[2] for name in views))
        return _prove(runs, graph, queries, releases, arrays["prior_prob"], 0, settings, runtime or Runtime())
    except InputError as wrong:
        raise InputError(f"{path}: {wrong}") from None


def _prove(
    runs: ShadowRuns,
    graph: Graph | None,
    queries: list[str],
    releases: list[str],
    prior_prob: Floats,
    prior_draws: int,
    settings: ProofSettings,
    runtime: Runtime,
    method: Method = "one-guess",
) -> Proof:
    release = settings.release or releases[0]
    if release not in releases:
        raise InputError(f"release must be one of {', '.join(releases)}, got {release!r}")
    asked = [query for query in queries if f"{query}_{release}" in runs.statistics]
    models = Evidence.of_runs(runs, release, asked, graph)
    with runtime.progress("proof", models.num_nodes) as progress:
        return prove(
            [registry.build(ATTACK, name) for name in settings.attacks],
            models,
            prior_prob,
            prior_draws=prior_draws,
            level=settings.level,
            method=settings.method or method,
            num_fitting=settings.num_fitting,
            num_threads=runtime.num_threads,
            progress=progress,
        )
