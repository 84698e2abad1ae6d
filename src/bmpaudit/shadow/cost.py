"""How long a plan takes and how much disk it fills, measured by training a few models."""

import os
import tempfile
import time
from dataclasses import dataclass, replace

import numpy as np

from bmpaudit.checks import check_at_least_one
from bmpaudit.graph import Graph
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.making import make_engine, threads_for
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.store import ShadowStore
from bmpaudit.tables import MODELS_PER_CHUNK

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
