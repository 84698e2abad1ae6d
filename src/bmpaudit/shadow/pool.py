"""Training shadow models into a folder, and resuming after a stop."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags, Ints
from bmpaudit.checks import check_at_least_one, thread_count
from bmpaudit.errors import InputError
from bmpaudit.files import folder_lock, naming, uninterrupted
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Engine, Progress
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import ShadowRuns
from bmpaudit.shadow.store import ShadowStore
from bmpaudit.tables import MODELS_PER_CHUNK

SECONDS_BETWEEN_WRITES = 5.0  # what a kill can cost at most, but for the models in work


def make_engine(graph: Graph, plan: ShadowPlan) -> Engine:
    """The engine that a plan names, ready to train its models.

    Raises:
        UntrustedCodeError: if the engine or another part is code that a file names.
    """
    plan.check_trusted()
    try:
        engine: Callable[[Graph, ShadowPlan], Engine] = registry.load(registry.ENGINE, plan.engine_name)
    except InputError as failure:
        missing = failure.__cause__
        if isinstance(missing, ModuleNotFoundError) and missing.name in ("torch", "torch_geometric"):
            message = f"engine={plan.engine_name!r} needs PyTorch Geometric: pip install 'bmpaudit[torch]' ({missing})"
            raise InputError(message) from None
        raise
    return engine(graph, plan)


def threads_for(engine: Engine, num_threads: int | None) -> int:
    """Number of threads to train on.

    If not given, all cores for an engine that says of itself that it `trains_in_parallel`, and one for others.
    """
    if num_threads is None and not getattr(engine, "trains_in_parallel", False):
        return 1
    return thread_count(num_threads)


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
    progress: Progress = lambda _: None,
    report: Callable[[str], None] = _warn,
) -> ShadowRuns:
    """Makes sure that a folder holds the first `num_models` shadow models of a plan, and returns them.

    Models already there are kept, also those beyond `num_models`; damaged ones are reported and trained again. A stop
    (Ctrl-C, kill -9, a full disk) loses at most the models of the last few seconds, and the next call resumes; the
    result is the same as without the stop.

    Args:
        graph: The whole graph.
        plan: What to train; a folder made for another plan or graph is refused.
        num_models: J; may be raised later.
        folder: Where to keep them (see `ShadowStore`); its lock is held meanwhile.
        num_threads: Number of threads, with the torch engine of processes; if not given all cores.
        keep_logits: Whether to keep what each view gives out beside the statistics.
        progress: Called with the number of models done so far.
        report: Called with a message for damage that was found; a warning if not given.

    Raises:
        InputError: if the plan cannot be carried out, or the folder is of another plan or in use.
    """
    check_at_least_one(num_models=num_models)
    drawing_threads = thread_count(num_threads)
    if plan.is_trained_elsewhere:
        raise InputError("these models were trained elsewhere; bmpaudit cannot train more of them")
    plan.check_trusted()
    draw_memberships(graph, plan.sampler, 1, plan.seed, num_threads=1)  # what cannot be sampled leaves no folder behind
    with folder_lock(Path(folder)), naming(Path(folder) / "shadows"):
        store = uninterrupted(lambda: ShadowStore(folder, graph, plan, keep_logits))
        uninterrupted(lambda: store.extend(num_models))
        store.discard_damaged(report, drawing_threads)
        done = store.is_done[:num_models]
        num_done = int(done.sum())
        progress(num_done)
        if num_done < num_models:
            engine = make_engine(graph, plan)
            threads = threads_for(engine, num_threads)
            with _Writer(store) as writer, _closing(engine):
                for todo in _pieces(done, threads):
                    batch = _new_batch(graph, plan, todo, store.keep_logits, drawing_threads)
                    try:
                        engine.fill(batch, threads, lambda k, before=num_done: progress(before + k))  # type: ignore[misc]
                    finally:
                        writer.submit(batch)
                    num_done += len(todo)
                    progress(num_done)
        return store.read(num_models)


@contextmanager
def _closing(engine: Engine) -> Iterator[None]:
    """Ends what an engine has started, if it has a method `close`."""
    try:
        yield
    finally:
        getattr(engine, "close", lambda: None)()


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


def _new_batch(graph: Graph, plan: ShadowPlan, indices: Ints, keep_logits: bool, num_threads: int) -> ShadowBatch:
    span = int(indices[-1] - indices[0]) + 1
    drawn = draw_memberships(graph, plan.sampler, span, plan.seed, first=int(indices[0]), num_threads=num_threads)
    memberships = np.ascontiguousarray(drawn[indices - indices[0]])
    return ShadowBatch.empty(graph, plan, indices.astype(np.int64), memberships, keep_logits)


class _Writer:
    """Writes one batch while the next is trained."""

    def __init__(self, store: ShadowStore) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> _Writer:
        return self

    def submit(self, batch: ShadowBatch) -> None:
        # Handed over before anything that a stop could interrupt; one worker keeps the order.
        before, self._pending = self._pending, self._pool.submit(self._store.write, batch)
        if before is not None:
            before.result()

    def wait(self) -> None:
        if self._pending is not None:
            self._pending.result()

    def __exit__(self, *_: object) -> None:
        try:
            self.wait()
        finally:
            self._pool.shutdown()
