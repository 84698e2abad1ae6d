"""Releases and queries added to finished models, which are asked again and not trained again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from bmpaudit.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.io.remote_folder import RemoteFolder, folder_at
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.engines.making import closing, make_engine, threads_for
from bmpaudit.shadow.engines.scoring import Question, distinct_questions, questions_of, score_model
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.store import (
    PLAN_FILE,
    Sealed,
    ShadowStore,
    array_kinds,
    check_same_plan,
    difference,
    first_damaged,
    read_description,
    sealed_arrays,
    weights_name,
    write_description,
)
from bmpaudit.util.errors import InputError
from bmpaudit.util.matrices import MODELS_PER_CHUNK
from bmpaudit.util.values import Flags, Ints, to_json


def check_plan(folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan) -> None:
    """Checks that the models of a folder are of a plan, or that what the plan has beyond them can be added.

    Raises:
        InputError: if they are of another plan or graph, or have neither weights nor logits to go by.
        DataError: if the folder does not say.
    """
    there = _plan_there(folder, graph, plan)
    if there is None:
        check_same_plan(folder, graph, plan)
    elif (folder / "shadows").exists():
        _sources(ShadowStore(folder, graph, there, read_only=True), _lacking(plan, there))


def add_views(
    folder: str | Path | RemoteFolder, graph: Graph, plan: ShadowPlan, num_threads: int | None, progress: Progress
) -> None:
    """Adds the views of a plan that the models of a folder do not have, if they are of the plan but for that.

    Each model is asked with its kept weights; a release that only changes outputs can also be computed from kept
    logits. The folder is then the same, byte for byte, as if it had been made with the plan. It is recognised as the
    plan's once everything is there; after a stop, the next call resumes.

    Raises:
        InputError: if neither weights nor the logits that it takes were kept.
    """
    place = folder_at(folder)
    there = _plan_there(place, graph, plan)
    if there is not None:
        store, lacking = ShadowStore(place, graph, there), _lacking(plan, there)
        if lacking is not None:
            _add(store, lacking, num_threads, progress)
        write_description(place, graph, plan)


def _plan_there(folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan) -> ShadowPlan | None:
    """The plan of the models of a folder, if a plan only adds to it; None if there are none, or no such models.

    Releases can be added anywhere, queries after those that are there: what a release draws goes on from query to
    query.
    """
    if not (folder / PLAN_FILE).exists():
        return None
    stored = read_description(folder)
    wanted = json.loads(to_json(plan.describe(graph)))
    alike = {name: wanted[name] for name in ("releases", "queries")}
    if stored == wanted or difference({**stored, **alike}, wanted) is not None:
        return None
    releases, queries = stored.get("releases"), stored.get("queries")
    if not isinstance(releases, list) or not isinstance(queries, list):
        return None
    if any(each not in wanted["releases"] for each in releases) or wanted["queries"][: len(queries)] != queries:
        return None
    return replace(
        plan,
        releases=[plan.releases[wanted["releases"].index(each)] for each in releases],
        queries=plan.queries[: len(queries)],
    )


def _lacking(plan: ShadowPlan, there: ShadowPlan) -> ShadowPlan | None:
    """A plan with those of its releases of which another lacks a view; None if it lacks none."""
    has_all_queries = len(there.queries) == len(plan.queries)
    releases = [each for each in plan.releases if not has_all_queries or each not in there.releases]
    return replace(plan, releases=releases) if releases else None


def _add(store: ShadowStore, asked: ShadowPlan, num_threads: int | None, progress: Progress) -> None:
    """Adds the views of a plan that are missing in a store, chunk by chunk."""
    done, sources = store.is_done, _sources(store, asked)
    sealed = sealed_arrays(store.graph, asked, keep_logits=store.keep_logits, num_weights=store.num_weights)
    missing = {digest: kinds for digest, kinds in sealed.items() if digest not in store.sealed}
    kinds = {name: kind for name, kind in array_kinds(missing).items() if name not in ("failed", "done")}
    store.arrays.check(kinds, are_all_there=False, with_room=False)
    store.arrays.create(kinds, to_finished=True)
    store.extend(store.num_models)
    if not done.any():
        return
    engine = make_engine(store.graph, asked)
    with closing(engine):
        for start in range(0, len(done), MODELS_PER_CHUNK):
            chunk = store.chunk_of(start)
            is_done = done[chunk]
            if is_done.any() and not _is_there(store, missing, chunk, is_done):
                failed = np.asarray(store.arrays["failed"][chunk]) & is_done
                batch = _batch(store, asked, chunk, np.flatnonzero(is_done & ~failed))
                if sources:
                    _ask_logits(store, asked, batch, chunk, sources)
                else:
                    engine.fill(batch, threads_for(engine, num_threads), lambda _: None)
                lost = _batch(store, asked, chunk, np.flatnonzero(failed))
                for row in range(len(lost.indices)):
                    lost.fail(row)
                store.put(missing, ShadowBatch.joined([batch, lost]), is_new=True)
                # With the new views some models fail that did not before; they are trained again, and found to have
                # failed.
                newly = batch.indices[batch.state == ModelState.FAILED]
                if len(newly):
                    store.arrays.write("done", chunk, is_done & ~np.isin(np.arange(chunk.start, chunk.stop), newly))
            progress(int(done[: chunk.stop].sum()))


def _is_there(store: ShadowStore, missing: Sealed, chunk: slice, done: Flags) -> bool:
    """Whether a call that was stopped has added a chunk."""
    names = [name for digest, kinds in missing.items() for name in (digest, *kinds)]
    try:
        values = {name: np.asarray(store.arrays[name][chunk])[done] for name in names}
    except Exception:  # what a stop left half written can raise nearly anything
        return False
    return first_damaged(missing, chunk.start + np.flatnonzero(done), values) is None


def _batch(store: ShadowStore, asked: ShadowPlan, chunk: slice, rows: Ints) -> ShadowBatch:
    """Models of a chunk with their samples, and their weights as far as they are kept."""
    memberships = np.asarray(store.arrays["memberships"][chunk])[rows]
    indices, keep_logits = chunk.start + rows, store.keep_logits
    batch = ShadowBatch.empty(store.graph, asked, indices, memberships, keep_logits, store.num_weights)
    if batch.weights is not None:
        for repeat in range(min(asked.num_repeats, store.plan.num_repeats)):
            batch.weights[repeat] = np.asarray(store.arrays[weights_name(repeat)][chunk])[rows]
    return batch


def _ask_logits(
    store: ShadowStore, asked: ShadowPlan, batch: ShadowBatch, chunk: slice, sources: Mapping[Question, str]
) -> None:
    stored = {question: np.asarray(store.arrays[f"logits_{view}"][chunk]) for question, view in sources.items()}
    for row, index in enumerate((batch.indices - chunk.start).tolist()):
        answers = {question: logits[index] for question, logits in stored.items()}
        score_model(asked, store.graph.labels, batch, row, answers, {})


def _sources(store: ShadowStore, asked: ShadowPlan | None) -> dict[Question, str]:
    """For each question of a plan, a view whose kept logits answer it; nothing where weights answer it.

    Raises:
        InputError: if there is neither.
    """
    if asked is None or store.num_weights or not store.is_done.any():
        return {}
    there = store.plan
    known = {
        questions[0]: view.name
        for view, questions in zip(there.views, questions_of(there), strict=True)
        if len(questions) == 1 and not view.release.changes_outputs
    }
    questions = distinct_questions(asked)
    if not store.keep_logits or any(question not in known for question in questions):
        kept = "no weights, and not the logits that it takes" if store.keep_logits else "neither weights nor logits"
        added = ", ".join(view.name for view in asked.views if view not in there.views)
        raise InputError(
            f"{store.folder}: {added} cannot be added to its shadow models, of which {kept} were kept; use a "
            "new folder, with --keep-weights if more is to be added later"
        )
    return {question: known[question] for question in questions}
