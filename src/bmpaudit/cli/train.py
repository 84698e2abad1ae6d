"""Training shadow models."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import rich.box
from rich.table import Table
from rich.text import Text

from bmpaudit.cli.options import json_option, make_plan, make_runtime, out_option, plan_options, run_options
from bmpaudit.cli.root import cli, stdout
from bmpaudit.graph import Graph

if TYPE_CHECKING:
    from bmpaudit.shadow import ShadowRuns


@cli.command()
@click.argument("graph", metavar="[GRAPH]", required=False)
@out_option
@plan_options
@click.option("--keep-logits", is_flag=True, help="Keep the logits beside the margins.")
@click.option("--cost", "only_cost", is_flag=True, help="Only say how long it will take and how much disk.")
@run_options
@json_option
def train(
    graph: str | None,
    out: Path,
    plan_path: Path | None,
    keep_logits: bool,
    only_cost: bool,
    threads: int | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Train shadow models, or go on where one left off.

    GRAPH is a data set's name, an .npz archive, a folder with nodes and edges tables, or module:function.

    \b
    bmpaudit train cora --sampler snowball --model gat --shadows 1000 --out cora-gat
    """
    # Zarr takes a while to import; other commands need not wait for it.
    from bmpaudit.auditing.folder import AuditFolder
    from bmpaudit.auditing.steps import Subject, train_step
    from bmpaudit.shadow import estimate_cost

    loaded, source, plan = make_plan(graph, plan_path, settings, out)
    runtime = make_runtime(threads, quiet)
    if only_cost:
        cost = estimate_cost(loaded, plan.shadow_plan, plan.num_shadows, num_threads=threads, keep_logits=keep_logits)
        click.echo(json.dumps(vars(cost), indent=2) if as_json else cost)
        return
    runs = train_step(Subject(loaded, source, plan, AuditFolder(out)), runtime, keep_logits=keep_logits)
    if as_json:
        click.echo(json.dumps({"folder": str(out), "seed": plan.seed, **_summary(runs)}, indent=2))
    else:
        _print_runs(loaded, out, runs, plan.seed)
    if runs.num_models == 0:
        sys.exit(1)


def _summary(runs: ShadowRuns) -> dict[str, Any]:
    views = {
        view: {
            "mean_margin_in": _mean(margins[runs.memberships]),
            "mean_margin_out": _mean(margins[~runs.memberships]),
        }
        for view, margins in runs.statistics.items()
    }
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
    told = _summary(runs)
    table = Table(title=str(graph), title_justify="left", title_style="", box=rich.box.SIMPLE)
    table.add_column("query view")
    for column in ("margin, node in sample", "margin, node not in sample"):
        table.add_column(column, justify="right", no_wrap=True)
    for view, means in told["views"].items():
        table.add_row(view, *("-" if mean is None else f"{mean:.3f}" for mean in means.values()))
    stdout.print(table)
    accuracies = (told["train_accuracy"], told["held_out_accuracy"])
    shown = ["-" if accuracy is None else f"{accuracy:.1%}" for accuracy in accuracies]
    stdout.print(Text(f"{runs.num_models:,} shadow models in {out}"), soft_wrap=True)
    stdout.print(f"accuracy on their samples {shown[0]}, elsewhere {shown[1]}")
    if runs.failed:
        first = ", ".join(map(str, runs.failed[:10]))
        stdout.print(f"{len(runs.failed):,} models failed (seed {seed}; empty sample, or not finite): {first}")
