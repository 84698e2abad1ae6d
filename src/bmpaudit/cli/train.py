"""Training shadow models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from bmpaudit.arrays import Flags
from bmpaudit.cli.options import (
    dask_option,
    graph_argument,
    json_option,
    make_runtime,
    out_option,
    quiet_option,
    store_option,
    threads_option,
)
from bmpaudit.cli.plan_options import plan_options
from bmpaudit.cli.plan_settings import check_trainable, make_subject
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import RUN, SectionedCommand, SectionOption
from bmpaudit.cli.show import print_table, simple_table
from bmpaudit.cli.terminal import console, echo
from bmpaudit.graph import Graph
from bmpaudit.plain import to_json
from bmpaudit.tables import model_blocks

if TYPE_CHECKING:
    from bmpaudit.shadow import ShadowRuns


def _parse_range(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:  # noqa: ARG001
    if value is None:
        return None
    start, _, stop = value.partition(":")
    if not (start.isdecimal() and stop.isdecimal()):
        raise click.BadParameter(f"must be START:STOP, such as 0:256, got {value!r}")
    return int(start), int(stop)


@cli.command(cls=SectionedCommand)
@graph_argument
@out_option
@plan_options(without=("attack", "decision", "estimation", "permutations"))
@click.option(
    "--keep-logits", is_flag=True, cls=SectionOption, section=RUN, help="Store the logits beside the statistics."
)
@click.option(
    "--cost",
    "only_cost",
    is_flag=True,
    cls=SectionOption,
    section=RUN,
    help="Only estimate how long training will take and how much disk space it needs.",
)
@click.option(
    "--range",
    "chosen",
    metavar="START:STOP",
    callback=_parse_range,
    cls=SectionOption,
    section=RUN,
    help="Train only models START to STOP - 1, both multiples of 32, beside other processes that train other ranges "
    "into the same folder.",
)
@store_option
@threads_option
@dask_option
@quiet_option
@json_option
def train(
    graph: str | None,
    out: Path,
    plan_path: Path | None,
    keep_logits: bool,
    only_cost: bool,
    chosen: tuple[int, int] | None,
    store: str | None,
    threads: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Train shadow models, or resume training.

    GRAPH is the name of a data set, an .npz archive, a folder with nodes and edges tables, or module:function. Without
    it, the plan of the audit folder is used.

    \b
    bmpaudit train cora --sampler snowball --model gat --shadows 1000 --out cora-gat
    bmpaudit train --out cora-gat --dask tcp://scheduler:8786
    bmpaudit train --out cora-gat --range 0:256
    """
    from bmpaudit.auditing.pipeline import Pipeline
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.shadow import estimate_cost

    subject = make_subject(graph, plan_path, settings, out)
    check_trainable(subject, out)
    plan = subject.plan
    if only_cost:
        cost = estimate_cost(
            subject.graph, plan.shadow_plan, plan.shadows, num_threads=threads, keep_logits=keep_logits
        )
        echo(to_json(vars(cost)) if as_json else cost)
        return
    if chosen is not None and dask is not None:
        raise click.UsageError("--range is for machines without a scheduler: give either --range or --dask")
    pipeline = Pipeline(subject, Workspace(out, store), make_runtime(threads, quiet, dask), keep_logits=keep_logits)
    if chosen is not None:
        done = pipeline.train_range(*chosen)
        _print_range(out, *chosen, done, as_json)
        return
    with pipeline.prepared():
        runs = pipeline.runs
    if as_json:
        echo(to_json({"folder": str(out), "seed": plan.seed, **_summary(runs)}))
    else:
        _print_runs(subject.graph, out, runs, plan.seed)
    if runs.num_models == 0:
        sys.exit(1)


def _print_range(out: Path, start: int, stop: int, done: Flags, as_json: bool) -> None:
    stop, num_done = min(stop, len(done)), int(done.sum())
    if as_json:
        echo(to_json({"folder": str(out), "range": [start, stop], "done": num_done, "shadows": len(done)}))
    else:
        echo(f"models {start:,} to {stop - 1:,} are in {out}, which has {num_done:,} of {len(done):,}")


def _mean_margins(runs: ShadowRuns, view: str) -> dict[str, Any]:
    totals, counts = np.zeros(2), np.zeros(2)
    for rows in model_blocks(*runs.memberships.shape):
        margins, members = runs.statistics[view][rows], runs.memberships[rows]
        for side, is_side in enumerate((members, ~members)):
            totals[side] += margins[is_side].sum(dtype=np.float64)
            counts[side] += np.count_nonzero(is_side)
    return {
        name: float(totals[side] / counts[side]) if counts[side] else None
        for side, name in enumerate(("mean_margin_in", "mean_margin_out"))
    }


def _summary(runs: ShadowRuns) -> dict[str, Any]:
    views = {view: _mean_margins(runs, view) for view in runs.statistics}
    return {
        "num_models": runs.num_models,
        "failed": list(runs.failed),
        "train_accuracy": _mean(runs.train_accuracy),
        "held_out_accuracy": _mean(runs.held_out_accuracy),
        "views": views,
    }


def _mean(values: np.ndarray) -> float | None:
    """None where there is nothing to average: JSON has no NaN."""
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None


def _print_runs(graph: Graph, out: Path, runs: ShadowRuns, seed: int) -> None:
    from rich.text import Text

    summary = _summary(runs)
    table = simple_table("view", "mean statistic, node in sample", "mean statistic, node not in sample")
    for view, means in summary["views"].items():
        table.add_row(view, *("-" if mean is None else f"{mean:.3f}" for mean in means.values()))
    console().print(Text(str(graph)))
    print_table(table)
    accuracies = (summary["train_accuracy"], summary["held_out_accuracy"])
    shown = ["-" if accuracy is None else f"{accuracy:.1%}" for accuracy in accuracies]
    console().print(Text(f"{runs.num_models:,} shadow models in {out}"), soft_wrap=True)
    console().print(f"accuracy on their samples {shown[0]}, elsewhere {shown[1]}")
    if runs.failed:
        first = ", ".join(map(str, runs.failed[:10]))
        console().print(f"{len(runs.failed):,} models failed (seed {seed}; empty sample, or not finite): {first}")
