"""A question that the paper leaves open: how do ε_R and its floor vary with the training fraction?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from bmpaudit.auditing.variant import Variant
from bmpaudit.paper.experiments import SAMPLERS, Configuration
from bmpaudit.paper.run import Run
from bmpaudit.paper.tasks import Task, cell_task, result_name, unflagged_task

STUDY_FRACTIONS = tuple(tenth / 10 for tenth in range(1, 10))
STUDY_MODELS = 300
STUDY_VARIANT = Variant("clean", ("full",), "strong")
STUDY_DATASET, STUDY_MODEL = "cora", "gcn"


def study_runs(out: Path, seeds: Sequence[int], num_models: int = STUDY_MODELS) -> list[Run]:
    """Cora, GCN, 10 % to 90 %, both samplers."""
    return [
        Run(Configuration(STUDY_DATASET, fraction, sampler, STUDY_MODEL), seed, num_models, out)
        for seed in seeds
        for sampler in SAMPLERS
        for fraction in STUDY_FRACTIONS
    ]


def study_tasks(runs: Sequence[Run]) -> list[Task]:
    """BMP-R of one attack (full edges, clean outputs, strong decisions), counted our way.

    And again without the nodes whose decision never varies: far from 50 % there are many, and they raise ε.
    """
    cells = [cell_task(run, STUDY_VARIANT, "bmp-r", "ours") for run in runs]
    return cells + [unflagged_task(run, STUDY_VARIANT, "bmp-r") for run in runs]


def study_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per fraction, sampler and seed; `excess` is p50 - floor, `p50_unflagged` is of varying decisions only."""
    names = ("p5", "p50", "p95", "floor", "accuracy", "num_nodes", "num_not_auditable", "num_constant")
    rows = []
    for run in runs:
        of, results = run.configuration, run.results
        cell = results.get(result_name(STUDY_VARIANT, "bmp-r", "ours"))
        unflagged = results.get(result_name(STUDY_VARIANT, "bmp-r", "unflagged"))
        if cell is not None and unflagged is not None:
            row = {"sampler": of.sampler, "train_fraction": of.train_fraction, "seed": run.seed}
            row |= {name: cell[name] for name in names}
            rows.append({**row, "excess": cell["p50"] - cell["floor"], "p50_unflagged": unflagged["p50"]})
    return pd.DataFrame(rows)
