"""A question that the paper leaves: how do ε_R, its floor and the model's share move with the training fraction?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from bmpaudit.paper import measures
from bmpaudit.paper.experiments import SAMPLINGS, Configuration, Variant
from bmpaudit.paper.reproduce import Run, Task, cell_name

STUDY_FRACTIONS = tuple(tenth / 10 for tenth in range(1, 10))
STUDY_MODELS = 300
STUDY_VARIANT = Variant("full", "clean", "strong")
UNFLAGGED = f"{STUDY_VARIANT.name}/bmp-r/unflagged"
STUDY_DATASET, STUDY_MODEL = "cora", "gcn"


def study_runs(out: Path, seeds: Sequence[int], num_models: int = STUDY_MODELS) -> list[Run]:
    """Cora, GCN, 10 % to 90 %, both samplers."""
    return [
        Run(Configuration(STUDY_DATASET, fraction, sampling, STUDY_MODEL), seed, num_models, out)
        for seed in seeds
        for sampling in SAMPLINGS
        for fraction in STUDY_FRACTIONS
    ]


def study_tasks(runs: Iterable[Run]) -> list[Task]:
    """BMP-R of the attack with everything: full edges, clean output, strong decisions, counted our way.

    And once more without the nodes whose decision never varies: far from 50 % there are many, and they raise ε.
    """
    chosen = list(runs)
    cells = [
        Task(
            run,
            cell_name(STUDY_VARIANT, "bmp-r", "ours"),
            lambda counts: measures.measure_cell(counts.error_counts(STUDY_VARIANT, "ours"), "bmp-r"),
        )
        for run in chosen
    ]
    return cells + [
        Task(
            run,
            UNFLAGGED,
            lambda counts: measures.measure_unflagged(counts.error_counts(STUDY_VARIANT, "ours"), "bmp-r"),
        )
        for run in chosen
    ]


def study_records(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a fraction, sampler and seed; `excess` is p50 - floor, `p50_unflagged` that of the varying decisions."""
    rows = []
    for run in runs:
        found, unflagged = (run.results.get(name) for name in (cell_name(STUDY_VARIANT, "bmp-r", "ours"), UNFLAGGED))
        if found is not None and unflagged is not None:
            key = {"sampling": run.configuration.sampling, "train_fraction": run.configuration.train_fraction}
            names = ("p5", "p50", "p95", "floor", "accuracy", "num_nodes", "num_not_auditable", "num_constant")
            told = {name: found[name] for name in names}
            told |= {"excess": found["p50"] - found["floor"], "p50_unflagged": unflagged["p50"]}
            rows.append({**key, "seed": run.seed, **told})
    return pd.DataFrame(rows)
