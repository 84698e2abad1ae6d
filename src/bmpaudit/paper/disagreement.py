"""Cells that disagree: what was looked into, and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from bmpaudit.paper.experiments import KEY, Configuration, Variant
from bmpaudit.paper.reproduce import Run, Task, deciding_task, mhaar_task
from bmpaudit.paper.verdict import LEAST_WIDENING, RELATIVE_WIDENING


def looking_tasks(verdicts: pd.DataFrame, runs: Sequence[Run]) -> list[Task]:
    """For each disagreeing cell, with the first seed: Algorithm 3 on the same counts, and the nodes that decide."""
    by_configuration = {run.configuration: run for run in runs if run.seed == 0}
    tasks = []
    for row in verdicts[~verdicts["agrees"]].to_dict("records"):
        run = by_configuration.get(Configuration(row["dataset"], row["train_fraction"], row["sampling"], row["model"]))
        if run is not None:
            variant = Variant(row["edges"], row["output"], row["decision"])
            tasks += [deciding_task(run, variant, row["measure"]), mhaar_task(run, variant, row["measure"])]
    return tasks


def explain(verdicts: pd.DataFrame, deciding: pd.DataFrame, mhaar: pd.DataFrame) -> pd.DataFrame:
    """One row a disagreeing cell, with what was found and the reason that it supports."""
    wrong = verdicts[~verdicts["agrees"]]
    if not len(wrong):
        return wrong.assign(reason=pd.Series(dtype=str))
    for part, names in (
        (deciding, ["node", "node_prior", "node_counts", "node_is_constant", "p50_without_1", "p50_without_10"]),
        (mhaar, ["mhaar_p50", "chains_lowest_p50", "chains_highest_p50", "bulk_ess"]),
    ):
        if len(part):
            chosen = part[part["seed"] == 0][[*KEY, *names]]
            wrong = wrong.merge(chosen, on=list(KEY), how="left")
    return wrong.assign(reason=[reason(row) for row in wrong.to_dict("records")])


def reason(row: Mapping[Any, Any]) -> str:
    """The first explanation that brings the published value within reach, or that there is none among those tried."""
    published = row["published_p50"]
    widening = max(RELATIVE_WIDENING * published, LEAST_WIDENING)

    def reaches(value: Any) -> bool:
        return value is not None and value == value and abs(value - published) <= widening

    if reaches(row.get("mhaar_p50")):
        return (
            f"Algorithm 3 with the paper's settings gives {row['mhaar_p50']:.1f} on our counts (bulk ESS "
            f"{row['bulk_ess']:.0f}): the exact posterior differs from what the chains show"
        )
    for number, told in ((1, "one node"), (10, "ten nodes")):
        value = row.get(f"p50_without_{number}")
        if reaches(value):
            return f"hangs on {told}: without {'it' if number == 1 else 'them'} p50 is {value:.1f}"
    spread = row["highest"] - row["lowest"]
    return f"not explained by the estimator, nor by single nodes; our seeds span {spread:.1f}"
