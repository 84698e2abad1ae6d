"""What the models of an audit prove, and what models from elsewhere do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Floats
from bmpaudit.attack import Evidence
from bmpaudit.auditing.outside_runs import view_names
from bmpaudit.auditing.pipeline import PRIOR_SECONDS
from bmpaudit.auditing.proof_step import CANDIDATES
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.stored import read_priors, read_runs, stored_subject
from bmpaudit.auditing.variant import queries_of
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph
from bmpaudit.proof import Proof, prove
from bmpaudit.proof.prove import Method
from bmpaudit.reading.archive import read_archive
from bmpaudit.registry import ATTACK, RELEASE
from bmpaudit.samplers import prior_probabilities
from bmpaudit.shadow import ShadowRuns

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
