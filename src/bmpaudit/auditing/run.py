"""One call from graph to report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bmpaudit import datasets
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.pipeline import Pipeline
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.report.picture_formats import DEFAULT_PICTURES
from bmpaudit.shadow.models import as_model


def audit(
    graph: Graph | str | Path | Any,
    plan: AuditPlan | None = None,
    *,
    train: Callable[[Any, Any, int], None] | None = None,
    folder: str | Path | None = None,
    pictures: str = DEFAULT_PICTURES,
    runtime: Runtime | None = None,
    store: str | None = None,
    **settings: Any,
) -> Audit:
    """Runs the whole pipeline: sample, train, attack, estimate, report.

    Args:
        graph: A graph; a `Data` object of PyTorch Geometric; a table as a pair of features and labels, which is a graph
            without edges; or what `datasets.load` takes.
        plan: What to do; the defaults if not given.
        train: How to train what `model=`, a function of (num_features, num_classes), makes. Called with the module, the
            `Data` of the induced training graph and a seed.
        folder: Where to keep everything, just as `bmpaudit audit --out` does: a stopped audit resumes, a finished one
            is returned, and models can be added. Nothing is kept if not given.
        pictures: Formats of the pictures in the folder, separated by commas (`png`, `pdf`, `svg`), or `none`.
        runtime: Threads, workers and progress.
        store: An address that fsspec knows, such as `s3://bucket/audit`, where the shadow models of a new folder are
            kept.
        **settings: Fields of the plan, such as `sampler="snowball"` or `shadows=64`, which override it.

    Raises:
        InputError: if an argument is impossible, or the folder belongs to another plan or graph.

    >>> result = audit("demo", sampler="snowball", shadows=16, definitions="bmp-r")
    >>> result.title
    'demo, Snowball 25 %, GCN'
    """
    base = plan or AuditPlan()
    if train is not None:
        if "model" not in settings:
            raise InputError("train must come with model, the function that makes the module to train")
        settings["model"] = as_model(settings["model"], train=train)
    subject = Subject(*given_graph(graph), base.replace(**settings) if settings else base)
    pipeline = Pipeline(subject, None if folder is None else Workspace(folder, store), runtime)
    with pipeline.prepared():
        pipeline.report(pictures=pictures)
        return pipeline.audit


def given_graph(data: Graph | str | Path | Any) -> tuple[Graph, str]:
    """The graph that `audit` is given, and its source; empty for an object."""
    if isinstance(data, (str, Path)):
        return datasets.load(data), source_name(data)
    if isinstance(data, Graph):
        return data, ""
    if isinstance(data, tuple):
        if len(data) != 2:
            raise InputError(f"a table must be a pair of features and labels, got {len(data)} parts")
        return Graph.from_table(*data), ""
    return Graph.from_pyg(data), ""


def source_name(source: str | Path) -> str:
    """A graph's source as a plan records it: paths in full, so that the folder can be used from anywhere."""
    name = str(source)
    return str(Path(name).resolve()) if name not in datasets.NAMED_DATASETS and Path(name).exists() else name
