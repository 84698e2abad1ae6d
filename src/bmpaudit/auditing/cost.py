"""How long a whole audit takes, step by step: training from a few models, the rest from rehearsals on made-up ones."""

from __future__ import annotations

import operator
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from bmpaudit.arrays import Floats, Ints
from bmpaudit.auditing.attack_step import MOST_PERMUTED
from bmpaudit.auditing.pipeline import PRIOR_SECONDS, Pipeline
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.graph import Graph
from bmpaudit.report.picture_formats import DEFAULT_PICTURES, NO_PICTURES
from bmpaudit.samplers import Priors, prior_probabilities
from bmpaudit.shadow import ShadowRuns, estimate_cost

SMALL, LARGE = (300, 40), (1_200, 160)
"""Nodes and models of the two rehearsals, whose difference tells what a larger audit takes."""
PRIOR_TRIALS = 2_000  # draws whose time is scaled up
SIZES: Mapping[str, Callable[[int, int], int]] = {
    "permutation test": lambda num_nodes, num_models: min(num_nodes * num_models, MOST_PERMUTED),
    "attack": operator.mul,
    "proof and exposure": operator.mul,
    "estimation": lambda num_nodes, _: num_nodes,
}
"""What the time of each step grows with, by the number of nodes and of models; the report hardly grows."""
SHIFT = 1.5  # standard deviations by which being in the sample raises a made-up statistic


@dataclass(frozen=True)
class AuditCost:
    """What an audit costs on this machine.

    Attributes:
        num_models: Number of shadow models.
        seconds: Time of each step, in their order.
        disk_bytes: Size of the shadow models on disk.
        seconds_per_model: Time of training one model on one thread.
    """

    num_models: int
    seconds: Mapping[str, float]
    disk_bytes: int
    seconds_per_model: float

    @property
    def total(self) -> float:
        """Time of the whole audit, in seconds."""
        return sum(self.seconds.values())


def audit_cost(subject: Subject, runtime: Runtime) -> AuditCost:
    """Measures a little of each step, keeps nothing, and scales up."""
    plan, graph = subject.plan, subject.graph
    with runtime.progress("cost", 4) as progress:
        priors, drawing = _draw_some(subject, runtime)
        progress(1)
        small = _rehearse(subject, priors.prob, SMALL, runtime, pictures=NO_PICTURES)
        progress(2)
        large = _rehearse(subject, priors.prob, LARGE, runtime)
        progress(3)
        training = estimate_cost(graph, plan.shadow_plan, plan.shadows, num_threads=runtime.num_threads)
    later = {step: _scaled(step, small, large, graph.num_nodes, plan.shadows) for step in large.seconds}
    return AuditCost(
        num_models=plan.shadows,
        seconds={"training": training.seconds, "priors": drawing, **later},
        disk_bytes=training.disk_bytes,
        seconds_per_model=training.seconds_per_model,
    )


def _draw_some(subject: Subject, runtime: Runtime) -> tuple[Priors, float]:
    """Priors from few draws, and how long those of the plan take."""
    plan = subject.plan
    start = time.perf_counter()
    priors = prior_probabilities(
        subject.graph,
        plan.sampler,
        num_draws=min(plan.prior_draws, PRIOR_TRIALS),
        seed=plan.seed,
        seconds=1.0,
        num_threads=runtime.num_threads,
    )
    spent = time.perf_counter() - start
    return priors, spent if priors.is_exact else min(spent / priors.num_draws * plan.prior_draws, PRIOR_SECONDS)


@dataclass(frozen=True)
class _Rehearsal:
    num_nodes: int
    num_models: int
    seconds: Mapping[str, float]


def _rehearse(
    subject: Subject, prior_prob: Floats, size: tuple[int, int], runtime: Runtime, *, pictures: str = DEFAULT_PICTURES
) -> _Rehearsal:
    """Times the steps after training on some of the nodes and on made-up models."""
    rng = np.random.default_rng(subject.plan.seed)
    num_nodes, num_models = min(size[0], subject.graph.num_nodes), min(size[1], subject.plan.shadows)
    nodes = _together(subject.graph, num_nodes)
    graph, prob = _induced(subject.graph, nodes), prior_prob[nodes]
    plan = subject.plan.replace(shadows=num_models)
    is_member = rng.random((num_models, num_nodes)) < prob
    statistics = {view.name: rng.normal(SHIFT * is_member).astype(np.float32) for view in plan.shadow_plan.views}
    quiet = Runtime(num_threads=runtime.num_threads, quiet=True, notice=lambda _: None)
    with tempfile.TemporaryDirectory(prefix="bmpaudit-") as folder:
        pipeline = Pipeline(Subject(graph, "", plan), Workspace(Path(folder)), quiet)
        pipeline.runs = ShadowRuns.from_arrays(is_member, statistics, graph)
        pipeline.priors = Priors.from_formula(plan.sampler, prob)
        with pipeline.prepared():
            pipeline.report(pictures=pictures)
    return _Rehearsal(num_nodes, num_models, pipeline.timings)


def _together(graph: Graph, num_nodes: int) -> Ints:
    """Nodes around the one with most neighbours: at random, hardly any would have one, and attacks would do less."""
    reached = breadth_first_order(graph.adjacency, np.argmax(graph.degrees), return_predecessors=False)
    others = np.setdiff1d(np.arange(graph.num_nodes), reached)
    return np.sort(np.concatenate([reached, others])[:num_nodes])


def _induced(graph: Graph, nodes: Ints) -> Graph:
    return Graph.from_scipy(graph.adjacency[nodes][:, nodes], graph.features[nodes], graph.labels[nodes])


def _scaled(step: str, small: _Rehearsal, large: _Rehearsal, num_nodes: int, num_models: int) -> float:
    """The time of a step of the real size, on the line through both rehearsals."""
    if step not in SIZES:
        return large.seconds[step]
    size = SIZES[step]
    at_large = size(large.num_nodes, large.num_models)
    run = at_large - size(small.num_nodes, small.num_models)
    slope = max(large.seconds[step] - small.seconds[step], 0.0) / run if run else 0.0
    return large.seconds[step] + slope * (size(num_nodes, num_models) - at_large)
