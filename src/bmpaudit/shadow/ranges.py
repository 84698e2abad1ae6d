"""Training a range of the shadow models beside other processes that train theirs, without a coordinator: job arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bmpaudit.arrays import Flags, Ints
from bmpaudit.checks import thread_count
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Engine, Progress
from bmpaudit.shadow.engines.making import closing, make_engine, threads_for
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.remote_folder import RemoteFolder
from bmpaudit.shadow.store import ShadowStore
from bmpaudit.tables import MODELS_PER_CHUNK


def check_range(start: int, stop: int, num_models: int) -> None:
    """Raises `InputError` unless a range consists of whole chunks of the store, of which the last may be cut off."""
    if not 0 <= start < stop or start >= num_models:
        raise InputError(f"range must be START:STOP with 0 ≤ START < STOP, START < {num_models}, got {start}:{stop}")
    if start % MODELS_PER_CHUNK or (stop % MODELS_PER_CHUNK and stop < num_models):
        first, last = start // MODELS_PER_CHUNK * MODELS_PER_CHUNK, -(-stop // MODELS_PER_CHUNK) * MODELS_PER_CHUNK
        raise InputError(
            f"range must start and end at a multiple of {MODELS_PER_CHUNK}, models that are stored together, got "
            f"{start}:{stop}; {first}:{last} does"
        )


def train_range(
    graph: Graph,
    plan: ShadowPlan,
    num_models: int,
    folder: str | Path | RemoteFolder,
    start: int,
    stop: int,
    *,
    num_threads: int | None = None,
    keep_logits: bool = False,
    keep_weights: bool = False,
    progress: Progress = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
) -> Flags:
    """Trains models start, …, stop - 1 of a plan into a folder to which other processes may be writing, too.

    Only whole chunks are written, so that ranges can overlap: whoever comes second writes what is there. A kill costs
    the chunk in work. Whoever calls this holds `files.shared_folder_lock`, which has seen to it that the folder has
    room.

    Args:
        graph: The whole graph.
        plan: What to train.
        num_models: J, of all ranges.
        folder: Of a `ShadowStore` with room for J models.
        start: The first model.
        stop: After the last model; what is beyond J is left out.
        num_threads: See `train_shadows`.
        keep_logits: See `train_shadows`.
        keep_weights: See `train_shadows`.
        progress: Called with the number of models of the range that are done.
        report: Called with a message for damage that was found.

    Returns:
        Which of the J models are there, shape (J,).

    Raises:
        InputError: if the range does not consist of whole chunks, or the folder has no room for it.
    """
    check_range(start, stop, num_models)
    store = ShadowStore(folder, graph, plan, keep_logits, joins=True)
    stop = min(stop, num_models)
    if store.num_models < num_models:
        raise InputError(
            f"{folder} has room for {store.num_models:,} models, and other processes are training them: "
            f"{num_models:,} can be trained when they have ended"
        )
    if store.keep_logits and not any(name.startswith("logits_") for name in store.arrays.names):
        raise InputError(f"{folder} holds shadow models without logits; use a new folder to keep them")
    if keep_weights and not store.num_weights:
        raise InputError(f"{folder} holds shadow models without weights; use a new folder to keep them")
    engine: Engine | None = None
    num_done = 0
    with ExitStack() as stack:
        for first in range(start, stop, MODELS_PER_CHUNK):
            chunk = slice(first, min(first + MODELS_PER_CHUNK, store.num_models))
            size = chunk.stop - chunk.start
            todo = _missing(store, chunk, num_threads, report)
            if len(todo):
                if engine is None:
                    engine = make_engine(graph, plan)
                    stack.enter_context(closing(engine))
                batch = store.new_batch(todo, thread_count(num_threads))
                before = num_done + size - len(todo)
                engine.fill(batch, threads_for(engine, num_threads), lambda k, before=before: progress(before + k))  # type: ignore[misc]
                store.write_data(batch, with_others=len(todo) < size)
                store.vouch(todo)
            num_done += size
            progress(num_done)
    return store.is_done[:num_models]


def _missing(store: ShadowStore, chunk: slice, num_threads: int | None, report: Callable[[str], None]) -> Ints:
    """Models of a chunk that are to be trained: those that are not there, or all if anything is damaged."""
    everything = np.arange(chunk.start, chunk.stop)
    problem = store.problem(chunk, num_threads)
    if problem is not None:
        report(f"models {chunk.start} to {chunk.stop - 1}: {problem}; they are trained again")
        return everything
    return everything[~np.asarray(store.arrays["done"][chunk])]
