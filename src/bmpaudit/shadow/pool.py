"""Training shadow models into a folder, and going on where one left off."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow.batch import Engine, Progress, ShadowBatch
from bmpaudit.shadow.native_engine import NativeEngine
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import ShadowRuns
from bmpaudit.shadow.store import MODELS_PER_CHUNK, ShadowStore

SECONDS_BETWEEN_WRITES = 5.0  # what a kill can cost at most, but for the models in work


def make_engine(graph: Graph, plan: ShadowPlan) -> Engine:
    """The engine that a plan names."""
    if plan.engine == "native":
        return NativeEngine(graph, plan)
    try:
        from bmpaudit.shadow.torch_engine import TorchEngine
    except ImportError as missing:
        raise InputError(f"engine='torch' needs PyTorch Geometric: pip install 'bmpaudit[torch]' ({missing})") from None
    return TorchEngine(graph, plan)


def _warn(told: str) -> None:
    warnings.warn(told, stacklevel=3)


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

    Models already there are kept; damaged ones are reported and trained again. A stop (Ctrl-C, kill -9, a full disk)
    loses at most the last few seconds' models, and the next call goes on; the result is the same as without the stop.

    Args:
        graph: The whole graph.
        plan: What to train; a folder made for another plan or graph is refused.
        num_models: J; may be raised later.
        folder: Where to keep them (see `ShadowStore`).
        num_threads: Threads to train on; if not given all cores, and one for the torch engine.
        keep_logits: Whether to keep full logits beside the margins.
        progress: Is told how many of the models are done.
        report: Is told of damage that was found; a warning if not given.
    """
    check_at_least_one(num_models=num_models)
    # Models this small gain nothing from several PyTorch threads, and lose much on a busy machine.
    threads = 1 if num_threads is None and plan.engine == "torch" else check_threads(num_threads)
    draw_memberships(graph, plan.sampler, 1, plan.seed)  # what cannot be sampled leaves no folder behind
    with ShadowStore(folder, graph, plan, keep_logits) as store:
        store.extend(num_models)
        store.discard_damaged(report)
        done = store.is_done[:num_models]
        num_done = int(done.sum())
        progress(num_done)
        if num_done < num_models:
            engine = make_engine(graph, plan)
            with _Writer(store) as writer:
                for todo in _pieces(done, threads):
                    batch = _new_batch(graph, plan, todo, store.keep_logits)
                    try:
                        engine.fill(batch, threads, lambda k, before=num_done: progress(before + k))  # type: ignore[misc]
                    finally:
                        writer.submit(batch)
                    num_done += len(todo)
                    progress(num_done)
        return store.read(num_models)


def _pieces(done: npt.NDArray[np.bool_], threads: int) -> Iterator[npt.NDArray[np.int64]]:
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


def check_threads(num_threads: int | None) -> int:
    """The number of threads to use; more than cores is allowed, and no faster."""
    if num_threads is None:
        return os.cpu_count() or 1
    check_at_least_one(num_threads=num_threads)
    return num_threads


def _new_batch(graph: Graph, plan: ShadowPlan, indices: np.ndarray, keep_logits: bool) -> ShadowBatch:
    span = int(indices[-1] - indices[0]) + 1
    drawn = draw_memberships(graph, plan.sampler, span, plan.seed, first=int(indices[0]))
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
