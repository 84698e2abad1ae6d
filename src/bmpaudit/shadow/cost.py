"""How long a plan will take and how much disk it will fill, found out by training a few models."""

import os
import time
from dataclasses import dataclass

import numpy as np

from bmpaudit.checks import check_at_least_one
from bmpaudit.graph import Graph
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.pool import check_threads, make_engine

TRIALS_PER_THREAD = 3


@dataclass(frozen=True)
class Cost:
    """What training a number of shadow models costs.

    Attributes:
        num_models: J.
        seconds: Time on the threads asked for.
        disk_bytes: Size of the folder; margins hardly compress, memberships do.
        seconds_per_model: Time of one model on one thread.
    """

    num_models: int
    seconds: float
    disk_bytes: int
    seconds_per_model: float

    def __str__(self) -> str:
        return (
            f"{self.num_models:,} models: about {self.seconds:,.0f} s "
            f"({self.seconds_per_model * 1e3:,.1f} ms a model and thread), {self.disk_bytes / 1e6:,.0f} MB of disk"
        )


def estimate_cost(
    graph: Graph,
    plan: ShadowPlan,
    num_models: int,
    *,
    num_threads: int | None = None,
    keep_logits: bool = False,
) -> Cost:
    """Trains a handful of models of the plan, keeps nothing, and scales up."""
    check_at_least_one(num_models=num_models)
    threads = 1 if num_threads is None and plan.engine == "torch" else check_threads(num_threads)
    count = TRIALS_PER_THREAD * threads
    memberships = draw_memberships(graph, plan.sampler, count, plan.seed)
    batch = ShadowBatch.empty(graph, plan, np.arange(count), memberships, keep_logits)
    engine = make_engine(graph, plan)
    start = time.perf_counter()
    engine.fill(batch, threads, lambda _: None)
    seconds = (time.perf_counter() - start) / count
    at_once = min(threads, os.cpu_count() or 1) if plan.engine == "native" else 1
    floats = batch.statistics[:, 0].size + (0 if batch.logits is None else batch.logits[:, 0].size)
    return Cost(
        num_models=num_models,
        seconds=seconds * num_models,
        disk_bytes=num_models * (4 * floats + graph.num_nodes // 8),
        seconds_per_model=seconds * at_once,
    )
