"""Models that were trained elsewhere: memberships with logits, probabilities or statistics from a file, and proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from bmpaudit import registry, shadow
from bmpaudit.attack import Evidence
from bmpaudit.attack.evidence import check_samples
from bmpaudit.auditing import Runtime, Subject, Workspace, context, finished, stages
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Attack
from bmpaudit.io.readers import read_archive
from bmpaudit.models import TrainedElsewhere
from bmpaudit.pipeline.pipeline import Pipeline, stored_models
from bmpaudit.plan import AuditPlan, format_plan
from bmpaudit.proof import Proof, prove
from bmpaudit.proof.prove import Method
from bmpaudit.registry import ATTACK, ENTRIES, QUERY, RELEASE
from bmpaudit.releases import SCORES
from bmpaudit.shadow import ShadowRuns
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.values import Floats

MEMBERSHIPS = "memberships"


def import_runs(
    subject: Subject, workspace: Workspace, path: Path, runtime: Runtime, *, allow_misfit: bool = False
) -> Subject:
    """Puts models that were trained elsewhere, from an archive as `read_runs_file` takes it, into an audit folder.

    Memberships that do not fit the sampler of the subject are refused unless `allow_misfit`. Later steps find the
    models there; the subject that is returned has the plan that says so.
    """
    runs = read_runs_file(path, subject.graph)
    imported = Subject(subject.graph, subject.source, outside_plan(subject.plan, runs))
    pipeline = Pipeline(imported, workspace, runtime, may_run=("attack",), allow_misfit=allow_misfit)
    with workspace.locked():
        pipeline.check_fit(runs)  # before anything is stored
        shadow.import_runs(subject.graph, imported.plan.shadow_plan, runs, workspace.path)
        workspace.write_plan(format_plan(imported.plan, subject.source or finished.OWN_GRAPH))
    return imported


def outside_plan(plan: AuditPlan, runs: ShadowRuns) -> AuditPlan:
    """The plan with what is known of the models: how many there are and what they were asked, not their training."""
    views = list(runs.statistics)
    queries = [name for name in ENTRIES[QUERY] if any(view.startswith(f"{name}_") for view in views)]
    releases = [name for name in ENTRIES[RELEASE] if any(view.endswith(f"_{name}") for view in views)]
    missing = [view for view in map("_".join, product(queries, releases)) if view not in views]
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
    """An `.npz` archive with `memberships` and, by view, logits, probabilities or label margins."""
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


@dataclass(frozen=True)
class ProofSettings:
    """How to prove."""

    attacks: Sequence[str] = ()  # attacks to choose from on the fitting models; those of an audit if empty
    release: str = ""  # label of the release; the first one if empty
    access: str | None = None  # what the adversary sees of it; as an audit has it if None, else scores
    level: float = 0.95  # confidence of each bound
    # One guess per model with a fixed split, or the prequential form, which holds at any time; the plan's if None, and
    # one-guess where there is no plan.
    method: Method | None = None
    num_fitting: int | None = None  # number of models to fit on; chosen by their number if None


def prove_folder(
    folder: str | Path, settings: ProofSettings, runtime: Runtime | None = None, *, trust_code: bool = False
) -> Proof:
    """What the shadow models of an audit folder prove; nothing is written."""
    runtime = runtime or Runtime()
    subject, runs, priors = stored_models(Workspace(folder), runtime, trust_code=trust_code)
    plan = subject.plan
    release = _chosen("release", settings.release, [registry.label(RELEASE, release) for release in plan.releases])
    ladder = context.accesses_of(plan, release)
    access = _chosen("access", settings.access or ladder[-1], ladder)
    attacks = list(map(_attack, settings.attacks)) or stages.proof_attacks(plan, release, access=access)
    models = Evidence.of_runs(runs, release, context.queries_of(plan), subject.graph, access)
    method = settings.method or plan.proof_method
    return _prove(models, attacks, priors.prob, priors.num_draws, settings, runtime, method)


def prove_file(
    path: Path, settings: ProofSettings, runtime: Runtime | None = None, *, allow_misfit: bool = False
) -> Proof:
    """What models from a file prove, without a folder and without a graph, even if they share samples (`allow_misfit`).

    The `.npz` archive has `memberships` (J, N), `prior_prob` (N,), and one or more views by name, such as `full_clean`:
    label margins (J, N), or logits (J, N, C) together with `labels` (N,); optionally `edges` (E, 2), with which an
    attack can use the neighbours' answers, and `prior_draws`, if each prior is a frequency over that many draws.
    """
    known = view_names()
    required, optional = (MEMBERSHIPS, "prior_prob"), ("labels", "edges", "prior_draws")
    arrays = read_archive(path, (*known, *optional), required=required, only=True)
    views = {name: values for name, values in arrays.items() if name in known}
    if not views:
        raise DataError(f"{path}: no view; at least one of {', '.join(known)} is needed")
    memberships = arrays[MEMBERSHIPS]
    num_nodes = memberships.shape[-1] if memberships.ndim else 0
    if "labels" not in arrays and any(values.ndim == 3 for values in views.values()):
        raise DataError(f"{path}: labels is missing: logits need them")
    try:
        labels = arrays.get("labels", np.zeros(num_nodes, dtype=np.int64))
        runs = ShadowRuns.from_arrays(memberships, views, labels)
        draws = arrays.get("prior_draws", np.zeros((), dtype=np.int64))
        if draws.shape != () or draws.dtype.kind not in "iu":
            raise InputError(f"prior_draws must be one whole number, got {draws.dtype} of shape {draws.shape}")
        graph = Graph.from_edges(arrays["edges"], np.ones((num_nodes, 1)), labels) if "edges" in arrays else None
        queries, releases = (list(dict.fromkeys(name.partition("_")[part] for name in views)) for part in (0, 2))
        release, _ = _chosen("release", settings.release, releases), _chosen("access", settings.access or "", [SCORES])
        try:
            check_samples(runs)
        except InputError as shared:
            if not allow_misfit:
                raise InputError(f"{shared}; --allow-misfit proves all the same") from None
        asked = [query for query in queries if f"{query}_{release}" in views]
        models = Evidence.of_runs(replace(runs, are_independent=True), release, asked, graph)
        attacks = list(map(_attack, settings.attacks or stages.PROOF_ATTACKS))
        method = settings.method or "one-guess"
        return _prove(models, attacks, arrays["prior_prob"], int(draws), settings, runtime or Runtime(), method)
    except InputError as wrong:
        raise InputError(f"{path}: {wrong}") from None


def _chosen(name: str, wanted: str, possible: Sequence[str]) -> str:
    """What is wanted of what there is, the first if nothing is."""
    if wanted and wanted not in possible:
        raise InputError(f"{name} must be one of {', '.join(possible)}, got {wanted!r}")
    return wanted or possible[0]


def _attack(name: str) -> Attack:
    attack: Attack = registry.build(ATTACK, name)
    return attack


def _prove(
    models: Evidence,
    attacks: Sequence[Attack],
    prior_prob: Floats,
    prior_draws: int,
    settings: ProofSettings,
    runtime: Runtime,
    method: Method,
) -> Proof:
    with runtime.progress("proof", models.num_nodes) as progress:
        return prove(
            attacks,
            models,
            prior_prob,
            prior_draws=prior_draws,
            level=settings.level,
            method=method,
            num_fitting=settings.num_fitting,
            num_threads=runtime.num_threads,
            progress=progress,
        )
