"""Training shadow models: in this process, on workers, or a range of them beside others; adding to finished ones."""

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
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from bmpaudit.graph import Graph
from bmpaudit.interfaces import Engine, Progress
from bmpaudit.io.remote_folder import RemoteFolder, folder_at
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow import engines
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import ShadowRuns
from bmpaudit.shadow.store import ShadowStore, addition_to, check_same_plan, in_background, write_description
from bmpaudit.util.build import Build, this_build
from bmpaudit.util.errors import InputError, check_at_least_one, thread_count
from bmpaudit.util.files import folder_lock, naming
from bmpaudit.util.matrices import MODELS_PER_CHUNK, FlagMatrix, FloatMatrix, model_blocks, take_rows
from bmpaudit.util.values import Flags, Ints
from bmpaudit.workers import crew_of, marked

SECONDS_PER_PIECE, SECONDS_PER_CHUNK = 60.0, 600.0
"""After this time a worker sends back what it has, the longer one if it can write the chunk itself once it is whole:
the loss of a worker costs hardly more, and the coordinator has little to write."""

SECONDS_AT_ONCE = 15.0
"""Between two looks at the clock. Engines set up their memory anew for each call, which can take as long as a third of
a model, so there is one call for a piece wherever models are that quick."""

PIECES_PER_WORKER = 4
"""At least, so that no worker is idle for long while others train their last piece."""

MOST_BYTES = 2**31  # of the results of one piece
SECONDS_BETWEEN_WRITES = 5.0  # what a kill can cost at most, but for the models under way

TRIALS_PER_THREAD = 3
MOST_STORED = 2**28
"""Bytes of the models that are stored on trial, if that is more than those that were trained."""

_engine_lock = threading.Lock()  # one thread of a worker makes the engine
_fill_lock = threading.Lock()  # engines that are not thread-safe train for one thread at a time


@dataclass(frozen=True, eq=False)
class Job:
    """What all pieces have in common; sent to each worker once."""

    graph: Graph
    plan: ShadowPlan
    keep_logits: bool
    num_weights: int  # of each model, to keep
    folder: str  # path or address of the store
    mark: str  # name of a file in the store for as long as the coordinator is at work; who sees it shares the store

    @cached_property
    def engine(self) -> Engine:
        """The worker's engine."""
        return engines.make_engine(self.graph, self.plan)

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
    """Models of one chunk of the store."""

    indices: Ints  # ascending
    # All other models of the chunk are in the store and nobody else trains any. Only then may a worker write: it is a
    # whole chunk, so that a worker which was given up for lost, and writes all the same, changes nothing.
    completes_chunk: bool


@dataclass(frozen=True, eq=False)
class Trained:
    """What a worker answers."""

    indices: Ints  # of models that are finished
    batch: ShadowBatch | None  # these models; None if they are in the store, for the coordinator to vouch for
    build: Build
    worker: str  # its machine and process


def train_piece(job: Job, piece: Piece) -> Trained:
    """Trains the models of a piece on one thread, or as many of them as there is time for."""
    with _engine_lock:
        engine = job.engine
    most_seconds = SECONDS_PER_CHUNK if piece.completes_chunk and job.shares_store else SECONDS_PER_PIECE
    parts: list[ShadowBatch] = []
    with nullcontext() if getattr(engine, "is_thread_safe", False) else _fill_lock:
        start, done = time.monotonic(), 0
        while done < len(piece.indices) and (not parts or time.monotonic() - start <= most_seconds):
            size = max(1, int(SECONDS_AT_ONCE / max(job.seconds[-1], 1e-9))) if job.seconds else 1
            some = piece.indices[done : done + size]
            batch = ShadowBatch.drawn(job.graph, job.plan, some, job.keep_logits, job.num_weights, num_threads=1)
            before = time.monotonic()
            engine.fill(batch, 1, lambda _: None)
            job.seconds.append((time.monotonic() - before) / len(some))
            parts.append(batch)
            done += len(some)
    batch = parts[0] if len(parts) == 1 else ShadowBatch.joined(parts)
    is_written = piece.completes_chunk and len(batch.indices) == len(piece.indices) and job.shares_store
    if is_written:
        job.store.write_data(batch)
    worker = f"{socket.gethostname()}:{os.getpid()}"
    return Trained(batch.indices, None if is_written else batch, worker_build(job.plan), worker)


def worker_build(plan: ShadowPlan) -> Build:
    """The build of this process, as far as it matters to a plan's models."""
    return this_build(plan.engine_name)


def train_on(
    executor: Executor, store: ShadowStore, done: Flags, *, progress: Progress, report: Callable[[str], None]
) -> None:
    """Trains the models that are missing on the workers of an executor, each piece on one thread.

    A worker that finishes a whole chunk writes it straight to the store, if it shares it, and this process vouches for
    it; other models are sent back and written here. So only one process ever writes `done`, and the order of writes is
    that of one machine. Raises an `OSError` if workers, or the connection to them, are lost.
    """
    crew, ours = crew_of(executor), this_build(store.plan.engine_name)
    num_done = int(done.sum())
    with marked(store.folder) as mark, in_background() as write:
        folder = store.folder if isinstance(store.folder, RemoteFolder) else store.folder.resolve()
        job = Job(store.graph, store.plan, store.keep_logits, store.num_weights, str(folder), mark)
        pieces = _pieces_for_workers(store, done, crew.width)
        for piece, trained in crew.run(train_piece, job, pieces):
            if trained.build != ours:
                note = (
                    f"Some models were trained by workers of another build ({ours.differences(trained.build)}): their "
                    "samples are the same, their statistics agree to the rounding of single precision."
                )
                if store.arrays.add_note(note):
                    report(f"{note} The first one was {trained.worker}.")
            if trained.batch is None:
                write(store.vouch, trained.indices)
            else:
                write(store.write, trained.batch)
            left = np.setdiff1d(piece.indices, trained.indices)
            if len(left):
                pieces.appendleft(Piece(left, completes_chunk=False))
            num_done += len(trained.indices)
            progress(num_done)


def _missing_by_chunk(done: Flags) -> list[Ints]:
    """The models that are missing of each chunk of the store."""
    starts = range(0, len(done), MODELS_PER_CHUNK)
    return [np.flatnonzero(~done[start : start + MODELS_PER_CHUNK]) + start for start in starts]


def _pieces_for_workers(store: ShadowStore, done: Flags, width: int) -> deque[Piece]:
    """Whole chunks, or parts of them where chunks are too few for the workers or too large for their memory."""
    chunks = [todo for todo in _missing_by_chunk(done) if len(todo)]
    wanted = PIECES_PER_WORKER * width
    size = MODELS_PER_CHUNK if len(chunks) >= wanted else -(-sum(map(len, chunks)) // wanted)
    numbers = store.graph.num_nodes * len(store.plan.views) * (1 + store.graph.num_classes * store.keep_logits)
    numbers += store.plan.num_repeats * store.num_weights
    numbers += len(store.plan.row_sets) * store.graph.num_features * (store.graph.num_classes + 1)
    size = min(size, max(1, MOST_BYTES // (4 * numbers)))
    pieces: deque[Piece] = deque()
    for todo in chunks:
        parts = np.array_split(todo, -(-len(todo) // size))
        pieces.extend(Piece(part, completes_chunk=len(parts) == 1) for part in parts)
    return pieces


def check_range(start: int, stop: int, num_models: int) -> None:
    """Raises `InputError` unless a range consists of whole chunks of the store, of which the last may be cut off."""
    if not 0 <= start < stop or start >= num_models:
        raise InputError(f"range must be START:STOP with 0 ≤ START < STOP, START < {num_models}, got {start}:{stop}")
    if start % MODELS_PER_CHUNK or (stop % MODELS_PER_CHUNK and stop < num_models):
        first, last = start // MODELS_PER_CHUNK * MODELS_PER_CHUNK, -(-stop // MODELS_PER_CHUNK) * MODELS_PER_CHUNK
        must = f"range must start and end at a multiple of {MODELS_PER_CHUNK}, models that are stored together"
        raise InputError(f"{must}, got {start}:{stop}; {first}:{last} does")


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
    """Trains models start, …, stop - 1 of a plan into a folder to which others may be writing, as job arrays do.

    Only whole chunks are written, so that ranges can overlap: whoever comes second writes what is there. A kill costs
    the chunk under way. Whoever calls this holds `files.shared_folder_lock`, which has seen to it that the folder has
    room for J = `num_models`; what a range has beyond them is left out. Arguments are those of `train_shadows`, but
    `progress` is called with the number of models of the range that are done.

    Returns:
        Which of the J models are there, shape (J,).
    """
    check_range(start, stop, num_models)
    store = ShadowStore(folder, graph, plan, keep_logits, joins=True)
    stop = min(stop, num_models)
    if store.num_models < num_models:
        raise InputError(
            f"{folder} has room for {store.num_models:,} models, and other processes are training them: "
            f"{num_models:,} can be trained when they have ended"
        )
    kept = {name.partition("_")[0] for name in store.arrays.names}
    for what, is_kept in (("logits", store.keep_logits), ("weights", keep_weights)):
        if is_kept and what not in kept:
            raise InputError(f"{folder} holds shadow models without {what}; use a new folder to keep them")
    engine, num_done = engines.make_engine(graph, plan), 0
    threads = engines.threads_for(engine, num_threads)
    with engines.closing(engine):
        for first in range(start, stop, MODELS_PER_CHUNK):
            chunk = store.chunk_of(first)
            size = chunk.stop - chunk.start
            todo = np.arange(chunk.start, chunk.stop)
            if not store.is_damaged(chunk, report, num_threads):
                todo = todo[~np.asarray(store.arrays["done"][chunk])]
            if len(todo):
                batch = ShadowBatch.drawn(
                    graph, plan, todo, store.keep_logits, store.num_weights, num_threads=thread_count(num_threads)
                )
                before = num_done + size - len(todo)
                engine.fill(batch, threads, lambda k, before=before: progress(before + k))  # type: ignore[misc]
                store.write_data(batch, with_others=len(todo) < size)
                store.vouch(todo)
            num_done += size
            progress(num_done)
    return store.is_done[:num_models]


def check_plan(folder: Path | RemoteFolder, graph: Graph, plan: ShadowPlan) -> None:
    """Raises `InputError` unless models of a folder are of a plan, or what the plan has beyond them can be added."""
    addition = addition_to(folder, graph, plan)
    if addition is None:
        check_same_plan(folder, graph, plan)
    elif (folder / "shadows").exists():
        _sources(ShadowStore(folder, graph, addition[0], read_only=True), addition[1])


def add_views(
    folder: str | Path | RemoteFolder, graph: Graph, plan: ShadowPlan, num_threads: int | None, progress: Progress
) -> None:
    """Adds the views of a plan that the models of a folder do not have, if they are of the plan but for that.

    Each model is asked with its kept weights; a release that only changes outputs can also be computed from kept
    logits. The folder is then the same, byte for byte, as if it had been made with the plan. It is recognised as the
    plan's once everything is there; after a stop, the next call resumes.
    """
    place = folder_at(folder)
    addition = addition_to(place, graph, plan)
    if addition is not None:
        store = ShadowStore(place, graph, addition[0])
        if addition[1] is not None:
            _add_missing_views(store, addition[1], num_threads, progress)
        write_description(place, graph, plan)


def _add_missing_views(store: ShadowStore, asked: ShadowPlan, num_threads: int | None, progress: Progress) -> None:
    """Adds the views of a plan that are missing in a store, chunk by chunk."""
    done, sources = store.is_done, _sources(store, asked)
    missing = store.add_arrays(asked)
    if not done.any():
        return
    engine = engines.make_engine(store.graph, asked)
    with engines.closing(engine):
        for start in range(0, len(done), MODELS_PER_CHUNK):
            chunk = store.chunk_of(start)
            is_done = done[chunk]
            if is_done.any() and not store.has(missing, chunk, is_done):
                failed = np.asarray(store.arrays["failed"][chunk]) & is_done
                batch = _batch(store, asked, chunk, np.flatnonzero(is_done & ~failed))
                if sources:
                    stored = {each: np.asarray(store.arrays[f"logits_{view}"][chunk]) for each, view in sources.items()}
                    for row, place in enumerate((batch.indices - chunk.start).tolist()):
                        answers = {question: logits[place] for question, logits in stored.items()}
                        engines.score_model(asked, store.graph, batch, row, answers)
                else:
                    engine.fill(batch, engines.threads_for(engine, num_threads), lambda _: None)
                lost = _batch(store, asked, chunk, np.flatnonzero(failed))
                for row in range(len(lost.indices)):
                    lost.fail(row)
                store.put(missing, ShadowBatch.joined([batch, lost]), is_new=True)
                # Models that only fail with the new views are trained again, and found to have failed.
                newly = batch.indices[batch.state == ModelState.FAILED]
                if len(newly):
                    store.arrays.write("done", chunk, is_done & ~np.isin(np.arange(chunk.start, chunk.stop), newly))
            progress(int(done[: chunk.stop].sum()))


def _batch(store: ShadowStore, asked: ShadowPlan, chunk: slice, rows: Ints) -> ShadowBatch:
    """Models of a chunk with their samples, and their weights as far as they are kept."""
    memberships = np.asarray(store.arrays["memberships"][chunk])[rows]
    indices, keep_logits = chunk.start + rows, store.keep_logits
    batch = ShadowBatch.empty(store.graph, asked, indices, memberships, keep_logits, store.num_weights)
    if batch.weights is not None:
        for repeat in range(min(asked.num_repeats, store.plan.num_repeats)):
            batch.weights[repeat] = np.asarray(store.arrays[f"weights_{repeat}"][chunk])[rows]
    return batch


def _sources(store: ShadowStore, asked: ShadowPlan | None) -> dict[engines.Question, str]:
    """For each question of a plan, a view whose kept logits answer it; nothing where weights answer it."""
    if asked is None or store.num_weights or not store.is_done.any():
        return {}
    there = store.plan
    known = {
        questions[0]: view.name
        for view, questions in zip(there.views, engines.questions_of(there), strict=True)
        if len(questions) == 1 and not view.release.changes_outputs
    }
    questions = engines.distinct_questions(asked)
    if not store.keep_logits or any(question not in known for question in questions):
        kept = "no weights, and not the logits that it takes" if store.keep_logits else "neither weights nor logits"
        added = ", ".join(view.name for view in asked.views if view not in there.views)
        raise InputError(
            f"{store.folder}: {added} cannot be added to its shadow models, of which {kept} were kept; use a "
            "new folder, with --keep-weights if more is to be added later"
        )
    return {question: known[question] for question in questions}


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
    report: Callable[[str], None] = lambda message: warnings.warn(message, stacklevel=3),
) -> ShadowRuns:
    """Makes sure that a folder holds the first `num_models` shadow models of a plan, and returns them.

    Models already there are kept, also those beyond `num_models`; damaged ones are reported and trained again. A stop
    (Ctrl-C, kill -9, a full disk) loses at most the models of the last few seconds; the next call resumes.

    Args:
        graph: The whole graph.
        plan: What to train; a folder made for another plan or graph is refused. Releases and queries can be added if
            weights were kept (see `add_views`).
        num_models: J; may be raised later.
        folder: Where to keep them (see `ShadowStore`); its lock is held meanwhile.
        num_threads: Number of threads, with the torch engine of processes; if not given all cores.
        keep_logits: Whether to keep what each view gives out beside the statistics.
        keep_weights: Whether to keep the weights of the models.
        executor: Workers that train the models, on one thread each: any `concurrent.futures.Executor`; by default this
            process.
        store_at: An address that fsspec knows, such as `s3://bucket/audit`, for the models; by default the folder.
        progress: Called with the number of models done so far.
        report: Called with a message for damage that was found, or for workers of another build; by default a warning.

    Raises:
        OSError: if workers, or the store, are lost.
    """
    check_at_least_one(num_models=num_models)
    threads = thread_count(num_threads)
    if plan.is_trained_elsewhere:
        raise InputError("these models were trained elsewhere; bmpaudit cannot train more of them")
    plan.check_trusted()
    draw_memberships(graph, plan.sampler, 1, plan.seed, num_threads=1)  # what cannot be sampled leaves no folder behind
    with folder_lock(Path(folder)), naming(Path(folder) / "shadows"):
        add_views(store_at or folder, graph, plan, num_threads, progress)
        store = ShadowStore(
            store_at or folder, graph, plan, keep_logits, engines.num_weights(graph, plan) if keep_weights else 0
        )
        store.extend(num_models)
        store.discard_damaged(report, threads)
        done = store.is_done[:num_models]
        num_done = int(done.sum())
        progress(num_done)
        if num_done < num_models and executor is not None:
            train_on(executor, store, done, progress=progress, report=report)
        elif num_done < num_models:
            _train_here(store, done, num_threads, progress)
        return store.read(num_models)


def _train_here(store: ShadowStore, done: Flags, num_threads: int | None, progress: Progress) -> None:
    """Trains the models that are missing in this process, and writes some while others are trained."""
    engine = engines.make_engine(store.graph, store.plan)
    threads, num_done = engines.threads_for(engine, num_threads), int(done.sum())
    with in_background() as write, engines.closing(engine):
        for todo in _pieces_for_threads(done, threads):
            batch = ShadowBatch.drawn(
                store.graph,
                store.plan,
                todo,
                store.keep_logits,
                store.num_weights,
                num_threads=thread_count(num_threads),
            )
            try:
                engine.fill(batch, threads, lambda k, before=num_done: progress(before + k))  # type: ignore[misc]
            finally:  # after a stop, the models that were finished are kept
                write(store.write, batch)
            num_done += len(todo)
            progress(num_done)


def _pieces_for_threads(done: Flags, threads: int) -> Iterator[Ints]:
    """Models to train together and write at once: within one chunk of the store, and of a few seconds' work."""
    size, start_of_run, trained = 2 * threads, time.monotonic(), 0
    for todo in _missing_by_chunk(done):
        while len(todo):
            yield todo[:size]
            trained += len(todo[:size])
            todo = todo[size:]
            a_second = trained / max(time.monotonic() - start_of_run, 1e-9)
            size = int(np.clip(SECONDS_BETWEEN_WRITES * a_second, threads, MODELS_PER_CHUNK))
            size -= size % threads if size > threads else 0  # no thread is idle while others train the last model


@dataclass(frozen=True)
class Cost:
    """What training a number of shadow models costs."""

    num_models: int
    seconds: float  # on the threads asked for, with that of storing the models
    disk_bytes: int  # statistics hardly compress, memberships do
    seconds_per_model: float  # on one thread

    def __str__(self) -> str:
        return (
            f"{self.num_models:,} models: about {self.seconds:,.0f} s "
            f"({self.seconds_per_model * 1e3:,.1f} ms per model and thread), {self.disk_bytes / 1e6:,.0f} MB of disk"
        )


def estimate_cost(
    graph: Graph, plan: ShadowPlan, num_models: int, *, num_threads: int | None = None, keep_logits: bool = False
) -> Cost:
    """Trains and stores a handful of models of the plan, keeps nothing, and scales up."""
    check_at_least_one(num_models=num_models)
    engine = engines.make_engine(graph, plan)
    threads = engines.threads_for(engine, num_threads)
    # Processes take seconds to start, and would be timed with the models.
    trial_threads = 1 if getattr(engine, "starts_processes", False) else threads
    count = TRIALS_PER_THREAD * trial_threads
    batch = ShadowBatch.drawn(graph, plan, np.arange(count), keep_logits, num_threads=threads)
    start = time.perf_counter()
    engine.fill(batch, trial_threads, lambda _: None)
    seconds = (time.perf_counter() - start) / count
    cores = (os.cpu_count() or 1) if getattr(engine, "trains_in_parallel", False) else 1
    seconds_per_model = seconds * min(trial_threads, cores)
    stored = (batch.statistics, batch.logits, batch.rows, batch.norms)
    floats = sum(each[:, 0].size for each in stored if each is not None)
    num_stored = min(num_models, MODELS_PER_CHUNK, max(count, MOST_STORED // (4 * floats)))
    opening, storing = _time_storing(graph, plan, batch, num_stored)
    return Cost(
        num_models=num_models,
        seconds=opening + seconds_per_model * num_models / min(threads, cores) + storing / num_stored * num_models,
        disk_bytes=num_models * (4 * floats + graph.num_nodes // 8),
        seconds_per_model=seconds_per_model,
    )


def _time_storing(graph: Graph, plan: ShadowPlan, batch: ShadowBatch, num_models: int) -> tuple[float, float]:
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


def import_runs(graph: Graph, plan: ShadowPlan, runs: ShadowRuns, folder: str | Path) -> ShadowRuns:
    """Stores models that were trained elsewhere in a folder, from which later steps read them, and reads them.

    The plan's model must be `TrainedElsewhere()`, its views those of `runs`. A call that was interrupted can be
    repeated, and models can be added after the last one.
    """
    if not plan.is_trained_elsewhere:
        raise InputError(f"models trained elsewhere need a plan with the model TrainedElsewhere(), got {plan.model}")
    if runs.memberships.shape[1] != graph.num_nodes:
        sizes = f"{graph.num_nodes:,} nodes, got {runs.memberships.shape[1]:,}"
        raise InputError(f"the models must be of the graph's {sizes}")
    views = [view.name for view in plan.views]
    if set(views) != set(runs.statistics):
        found = f"{', '.join(views)}, got {', '.join(runs.statistics) or 'none'}"
        raise InputError(f"statistics must be of every combination of the plan's queries and releases: {found}")
    for block in model_blocks(*runs.memberships.shape):
        is_empty = ~runs.memberships[block].any(axis=1)
        if is_empty.any():
            model = runs.indices[block][is_empty][0]
            raise InputError(f"every model must have at least one member, got none for model {model}")
    with folder_lock(Path(folder)):
        store = ShadowStore(folder, graph, plan)
        there = store.read()
        common = np.isin(runs.indices, there.indices)
        pairs: list[tuple[FlagMatrix | FloatMatrix, FlagMatrix | FloatMatrix]] = [(runs.memberships, there.memberships)]
        pairs += [(runs.statistics[name], there.statistics[name]) for name in views]
        if not np.array_equal(runs.indices[common], there.indices) or not all(
            np.array_equal(new[rows], old[rows])
            for new, old in ((take_rows(table, common), stored) for table, stored in pairs)
            for rows in model_blocks(*old.shape)
        ):
            others = f"{there.num_models:,} models trained elsewhere that are not among these"
            raise InputError(f"{store.folder} holds {others}; use a new folder")
        length = int(runs.indices[-1]) + 1
        store.extend(length)
        for start in range(0, length, MODELS_PER_CHUNK):
            rows = np.flatnonzero((runs.indices >= start) & (runs.indices < start + MODELS_PER_CHUNK))
            if len(rows):
                batch = ShadowBatch(
                    indices=runs.indices[rows],
                    memberships=runs.memberships[rows],
                    statistics=np.stack([runs.statistics[view][rows] for view in views]),
                    state=np.full(len(rows), ModelState.TRAINED, dtype=np.uint8),
                    train_accuracy=runs.train_accuracy[rows],
                    held_out_accuracy=runs.held_out_accuracy[rows],
                    view_train_accuracy=np.stack([runs.view_accuracy[view].train[rows] for view in views]),
                    view_held_out_accuracy=np.stack([runs.view_accuracy[view].held_out[rows] for view in views]),
                )
                store.write(batch)
        return store.read()
