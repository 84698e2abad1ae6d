"""Releases and queries added to finished models, which are asked again and not trained again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.graph import Graph
from bmpaudit.interfaces import Engine, Progress
from bmpaudit.io.remote_folder import RemoteFolder, folder_at
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.engines.making import closing, make_engine, threads_for
from bmpaudit.shadow.engines.scoring import Question, distinct_questions, questions_of, score_model
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.store import (
    PLAN_FILE,
    Columns,
    ShadowStore,
    array_kinds,
    check_same_plan,
    columns_of,
    difference,
    model_digests,
    read_description,
    weights_name,
    write_description,
)
from bmpaudit.util.errors import InputError
from bmpaudit.util.tables import MODELS_PER_CHUNK
from bmpaudit.util.values import Flags, Floats32, Ints, to_json


@dataclass(frozen=True, eq=False)
class Addition:
    """What a plan asks for beyond what a folder has.

    Attributes:
        there: The plan of the folder.
        asked: The plan with those of its releases of which the folder lacks a view; None if it lacks none.
    """

    there: ShadowPlan
    asked: ShadowPlan | None

    @property
    def words(self) -> str:
        """What is added, by name."""
        there = {view.name for view in self.there.views}
        views = [] if self.asked is None else self.asked.views
        return ", ".join(view.name for view in views if view.name not in there)


def addition_to(folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan) -> Addition | None:
    """What a plan adds to the models of a folder; None if there are none, or none of this plan with fewer views.

    Releases can be added anywhere, queries after those that are there: what a release draws goes on from query to
    query.
    """
    if not (folder / PLAN_FILE).exists():
        return None
    stored: Mapping[str, Any] = read_description(folder)
    wanted = json.loads(to_json(plan.describe(graph)))
    alike = {name: wanted[name] for name in ("releases", "queries")}
    if stored == wanted or difference({**stored, **alike}, wanted) is not None:
        return None
    releases, queries = stored.get("releases"), stored.get("queries")
    if not isinstance(releases, list) or not isinstance(queries, list):
        return None
    if any(each not in wanted["releases"] for each in releases) or wanted["queries"][: len(queries)] != queries:
        return None
    there = replace(
        plan,
        releases=[plan.releases[wanted["releases"].index(each)] for each in releases],
        queries=plan.queries[: len(queries)],
    )
    has_all_queries = len(queries) == len(plan.queries)
    lacking = [
        release
        for release, description in zip(plan.releases, wanted["releases"], strict=True)
        if not has_all_queries or description not in releases
    ]
    return Addition(there, replace(plan, releases=lacking) if lacking else None)


def check_plan(folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan) -> None:
    """Checks that the models of a folder are of a plan, or that what the plan has beyond them can be added.

    Raises:
        InputError: if they are of another plan or graph, or have neither weights nor logits to go by.
        DataError: if the folder does not say.
    """
    addition = addition_to(folder, graph, plan)
    if addition is None:
        check_same_plan(folder, graph, plan)
    elif addition.asked is not None and (folder / "shadows").exists():
        store = ShadowStore(folder, graph, addition.there, read_only=True)
        if store.is_done.any() and not store.num_weights:
            _logits_behind(store, addition)


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
    addition = addition_to(place, graph, plan)
    if addition is None:
        return
    store = ShadowStore(place, graph, addition.there)
    if addition.asked is not None:
        _Adding(store, addition, addition.asked).run(num_threads, progress)
    write_description(place, graph, plan)


class _Adding:
    """The views of a plan that are missing in a store, chunk by chunk."""

    def __init__(self, store: ShadowStore, addition: Addition, asked: ShadowPlan) -> None:
        self.store, self.asked = store, asked
        there = {columns.name for columns in store.columns}
        everything = columns_of(store.graph, asked, keep_logits=store.keep_logits, num_weights=store.num_weights)
        self.missing = [columns for columns in everything if columns.name not in there]
        self.sources: dict[Question, str] = {}
        if store.is_done.any() and not store.num_weights:
            self.sources = _logits_behind(store, addition)

    def run(self, num_threads: int | None, progress: Progress) -> None:
        store = self.store
        kinds = {name: kind for name, kind in array_kinds(self.missing).items() if name not in ("failed", "done")}
        store.arrays.check(kinds, are_all_there=False, with_room=False)
        store.arrays.create(kinds, to_finished=True)
        store.extend(store.num_models)
        done = store.is_done
        if not done.any():
            return
        engine = make_engine(store.graph, self.asked)
        with closing(engine):
            for start in range(0, len(done), MODELS_PER_CHUNK):
                chunk = slice(start, min(start + MODELS_PER_CHUNK, len(done)))
                if done[chunk].any() and not self._is_there(chunk, done[chunk]):
                    self._add(engine, chunk, done[chunk], threads_for(engine, num_threads))
                progress(int(done[: chunk.stop].sum()))

    def _is_there(self, chunk: slice, done: Flags) -> bool:
        """Whether a call that was stopped has added a chunk."""
        indices = chunk.start + np.flatnonzero(done)
        try:
            for columns in self.missing:
                values = {name: np.asarray(self.store.arrays[name][chunk])[done] for name in columns.kinds}
                digests = np.asarray(self.store.arrays[columns.digest][chunk])[done]
                if not np.array_equal(model_digests(indices, values), digests):
                    return False
        except Exception:  # what a stop left half written can raise nearly anything
            return False
        return True

    def _add(self, engine: Engine, chunk: slice, done: Flags, num_threads: int) -> None:
        store = self.store
        failed = np.asarray(store.arrays["failed"][chunk]) & done
        batch = self._batch(chunk, np.flatnonzero(done & ~failed))
        if self.sources:
            self._ask_logits(batch, chunk)
        else:
            engine.fill(batch, num_threads, lambda _: None)
        lost = self._batch(chunk, np.flatnonzero(failed))
        for row in range(len(lost.indices)):
            lost.fail(row)
        for columns in self.missing:
            for each in (batch, lost):
                values = columns.values(each)
                self._put(chunk, columns, each.indices, values, is_first=each is batch)
        # With the new views some models fail that did not before; they are trained again, and found to have failed.
        is_lost = np.zeros(len(done), dtype=bool)
        is_lost[batch.indices[batch.state == ModelState.FAILED] - chunk.start] = True
        if is_lost.any():
            store.arrays.write("done", chunk, done & ~is_lost)

    def _batch(self, chunk: slice, rows: Ints) -> ShadowBatch:
        """Models of a chunk with their samples, and their weights as far as they are kept."""
        store = self.store
        memberships = np.asarray(store.arrays["memberships"][chunk])[rows]
        batch = ShadowBatch.empty(
            store.graph, self.asked, chunk.start + rows, memberships, store.keep_logits, store.num_weights
        )
        if batch.weights is not None:
            for repeat in range(min(self.asked.num_repeats, store.plan.num_repeats)):
                batch.weights[repeat] = np.asarray(store.arrays[weights_name(repeat)][chunk])[rows]
        return batch

    def _ask_logits(self, batch: ShadowBatch, chunk: slice) -> None:
        stored: dict[Question, Floats32] = {
            question: np.asarray(self.store.arrays[f"logits_{view}"][chunk]) for question, view in self.sources.items()
        }
        for row, index in enumerate((batch.indices - chunk.start).tolist()):
            answers = {question: logits[index] for question, logits in stored.items()}
            score_model(self.asked, self.store.graph.labels, batch, row, answers, {})

    def _put(self, chunk: slice, columns: Columns, indices: Ints, values: Mapping[str, Any], *, is_first: bool) -> None:
        arrays = self.store.arrays
        for name, table in {**values, columns.digest: model_digests(indices, values)}.items():
            kept = arrays.blank(name, chunk) if is_first else np.asarray(arrays[name][chunk])
            kept[indices - chunk.start] = table
            arrays.write(name, chunk, kept)


def _logits_behind(store: ShadowStore, addition: Addition) -> dict[Question, str]:
    """For each question of the views to be added, a view whose kept logits answer it.

    Raises:
        InputError: if there is none.
    """
    there = addition.there
    known = {
        questions[0]: view.name
        for view, questions in zip(there.views, questions_of(there), strict=True)
        if len(questions) == 1 and not view.release.changes_outputs
    }
    asked = [] if addition.asked is None else distinct_questions(addition.asked)
    if not store.keep_logits or any(question not in known for question in asked):
        kept = "no weights, and not the logits that it takes" if store.keep_logits else "neither weights nor logits"
        raise InputError(
            f"{store.folder}: {addition.words} cannot be added to its shadow models, of which {kept} were kept; use a "
            "new folder, with --keep-weights if more is to be added later"
        )
    return {question: known[question] for question in asked}
