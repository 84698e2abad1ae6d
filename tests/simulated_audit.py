"""Whole audits of answers that are drawn from normal distributions: what leaks about each node is known."""

from __future__ import annotations

import numpy as np

from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.finished import Audit
from bmpaudit.graph import Graph
from bmpaudit.pipeline.outside_runs import outside_plan
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowRuns
from bmpaudit.util.values import Floats


def simulated_audit(
    num_models: int, shifts: Floats, seed: int, graph: Graph | None = None, prior: float = 0.25
) -> Audit:
    """Nodes answer with a standard normal number, which membership shifts: by 0 if nothing leaks, by 10 if all does."""
    if graph is None:
        graph = Graph.from_table(np.eye(len(shifts), 2, dtype=np.float32), np.arange(len(shifts)) % 2)
    sampler = Uniform(prior)
    memberships = draw_memberships(graph, sampler, num_models, seed=seed)
    noise = np.random.default_rng([seed, num_models]).normal(size=memberships.shape)
    answers = {"full_clean": (noise + shifts * memberships).astype(np.float32)}
    return audit_of(ShadowRuns.from_arrays(memberships, answers, graph), graph, sampler, seed)


def audit_of(runs: ShadowRuns, graph: Graph, sampler: Uniform, seed: int) -> Audit:
    """The audit of answers that are known."""
    plan = AuditPlan(sampler=sampler, definitions="bmp-r", seed=seed)
    steps = Pipeline(Subject(graph, "", outside_plan(plan, runs)), None, Runtime(quiet=True, num_threads=1))
    steps.runs = runs
    return steps.audit


def shifted(num_nodes: int, num_leaking: int, shift: float) -> Floats:
    """Shifts of all nodes if the first ones leak."""
    return np.where(np.arange(num_nodes) < num_leaking, shift, 0.0)
