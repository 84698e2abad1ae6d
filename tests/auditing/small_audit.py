"""A graph and a plan small enough to audit in a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit import Graph
from bmpaudit.auditing.folder import AuditFolder
from bmpaudit.auditing.steps import Subject
from bmpaudit.plan import AuditPlan
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import MLP, QueryView, Training

NUM_NODES = 48


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
    """40 models, one or two ways of asking, definitions with one parameter."""
    usual: dict[str, Any] = {
        "sampler": Uniform(0.4),
        "model": MLP(hidden=8, dropout=0.0),
        "training": Training(epochs=15, learning_rate=0.1),
        "num_shadows": 40,
        "views": (QueryView("full", "clean"), QueryView("none", "noisy")),
        "null_permutations": 3,
        "definitions": ("bmp-r", "mp"),
    }
    return AuditPlan(**(usual | settings))


def small_subject(path: Path, source: str = "", **settings: Any) -> Subject:
    """The small graph, and a folder for its audit."""
    return Subject(leaky_graph(), source, small_plan(**settings), AuditFolder(path))


def stamps(folder: Path) -> dict[str, int]:
    """When each file was last written, but for the lock."""
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def contents(folder: Path) -> dict[str, bytes]:
    """What is in each file."""
    return {name: (folder / name).read_bytes() for name in stamps(folder)}
