"""How long a whole audit takes, step by step: training from a few models, the rest from rehearsals on made-up ones."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul
from pathlib import Path

import numpy as np
from scipy.optimize import nnls
from scipy.sparse.csgraph import breadth_first_order

from bmpaudit.attack.student import num_learnt_from
from bmpaudit.auditing import Runtime, Subject, Workspace
from bmpaudit.graph import Graph
from bmpaudit.pipeline.pipeline import PRIOR_SECONDS, Pipeline
from bmpaudit.samplers import Priors, prior_probabilities
from bmpaudit.shadow import ShadowRuns, estimate_cost
from bmpaudit.util.matrices import Rows
from bmpaudit.util.values import Floats, Ints

WARM_UP = (100, 20)  # nodes and models of the rehearsal that imports what is needed; it counts for nothing
MOST_MODELS = 1_000  # of the other rehearsals
MOST_NODES, CHALLENGES = 8_000, 1_600_000  # of the last one
PRIOR_TRIALS = 2_000  # draws whose time is scaled up


SIZES: Mapping[str, Callable[[int, int], float]] = {
    **dict.fromkeys(("permutation test", "attack", "proof and exposure"), mul),  # challenges
    "estimation": lambda num_nodes, _: num_nodes**0.75,
}
"""What the time of each step grows with, by the number of nodes and of models; the report hardly grows.

An estimate computes nodes of the same counts once: it grows more slowly than their number.
"""
SHIFT = 1.5  # standard deviations by which being in the sample raises a made-up statistic


@dataclass(frozen=True)
class AuditCost:
    """What an audit costs on this machine."""

    num_models: int  # number of shadow models
    seconds: Mapping[str, float]  # time of each step, in their order
    disk_bytes: int  # size of the shadow models on disk
    seconds_per_model: float  # time of training one model on one thread

    @property
    def total(self) -> float:
        """Time of the whole audit, in seconds."""
        return sum(self.seconds.values())


def audit_cost(subject: Subject, runtime: Runtime) -> AuditCost:
    """Measures a little of each step, keeps nothing, and scales up."""
    plan, graph = subject.plan, subject.graph
    many_models = min(plan.shadows, MOST_MODELS)
    # An attack challenges all nodes but learns from a part of them. Both rehearsals learn from as many, so that what
    # the larger one takes more is for its challenges.
    smaller = num_learnt_from(graph.num_nodes, many_models), many_models
    largest = min(CHALLENGES // many_models, MOST_NODES), many_models
    sizes = WARM_UP, smaller, largest
    with runtime.progress("cost", 2 + len(sizes)) as progress:
        priors, drawing = _draw_some(subject, runtime)
        rehearsals = []
        for number, size in enumerate(sizes, start=1):
            progress(number)
            rehearsals.append(_rehearse(subject, priors.prob, size, runtime, is_reported=size is largest))
        progress(1 + len(sizes))
        training = estimate_cost(graph, plan.shadow_plan, plan.shadows, num_threads=runtime.num_threads)
    later = {step: _scaled(step, rehearsals[1:], graph.num_nodes, plan.shadows) for step in rehearsals[-1].seconds}
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
    subject: Subject, prior_prob: Floats, size: tuple[int, int], runtime: Runtime, *, is_reported: bool
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
        extent = num_models, graph.num_features
        rows = {
            each.name: Rows(rng.normal(size=(*extent, graph.num_classes)).astype(np.float32), np.ones(extent))
            for each in plan.shadow_plan.row_sets
        }
        pipeline.runs = replace(ShadowRuns.from_arrays(is_member, statistics, graph), rows=rows)
        pipeline.priors = Priors.from_formula(plan.sampler, prob)
        with pipeline.prepared():
            pipeline.report() if is_reported else pipeline.audit
    return _Rehearsal(num_nodes, num_models, pipeline.timings)


def _together(graph: Graph, num_nodes: int) -> Ints:
    """Nodes around the one with most neighbours: at random, hardly any would have one, and attacks would do less."""
    reached = breadth_first_order(graph.adjacency, np.argmax(graph.degrees), return_predecessors=False)
    others = np.setdiff1d(np.arange(graph.num_nodes), reached)
    return np.sort(np.concatenate([reached, others])[:num_nodes])


def _induced(graph: Graph, nodes: Ints) -> Graph:
    return Graph.from_scipy(graph.adjacency[nodes][:, nodes], graph.features[nodes], graph.labels[nodes])


def _scaled(step: str, rehearsals: Sequence[_Rehearsal], num_nodes: int, num_models: int) -> float:
    """The time of a step of the real size: a fixed part, and one that grows with the step's size."""
    if step not in SIZES:
        return rehearsals[-1].seconds[step]
    size = SIZES[step]
    seconds = np.array([each.seconds[step] for each in rehearsals])
    shares = np.array([size(each.num_nodes, each.num_models) for each in rehearsals]) / size(num_nodes, num_models)
    # Neither part takes less than no time; rows are relative, as a long rehearsal strays by more seconds than a short
    # one.
    design = np.column_stack([np.ones(len(shares)), shares]) / seconds[:, None]
    parts, _ = nnls(design, np.ones(len(seconds)))
    return float(parts.sum())
