"""Cells that disagree: what was looked into, and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from bmpaudit.estimation.diagnostics import LARGEST_R_HAT, LEAST_BULK_ESS
from bmpaudit.paper.experiments import KEY, Configuration, Variant
from bmpaudit.paper.reproduce import Run, Task, deciding_task, mhaar_task
from bmpaudit.paper.verdict import LEAST_WIDENING, RELATIVE_WIDENING

NOTEWORTHY = 0.15  # half of the least widening: what moves p50 less explains nothing
ON_THE_EDGE = 0.05


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
        (deciding, ["p50", "node", "node_prior", "node_counts", "node_is_constant", "p50_without_1", "p50_without_10"]),
        (mhaar, ["exact_p50", "mhaar_p50", "bulk_ess", "r_hat"]),
    ):
        if len(part):
            chosen = part[part["seed"] == 0][[*KEY, *names]]
            wrong = wrong.merge(chosen, on=list(KEY), how="left")
    return wrong.assign(reason=[reason(row) for row in wrong.to_dict("records")])


def reason(row: Mapping[Any, Any]) -> str:
    """The first explanation that brings the published value within reach, or that there is none among those tried."""
    published, ours = row["published_p50"], row["median"]
    widening = max(RELATIVE_WIDENING * published, LEAST_WIDENING)
    if _is_number(row.get("r_hat")) and (row["r_hat"] > LARGEST_R_HAT or row["bulk_ess"] < LEAST_BULK_ESS):
        chains, r_hat = row["mhaar_p50"], row["r_hat"]
        told = f"{chains:.1f} (R-hat {r_hat:.2f}, bulk ESS {row['bulk_ess']:.0f}) where the exact p50 of the same "
        told += f"counts is {row['exact_p50']:.1f}"
        nearer = abs(row["exact_p50"] - published) - abs(chains - published)
        if nearer > NOTEWORTHY:
            in_part = "" if abs(chains - published) <= widening else "in part "
            return f"{in_part}chains that have not converged: Algorithm 3 with the paper's settings gives {told}"
    for number, told in ((1, "one node"), (10, "ten nodes")):
        value = row.get(f"p50_without_{number}")
        if _is_number(value) and abs(value - published) <= widening and abs(value - row["p50"]) > NOTEWORTHY:
            return f"hangs on {told}: without {'it' if number == 1 else 'them'} p50 is {value:.1f}"
    if not any(_is_number(row.get(name)) for name in ("r_hat", "p50_without_1")):
        return "not looked into yet"
    if abs(row["miss"]) < ON_THE_EDGE:
        return f"on the edge of the rule, missed by {abs(row['miss']):.3f}"
    spread = row["highest"] - row["lowest"]
    return f"not explained by the estimator nor by single nodes; our seeds span {spread:.1f} about {ours:.1f}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value
