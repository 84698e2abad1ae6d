"""A graph and a plan small enough to audit in a second."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.finished import Audit, stored_subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.graph.graph import Graph
from bmpaudit.models import MLP, Training
from bmpaudit.pipeline.pipeline import STEPS, Pipeline
from bmpaudit.plan import AuditPlan
from bmpaudit.report.drawing import DEFAULT_PICTURES
from bmpaudit.report.page import data_of_page
from bmpaudit.samplers import Uniform

NUM_NODES = 48
QUIET = Runtime(quiet=True, num_threads=1)


def leaky_graph(num_nodes: int = NUM_NODES, **names: Any) -> Graph:
    """Random labels, and features that tell all nodes apart: what a model says of a node, it learnt from it.

    The last two nodes are isolated.
    """
    rng = np.random.default_rng(7)
    pairs = rng.integers(0, num_nodes - 2, size=(num_nodes, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    labels = np.concatenate([np.arange(3), rng.integers(0, 3, num_nodes - 3)])
    return Graph.from_edges(pairs, np.eye(num_nodes, dtype=np.float32), labels, **names)


def small_plan(**settings: Any) -> AuditPlan:
    """40 models of which scores are given out, two queries, definitions with one parameter."""
    usual: dict[str, Any] = {
        "sampler": Uniform(0.4),
        "model": MLP(hidden=8, dropout=0.0),
        "training": Training(epochs=15, learning_rate=0.1),
        "shadows": 40,
        "releases": ("clean",),
        "release_as": "scores",
        "queries": ("full", "none"),
        "attack": "gaussian",
        "definitions": ("bmp-r", "mp"),
    }
    return AuditPlan(**(usual | settings))


def tiny_plan(**settings: Any) -> AuditPlan:
    """As little as goes through every step."""
    usual: dict[str, Any] = {"shadows": 10, "queries": ("full",), "rules": "weak"}
    return small_plan(**(usual | {"definitions": ("bmp-r",)} | settings))


def pipeline(
    path: Path, plan: AuditPlan | None = None, *, may_run: Collection[str] = STEPS, **options: Any
) -> Pipeline:
    """The pipeline of the small graph in a folder."""
    subject = Subject(leaky_graph(), "", plan or small_plan())
    return Pipeline(subject, Workspace(path), QUIET, may_run=may_run, **options)


def run_audit(path: Path, plan: AuditPlan | None = None, *, pictures: bool = False, **options: Any) -> Audit:
    """The whole audit of the small graph in a folder."""
    steps = pipeline(path, plan, **options)
    with steps.prepared():
        steps.report(pictures=DEFAULT_PICTURES if pictures else "none")
        return steps.audit


def run_step(path: Path, step: str, *, trust_code: bool = False, pictures: bool = False) -> Any:
    """One step on what a folder holds, as the command of that name does it."""
    workspace = Workspace(path)
    steps = Pipeline(stored_subject(workspace, trust_code=trust_code), workspace, QUIET, may_run=(step,))
    with steps.prepared():
        if step == "report":
            return steps.report(pictures=DEFAULT_PICTURES if pictures else "none")
        if step == "sample":
            return steps.sample()
        return getattr(steps, {"train": "runs", "attack": "findings", "estimate": "audit"}[step])


def page_texts(folder: Path) -> str:
    """All that the page of an audit shows."""
    return json.dumps(data_of_page((folder / "report.html").read_text(encoding="utf-8")), ensure_ascii=False)


def always_the_first(graph: Any, rng: np.random.Generator) -> np.ndarray:
    """A sampler by which node 0 is always in."""
    return np.concatenate([[0], 1 + rng.permutation(graph.num_nodes - 1)[: graph.num_nodes // 2]])


def start(step: str, path: Path, plan: Any) -> None:
    """A step that may begin a folder."""
    steps = pipeline(path, plan)
    with steps.prepared():
        actions: dict[str, Callable[[], Any]] = {
            "audit": steps.report,
            "train": lambda: steps.runs,
            "sample": steps.sample,
        }
        actions[step]()


def times(folder: Path) -> dict[str, int]:
    """When each file was last written, but for the lock."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_mtime_ns
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def contents(folder: Path) -> dict[str, bytes]:
    """What is in each file."""
    return {name: (folder / name).read_bytes() for name in times(folder)}


def summary_of(folder: Path) -> dict[str, Any]:
    """The summary, which has to be JSON proper."""

    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is not JSON")

    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(), parse_constant=refuse)
    return summary


def without_timings(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in summary.items() if name != "timings"}
