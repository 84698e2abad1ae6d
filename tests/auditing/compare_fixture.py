"""Folders of finished audits with as little in them as a comparison reads, made from small counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bmpaudit.attack import ErrorCounts
from bmpaudit.estimation import Posterior, estimate
from bmpaudit.plan import AuditPlan
from bmpaudit.plan.plan_file import format_plan, plan_table
from bmpaudit.samplers import Snowball, Uniform

VARIANT = "full_clean_strong"
UNIFORM, SNOWBALL = AuditPlan(sampler=Uniform(0.25)), AuditPlan(sampler=Snowball(0.25))


def counts_of(false_positives: npt.ArrayLike, false_negatives: npt.ArrayLike, **other: Any) -> ErrorCounts:
    """Errors on a few nodes, 300 models without and 100 with each."""
    settings: dict[str, Any] = {"num_out": 300, "num_in": 100, "prior_prob": 0.25, **other}
    return ErrorCounts.from_arrays(
        false_positives=np.asarray(false_positives), false_negatives=np.asarray(false_negatives), **settings
    )


def weak() -> ErrorCounts:
    return counts_of([100, 90, 110], [60, 65, 55])


def strong() -> ErrorCounts:
    return counts_of([1, 90, 300], [5, 65, 0])


def posterior_of(counts: ErrorCounts, definition: Any = "bmp-r") -> Posterior:
    return estimate(counts, definition)


def write_folder(
    path: Path,
    counts: ErrorCounts,
    *,
    plan: AuditPlan = UNIFORM,
    definitions: tuple[str, ...] = ("bmp-r",),
    graph_hash: str = "abc",
    names: list[str] | None = None,
    title: str = "tiny, Uniform 25 %, GCN",
    proven: dict[str, Any] | None = None,
    leakage_found: bool = True,
) -> Path:
    (path / "posteriors").mkdir(parents=True)
    (path / "plan.toml").write_text(format_plan(plan, "tiny"), encoding="utf-8")
    for definition in definitions:
        posterior_of(counts, definition).save(path / "posteriors" / f"{VARIANT}_{definition}.npz")
    count = counts.num_nodes
    table = {"node": counts.node, "name": names or [str(node) for node in counts.node], "class": ["a"] * count}
    pd.DataFrame(table).to_parquet(path / "nodes.parquet", index=False)
    told = {
        "format": 1,
        "title": title,
        "fingerprint": str(path),
        "graph": {"content_hash": graph_hash},
        "plan": plan_table(plan, "tiny"),
        "variants": {VARIANT: {"proven": proven, "posteriors": dict.fromkeys(definitions)}},
        "null_control": {"leakage_found": leakage_found},
    }
    (path / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    return path
