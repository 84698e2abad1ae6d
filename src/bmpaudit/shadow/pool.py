"""Training shadow models into a folder, and resuming after a stop."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path

import numpy as np

from bmpaudit.arrays import Flags, Ints
from bmpaudit.checks import check_at_least_one, thread_count
from bmpaudit.errors import InputError
from bmpaudit.files import folder_lock, naming
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow.adding import add_views
from bmpaudit.shadow.coordinator import train_on
from bmpaudit.shadow.engines.making import closing, make_engine, num_weights, threads_for
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.remote_folder import RemoteFolder
from bmpaudit.shadow.runs import ShadowRuns
from bmpaudit.shadow.store import ShadowStore
from bmpaudit.shadow.writer import Writer
from bmpaudit.tables import MODELS_PER_CHUNK

SECONDS_BETWEEN_WRITES = 5.0  # what a kill can cost at most, but for the models in work


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)


def train_shadows(
    graph: Graph,
    plan: ShadowPlan,
    num_models: int,
    folder: str | Path,
    *,
    num_threads: int | None = None,
    keep_logits: bool = False,
    keep_weights: bool = False,
    executor: Executor | None = None,
    store_at: str | Path | RemoteFolder | None = None,
    progress: Progress = lambda _: None,
    report: Callable[[str], None] = _warn,
) -> ShadowRuns:
    """Makes sure that a folder holds the first `num_models` shadow models of a plan, and returns them.

    Models already there are kept, also those beyond `num_models`; damaged ones are reported and trained again. A stop
    (Ctrl-C, kill -9, a full disk) loses at most the models of the last few seconds, and the next call resumes; the
    result is the same as without the stop.

    Args:
        graph: The whole graph.
        plan: What to train; a folder made for another plan or graph is refused. Releases and queries can be added if
            weights were kept (see `add_views`).
        num_models: J; may be raised later.
        folder: Where to keep them (see `ShadowStore`); its lock is held meanwhile.
        num_threads: Number of threads, with the torch engine of processes; if not given all cores.
        keep_logits: Whether to keep what each view gives out beside the statistics.
        keep_weights: Whether to keep the weights of the models: releases and queries can then be added without training
            anything.
        executor: Workers that train the models, on one thread each: any `concurrent.futures.Executor`; this process if
            not given.
        store_at: An address that fsspec knows, such as `s3://bucket/audit`, for the models themselves; the folder if
            not given.
        progress: Called with the number of models done so far.
        report: Called with a message for damage that was found, or for workers of another build; a warning if not
            given.

    Raises:
        InputError: if the plan cannot be carried out, or the folder is of another plan or in use.
        OSError: if workers, or the store, are lost.
    """
    check_at_least_one(num_models=num_models)
    drawing_threads = thread_count(num_threads)
    if plan.is_trained_elsewhere:
        raise InputError("these models were trained elsewhere; bmpaudit cannot train more of them")
    plan.check_trusted()
    draw_memberships(graph, plan.sampler, 1, plan.seed, num_threads=1)  # what cannot be sampled leaves no folder behind
    with folder_lock(Path(folder)), naming(Path(folder) / "shadows"):
        add_views(store_at or folder, graph, plan, num_threads, progress)
        store = ShadowStore(
            store_at or folder, graph, plan, keep_logits, num_weights(graph, plan) if keep_weights else 0
        )
        store.extend(num_models)
        store.discard_damaged(report, drawing_threads)
        done = store.is_done[:num_models]
        num_done = int(done.sum())
        progress(num_done)
        if num_done < num_models and executor is not None:
            train_on(executor, store, done, progress=progress, report=report)
        elif num_done < num_models:
            engine = make_engine(graph, plan)
            threads = threads_for(engine, num_threads)
            with Writer() as writer, closing(engine):
                for todo in _pieces(done, threads):
                    batch = store.new_batch(todo, drawing_threads)
                    try:
                        engine.fill(batch, threads, lambda k, before=num_done: progress(before + k))  # type: ignore[misc]
                    finally:
                        writer.submit(store.write, batch)
                    num_done += len(todo)
                    progress(num_done)
        return store.read(num_models)


def _pieces(done: Flags, threads: int) -> Iterator[Ints]:
    """Models to train together and write at once: within one chunk of the store, and of a few seconds' work."""
    size, start_of_run, trained = 2 * threads, time.monotonic(), 0
    for start in range(0, len(done), MODELS_PER_CHUNK):
        todo = np.flatnonzero(~done[start : start + MODELS_PER_CHUNK]) + start
        while len(todo):
            yield todo[:size]
            trained += len(todo[:size])
            todo = todo[size:]
            a_second = trained / max(time.monotonic() - start_of_run, 1e-9)
            size = int(np.clip(SECONDS_BETWEEN_WRITES * a_second, threads, MODELS_PER_CHUNK))
            size -= size % threads if size > threads else 0  # no thread is idle while others train the last model
