"""Cells that disagree: what was tried, and what it explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from bmpaudit.auditing.variant import Variant
from bmpaudit.estimation.diagnostics import LARGEST_R_HAT, LEAST_BULK_ESS
from bmpaudit.paper.experiments import KEY, Configuration
from bmpaudit.paper.run import Run
from bmpaudit.paper.tasks import Task, deciding_task, mhaar_task
from bmpaudit.paper.verdict import LEAST_WIDENING, RELATIVE_WIDENING

NOTEWORTHY = 0.15  # half of the least widening: what moves p50 by less explains nothing
BORDERLINE = 0.05


def disagreement_tasks(verdicts: pd.DataFrame, runs: Sequence[Run]) -> list[Task]:
    """For each disagreeing cell, with the first seed: Algorithm 3 on the same counts, and the nodes that decide."""
    by_configuration = {run.configuration: run for run in runs if run.seed == 0}
    tasks = []
    for row in verdicts[~verdicts["agrees"]].to_dict("records"):
        run = by_configuration.get(Configuration(row["dataset"], row["train_fraction"], row["sampler"], row["model"]))
        if run is not None:
            variant = Variant(row["release"], (row["query"],), row["rule"])
            tasks += [deciding_task(run, variant, row["definition"]), mhaar_task(run, variant, row["definition"])]
    return tasks


def explain(verdicts: pd.DataFrame, deciding: pd.DataFrame, mhaar: pd.DataFrame) -> pd.DataFrame:
    """A row per disagreeing cell, with the results of `disagreement_tasks` and the reason they support."""
    wrong = verdicts[~verdicts["agrees"]]
    if not len(wrong):
        return wrong.assign(reason=pd.Series(dtype=str))
    node = ["node", "node_prior_prob", "node_counts", "node_is_constant"]
    for part, names in (
        (deciding, ["p50", *node, "p50_without_1", "p50_without_10"]),
        (mhaar, ["exact_p50", "mhaar_p50", "bulk_ess", "r_hat"]),
    ):
        if len(part):
            chosen = part[part["seed"] == 0][[*KEY, *names]]
            wrong = wrong.merge(chosen, on=list(KEY), how="left")
    return wrong.assign(reason=[reason(row) for row in wrong.to_dict("records")])


def reason(row: Mapping[Any, Any]) -> str:
    """The first explanation that brings the published value within reach, or that none of those tried does."""
    published, ours = row["published_p50"], row["median"]
    widening = max(RELATIVE_WIDENING * published, LEAST_WIDENING)
    if _is_number(row.get("r_hat")) and (row["r_hat"] > LARGEST_R_HAT or row["bulk_ess"] < LEAST_BULK_ESS):
        chain, exact = row["mhaar_p50"], row["exact_p50"]
        if abs(exact - published) - abs(chain - published) > NOTEWORTHY:
            partly = "" if abs(chain - published) <= widening else "partly "
            return (
                f"{partly}a chain that has not converged: Algorithm 3 with the paper's settings gives {chain:.1f} "
                f"(R-hat {row['r_hat']:.2f}, bulk ESS {row['bulk_ess']:.0f}), but the exact p50 of the same counts is "
                f"{exact:.1f}"
            )
    for number, nodes in ((1, "one node: without it"), (10, "ten nodes: without them")):
        value = row.get(f"p50_without_{number}")
        if _is_number(value) and abs(value - published) <= widening and abs(value - row["p50"]) > NOTEWORTHY:
            return f"depends on {nodes}, p50 is {value:.1f}"
    if not any(_is_number(row.get(name)) for name in ("r_hat", "p50_without_1")):
        return "not examined yet"
    if abs(row["miss"]) < BORDERLINE:
        return f"borderline: misses by {abs(row['miss']):.3f}"
    spread = row["highest"] - row["lowest"]
    return f"explained neither by the estimator nor by single nodes; our seeds span {spread:.1f} around {ours:.1f}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value
