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

from bmpaudit import datasets
from bmpaudit.cli.root import cli, stdout
from bmpaudit.cli.sampler_options import SAMPLERS, make_sampler, sampler_options
from bmpaudit.graph import Graph
from bmpaudit.progress import progress_bar

if TYPE_CHECKING:
    from bmpaudit.shadow import ShadowPlan, ShadowRuns


@cli.command()
@click.argument("graph", metavar="GRAPH")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder to keep them in.")
@click.option("--shadows", type=int, default=1_000, show_default=True, help="Number of shadow models; may be raised.")
@click.option(
    "--sampler", "sampler_name", type=click.Choice(SAMPLERS), default="uniform", show_default=True, help="Who is in."
)
@sampler_options
@click.option(
    "--model", type=click.Choice(["gcn", "gat", "mlp"]), default="gcn", show_default=True, help="What is trained."
)
@click.option("--hidden", type=int, help="Hidden units, for gat of one head [16; gat 4].")
@click.option("--heads", type=int, help="gat: heads of the hidden layers [8].")
@click.option("--layers", type=int, default=2, show_default=True, help="Layers of the model.")
@click.option("--dropout", type=float, default=0.5, show_default=True, help="Share dropped while training.")
@click.option("--epochs", type=int, default=100, show_default=True, help="Steps of Adam.")
@click.option("--learning-rate", type=float, default=0.01, show_default=True, help="Of Adam.")
@click.option("--weight-decay", type=float, default=5e-4, show_default=True, help="L2 penalty, all parameters.")
@click.option("--noise-std", type=float, default=0.25, show_default=True, help="Noise on the last layer, noisy views.")
@click.option(
    "--engine", type=click.Choice(["native", "torch"]), default="native", show_default=True, help="What trains them."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all random numbers.")
@click.option("--threads", type=int, help="Threads to train on [all cores].")
@click.option("--keep-logits", is_flag=True, help="Keep the logits beside the margins.")
@click.option("--cost", "only_cost", is_flag=True, help="Only say how long it will take and how much disk.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def train(
    graph: str,
    out: Path,
    shadows: int,
    threads: int | None,
    keep_logits: bool,
    only_cost: bool,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Train shadow models, or go on where one left off.

    GRAPH is a data set's name, an .npz archive, or a folder with nodes and edges tables.
    """
    # Zarr takes a while to import; other commands need not wait for it.
    from bmpaudit.shadow import estimate_cost, train_shadows

    loaded = datasets.load(graph)
    plan = _make_plan(loaded, **settings)
    if only_cost:
        cost = estimate_cost(loaded, plan, shadows, num_threads=threads, keep_logits=keep_logits)
        click.echo(json.dumps(vars(cost), indent=2) if as_json else cost)
        return
    with progress_bar("shadow models", shadows, quiet=quiet) as progress:
        runs = train_shadows(
            loaded,
            plan,
            shadows,
            out,
            num_threads=threads,
            keep_logits=keep_logits,
            progress=progress,
            report=lambda told: click.echo(f"bmpaudit: {told}", err=True),
        )
    if as_json:
        click.echo(json.dumps({"folder": str(out), "seed": plan.seed, **_summary(runs)}, indent=2))
    else:
        _print_runs(loaded, out, runs, plan.seed)
    if runs.num_models == 0:
        sys.exit(1)


def _make_plan(
    graph: Graph,
    *,
    sampler_name: str,
    model: str,
    hidden: int | None,
    heads: int | None,
    layers: int,
    dropout: float,
    epochs: int,
    learning_rate: float,
    weight_decay: float,
    noise_std: float,
    engine: Any,
    seed: int,
    **sampler_settings: Any,
) -> ShadowPlan:
    from bmpaudit.shadow import GAT, GCN, MLP, ShadowPlan, Training

    if heads is not None and model != "gat":
        raise click.UsageError(f"--heads is for --model gat, got --model {model}")
    given: dict[str, Any] = {name: value for name, value in (("hidden", hidden), ("heads", heads)) if value is not None}
    kinds: dict[str, type[GCN] | type[GAT] | type[MLP]] = {"gcn": GCN, "gat": GAT, "mlp": MLP}
    return ShadowPlan(
        sampler=make_sampler(sampler_name, graph, **sampler_settings),
        model=kinds[model](layers=layers, dropout=dropout, **given),
        training=Training(epochs, learning_rate, weight_decay),
        noise_std=noise_std,
        seed=seed,
        engine=engine,
    )


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
    stdout.print(f"{runs.num_models:,} shadow models in {out}")
    stdout.print(f"accuracy on their samples {shown[0]}, elsewhere {shown[1]}")
    if runs.failed:
        first = ", ".join(map(str, runs.failed[:10]))
        stdout.print(f"{len(runs.failed):,} models failed (seed {seed}; empty sample, or not finite): {first}")
