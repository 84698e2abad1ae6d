"""Training shadow models: in this process, on workers, or a range of them beside other processes."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from bmpaudit.graph import Graph
from bmpaudit.interfaces import Engine, Progress
from bmpaudit.io.remote_folder import RemoteFolder, folder_at
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow.adding import add_views
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.engines.making import closing, make_engine, num_weights, threads_for
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import ShadowRuns
from bmpaudit.shadow.store import ShadowStore, Writer
from bmpaudit.util.build import Build, this_build
from bmpaudit.util.errors import InputError, check_at_least_one, thread_count
from bmpaudit.util.files import folder_lock, naming
from bmpaudit.util.matrices import MODELS_PER_CHUNK, FlagMatrix, FloatMatrix, model_blocks, take_rows
from bmpaudit.util.values import Flags, Ints
from bmpaudit.workers import crew_of, marked

SECONDS_PER_PIECE = 60.0
SECONDS_PER_CHUNK = 600.0
"""After this time a worker sends back what it has, the longer one if it can write the chunk itself once it is whole:
the loss of a worker costs hardly more, and the coordinator has little to write."""

SECONDS_AT_ONCE = 15.0
"""Between two looks at the clock. Engines set up their memory anew for each call, which can take as long as a third of
a model, so there is one call for a piece wherever models are that quick."""

_making = threading.Lock()
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, eq=False)
class Job:
    """What all pieces have in common; sent to each worker once.

    Attributes:
        graph: The whole graph.
        plan: What to train.
        keep_logits: Whether to keep what each view gives out.
        num_weights: How many weights of each model to keep.
        folder: Path or address of the store.
        mark: Name of a file that is in the store for as long as the coordinator is at work; who sees it shares the
            store.
    """

    graph: Graph
    plan: ShadowPlan
    keep_logits: bool
    num_weights: int
    folder: str
    mark: str

    @cached_property
    def engine(self) -> Engine:
        """The worker's engine."""
        return make_engine(self.graph, self.plan)

    @cached_property
    def store(self) -> ShadowStore:
        """The coordinator's store, to write to."""
        return ShadowStore(self.folder, self.graph, self.plan, joins=True)

    @cached_property
    def seconds(self) -> list[float]:
        """What models have taken in this process, as far as the last ones tell."""
        return []

    @property
    def shares_store(self) -> bool:
        """Whether this process sees the coordinator's store, and the coordinator is still at work."""
        try:
            return (folder_at(self.folder) / self.mark).exists()
        except OSError:
            return False


@dataclass(frozen=True, eq=False)
class Piece:
    """Models of one chunk of the store.

    Attributes:
        indices: Numbers of the models, ascending.
        completes_chunk: Whether all other models of the chunk are in the store, and nobody else trains any. Only then
            may a worker write: whatever a worker writes is a whole chunk, so that one which was given up for lost, and
            writes all the same, changes nothing.
    """

    indices: Ints
    completes_chunk: bool


@dataclass(frozen=True, eq=False)
class Trained:
    """What a worker answers.

    Attributes:
        indices: Models that are finished.
        batch: These models; None if they are in the store, where only the coordinator vouches for them.
        build: The worker's build.
        worker: Its machine and process.
    """

    indices: Ints
    batch: ShadowBatch | None
    build: Build
    worker: str


def train_piece(job: Job, piece: Piece) -> Trained:
    """Trains the models of a piece on one thread, or as many of them as there is time for."""
    with _making:
        engine = job.engine
    seconds = SECONDS_PER_CHUNK if piece.completes_chunk and job.shares_store else SECONDS_PER_PIECE
    with nullcontext() if getattr(engine, "is_thread_safe", False) else _one_at_a_time:
        batch = _train(job, engine, piece.indices, seconds)
    is_whole = piece.completes_chunk and len(batch.indices) == len(piece.indices)
    is_written = is_whole and job.shares_store
    if is_written:
        job.store.write_data(batch)
    return Trained(
        indices=batch.indices,
        batch=None if is_written else batch,
        build=worker_build(job.plan),
        worker=f"{socket.gethostname()}:{os.getpid()}",
    )


def worker_build(plan: ShadowPlan) -> Build:
    """The build of this process, as far as it matters to a plan's models."""
    return this_build(plan.engine_name)


def _train(job: Job, engine: Engine, indices: Ints, most_seconds: float) -> ShadowBatch:
    parts: list[ShadowBatch] = []
    start, done = time.monotonic(), 0
    while done < len(indices) and (not parts or time.monotonic() - start <= most_seconds):
        size = max(1, int(SECONDS_AT_ONCE / max(job.seconds[-1], 1e-9))) if job.seconds else 1
        some = indices[done : done + size]
        batch = ShadowBatch.drawn(job.graph, job.plan, some, job.keep_logits, job.num_weights, num_threads=1)
        before = time.monotonic()
        engine.fill(batch, 1, lambda _: None)
        job.seconds.append((time.monotonic() - before) / len(some))
        parts.append(batch)
        done += len(some)
    return parts[0] if len(parts) == 1 else ShadowBatch.joined(parts)


# Training on the workers of an executor.


PIECES_PER_WORKER = 4
"""At least, so that no worker is idle for long while others train their last piece."""

MOST_BYTES = 2**31  # of the results of one piece


def train_on(
    executor: Executor, store: ShadowStore, done: Flags, *, progress: Progress, report: Callable[[str], None]
) -> None:
    """Trains the models that are missing on the workers of an executor, each piece on one thread.

    A worker that finishes a whole chunk writes it straight to the store, if it shares it, and this process vouches for
    it; other models are sent back and written here. So only one process ever writes `done`, and the order of writes is
    that of one machine.

    Args:
        executor: Any executor; it is not shut down.
        store: Where the models go, with room for them.
        done: Which models are there, shape (J,).
        progress: Called with the number of models done.
        report: Called with a message about workers of another build.

    Raises:
        OSError: if workers, or the connection to them, are lost.
    """
    crew = crew_of(executor)
    num_done = int(done.sum())
    with marked(store.folder) as mark, Writer() as writer:
        folder = store.folder if isinstance(store.folder, RemoteFolder) else store.folder.resolve()
        job = Job(store.graph, store.plan, store.keep_logits, store.num_weights, str(folder), mark)
        pieces = _pieces_for_workers(store, done, crew.width)
        for piece, trained in crew.run(train_piece, job, pieces):
            _check_build(store, trained, report)
            if trained.batch is None:
                writer.submit(store.vouch, trained.indices)
            else:
                writer.submit(store.write, trained.batch)
                left = np.setdiff1d(piece.indices, trained.indices)
                if len(left):
                    pieces.appendleft(Piece(left, completes_chunk=False))
            num_done += len(trained.indices)
            progress(num_done)


def _pieces_for_workers(store: ShadowStore, done: Flags, width: int) -> deque[Piece]:
    """Whole chunks, or parts of them where chunks are too few for the workers or too large for their memory."""
    chunks = []
    for start in range(0, len(done), MODELS_PER_CHUNK):
        todo = np.flatnonzero(~done[start : start + MODELS_PER_CHUNK]) + start
        if len(todo):
            chunks.append(todo)
    wanted = PIECES_PER_WORKER * width
    size = MODELS_PER_CHUNK
    if len(chunks) < wanted:
        size = -(-sum(map(len, chunks)) // wanted)
    numbers = store.graph.num_nodes * len(store.plan.views) * (1 + store.graph.num_classes * store.keep_logits)
    numbers += store.plan.num_repeats * store.num_weights
    size = min(size, max(1, MOST_BYTES // (4 * numbers)))
    pieces: deque[Piece] = deque()
    for todo in chunks:
        parts = np.array_split(todo, -(-len(todo) // size))
        pieces.extend(Piece(part, completes_chunk=len(parts) == 1) for part in parts)
    return pieces


def _check_build(store: ShadowStore, trained: Trained, report: Callable[[str], None]) -> None:
    """Says so, and writes it down with the models, if a worker's statistics may differ in their last digits."""
    ours = this_build(store.plan.engine_name)
    if trained.build != ours:
        note = (
            f"Some models were trained by workers of another build ({ours.differences(trained.build)}): their samples "
            "are the same, their statistics agree to the rounding of single precision."
        )
        if note not in store.arrays.notes:
            store.arrays.add_note(note)
            report(f"{note} The first one was {trained.worker}.")


# Training a range of the shadow models beside other processes that train theirs, without a coordinator: job arrays.


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


# Training shadow models into a folder, and resuming after a stop.


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
                for todo in _pieces_for_threads(done, threads):
                    batch = store.new_batch(todo, drawing_threads)
                    try:
                        engine.fill(batch, threads, lambda k, before=num_done: progress(before + k))  # type: ignore[misc]
                    finally:
                        writer.submit(store.write, batch)
                    num_done += len(todo)
                    progress(num_done)
        return store.read(num_models)


def _pieces_for_threads(done: Flags, threads: int) -> Iterator[Ints]:
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


# How long a plan takes and how much disk it fills, measured by training a few models.


TRIALS_PER_THREAD = 3
MOST_STORED = 2**28
"""Bytes of the models that are stored on trial, if that is more than those that were trained."""


@dataclass(frozen=True)
class Cost:
    """What training a number of shadow models costs.

    Attributes:
        num_models: Number of shadow models.
        seconds: Time on the threads asked for, with that of storing the models.
        disk_bytes: Size of the folder; statistics hardly compress, memberships do.
        seconds_per_model: Time of one model on one thread.
    """

    num_models: int
    seconds: float
    disk_bytes: int
    seconds_per_model: float

    def __str__(self) -> str:
        return (
            f"{self.num_models:,} models: about {self.seconds:,.0f} s "
            f"({self.seconds_per_model * 1e3:,.1f} ms per model and thread), {self.disk_bytes / 1e6:,.0f} MB of disk"
        )


def estimate_cost(
    graph: Graph,
    plan: ShadowPlan,
    num_models: int,
    *,
    num_threads: int | None = None,
    keep_logits: bool = False,
) -> Cost:
    """Trains and stores a handful of models of the plan, keeps nothing, and scales up."""
    check_at_least_one(num_models=num_models)
    plan.check_trusted()
    engine = make_engine(graph, plan)
    threads = threads_for(engine, num_threads)
    # Processes take seconds to start, and would be timed with the models.
    trial_threads = 1 if getattr(engine, "starts_processes", False) else threads
    count = TRIALS_PER_THREAD * trial_threads
    memberships = draw_memberships(graph, plan.sampler, count, plan.seed, num_threads=threads)
    batch = ShadowBatch.empty(graph, plan, np.arange(count), memberships, keep_logits)
    start = time.perf_counter()
    engine.fill(batch, trial_threads, lambda _: None)
    seconds = (time.perf_counter() - start) / count
    cores = (os.cpu_count() or 1) if getattr(engine, "trains_in_parallel", False) else 1
    seconds_per_model = seconds * min(trial_threads, cores)
    floats = batch.statistics[:, 0].size + (0 if batch.logits is None else batch.logits[:, 0].size)
    num_stored = min(num_models, MODELS_PER_CHUNK, max(count, MOST_STORED // (4 * floats)))
    opening, storing = _store(graph, plan, batch, num_stored)
    return Cost(
        num_models=num_models,
        seconds=opening + seconds_per_model * num_models / min(threads, cores) + storing / num_stored * num_models,
        disk_bytes=num_models * (4 * floats + graph.num_nodes // 8),
        seconds_per_model=seconds_per_model,
    )


def _store(graph: Graph, plan: ShadowPlan, batch: ShadowBatch, num_models: int) -> tuple[float, float]:
    """Seconds of opening a store, and of writing and reading so many models, at most a chunk of it."""
    rows = np.arange(num_models)
    chunk = replace(batch.part(rows % len(batch.indices)), indices=rows)
    with tempfile.TemporaryDirectory(prefix="bmpaudit-") as folder:
        start = time.perf_counter()
        store = ShadowStore(folder, graph, plan, batch.logits is not None)
        store.extend(num_models)
        opened = time.perf_counter()
        store.write(chunk)
        store.read()
        return opened - start, time.perf_counter() - opened


# Models trained elsewhere, stored like our own.


def import_runs(graph: Graph, plan: ShadowPlan, runs: ShadowRuns, folder: str | Path) -> ShadowRuns:
    """Stores models that were trained elsewhere in a folder, from which later steps read them.

    A call that was interrupted can be repeated, and models can be added after the last one.

    Args:
        graph: The whole graph.
        plan: Its model must be `TrainedElsewhere()`; its views are those that `runs` has.
        runs: The models, from `ShadowRuns.from_arrays`.
        folder: A new folder, or one to which the same models were imported before.

    Returns:
        The models as the folder has them.

    Raises:
        InputError: if the models do not fit the plan, the graph or what is in the folder already.
    """
    _check(graph, plan, runs)
    with folder_lock(Path(folder)):
        store = ShadowStore(folder, graph, plan)
        _check_nothing_else_is_there(store, runs)
        length = int(runs.indices[-1]) + 1
        store.extend(length)
        for start in range(0, length, MODELS_PER_CHUNK):
            rows = np.flatnonzero((runs.indices >= start) & (runs.indices < start + MODELS_PER_CHUNK))
            if len(rows):
                store.write(_as_batch(plan, runs, rows))
        return store.read()


def _check(graph: Graph, plan: ShadowPlan, runs: ShadowRuns) -> None:
    if not plan.is_trained_elsewhere:
        raise InputError(f"models trained elsewhere need a plan with the model TrainedElsewhere(), got {plan.model}")
    if runs.memberships.shape[1] != graph.num_nodes:
        raise InputError(
            f"the models must be of the graph's {graph.num_nodes:,} nodes, got {runs.memberships.shape[1]:,}"
        )
    wanted = [view.name for view in plan.views]
    if set(wanted) != set(runs.statistics):
        raise InputError(
            f"statistics must be of every combination of the plan's queries and releases: {', '.join(wanted)}, "
            f"got {', '.join(runs.statistics) or 'none'}"
        )
    for rows in model_blocks(*runs.memberships.shape):
        is_empty = ~runs.memberships[rows].any(axis=1)
        if is_empty.any():
            model = runs.indices[rows][is_empty][0]
            raise InputError(f"every model must have at least one member, got none for model {model}")


def _check_nothing_else_is_there(store: ShadowStore, runs: ShadowRuns) -> None:
    there = store.read()
    common = np.isin(runs.indices, there.indices)
    pairs: list[tuple[FlagMatrix | FloatMatrix, FlagMatrix | FloatMatrix]] = [(runs.memberships, there.memberships)]
    pairs += [(runs.statistics[name], there.statistics[name]) for name in there.statistics]
    is_same = np.array_equal(runs.indices[common], there.indices)
    for new, old in ((take_rows(table, common), stored) for table, stored in pairs if is_same):
        is_same &= all(np.array_equal(new[rows], old[rows]) for rows in model_blocks(*old.shape))
    if not is_same:
        raise InputError(
            f"{store.folder} holds {there.num_models:,} models trained elsewhere that are not among these; "
            "use a new folder"
        )


def _as_batch(plan: ShadowPlan, runs: ShadowRuns, rows: np.ndarray) -> ShadowBatch:
    return ShadowBatch(
        indices=runs.indices[rows],
        memberships=runs.memberships[rows],
        statistics=np.stack([runs.statistics[view.name][rows] for view in plan.views]),
        logits=None,
        state=np.full(len(rows), ModelState.TRAINED, dtype=np.uint8),
        train_accuracy=runs.train_accuracy[rows],
        held_out_accuracy=runs.held_out_accuracy[rows],
        view_train_accuracy=np.stack([runs.view_accuracy[view.name].train[rows] for view in plan.views]),
        view_held_out_accuracy=np.stack([runs.view_accuracy[view.name].held_out[rows] for view in plan.views]),
    )
