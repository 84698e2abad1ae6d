"""The command line: parse, call one function, print."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import rich.box
from rich.console import Console
from rich.table import Table

from bmpaudit import datasets, samplers
from bmpaudit.datasets import NAMED_DATASETS
from bmpaudit.errors import InputError
from bmpaudit.files import atomic_write
from bmpaudit.graph import Graph, GraphCleanedWarning
from bmpaudit.progress import progress_bar
from bmpaudit.samplers import Priors, Sampler
from bmpaudit.samplers.fraction import check_at_least_one, check_fraction

if TYPE_CHECKING:
    import pandas as pd

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)


def main() -> None:
    """Runs the command line; what the user got wrong is told in one line, with exit code 2."""
    warnings.showwarning = _show_warning
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as no_command:
        click.echo(no_command.format_message(), err=True)
        sys.exit(2)
    except (click.ClickException, InputError) as wrong:
        told = wrong.format_message() if isinstance(wrong, click.ClickException) else str(wrong)
        click.echo(f"bmpaudit: {' '.join(told.split())}", err=True)
        sys.exit(2)
    except OSError as failure:
        click.echo(f"bmpaudit: {failure}", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("bmpaudit: stopped", err=True)
        sys.exit(130)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="bmpaudit")
def cli() -> None:
    """How surely can someone who sees a trained graph neural network tell which nodes it was trained on?"""


@cli.group()
def data() -> None:
    """List and download data sets."""


@data.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def data_list(as_json: bool) -> None:
    """Show which data sets are at hand, and where data is looked for."""
    here = datasets.at_hand()
    folders = [str(folder) for folder in datasets.search_path()]
    if as_json:
        click.echo(json.dumps({"at_hand": here, "named": list(NAMED_DATASETS), "search_path": folders}, indent=2))
        return
    for name in [*NAMED_DATASETS, *(archive for archive in here if archive not in NAMED_DATASETS)]:
        click.echo(f"{name:<16}{'at hand' if name in here else f'to download it: bmpaudit data get {name}'}")
    click.echo(f"looked for in {', '.join(folders)}", err=True)


@data.command("get")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--to", "destination", type=click.Path(file_okay=False, path_type=Path), help="Folder [user cache].")
def data_get(names: tuple[str, ...], destination: Path | None) -> None:
    """Download data sets (cora, citeseer, pubmed), each file checked by its SHA-256."""
    for name in names:
        click.echo(datasets.get(name, destination, report=lambda told: click.echo(told, err=True)))


@cli.command("graph")
@click.argument("graph", metavar="GRAPH")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_graph(graph: str, as_json: bool) -> None:
    """Show the size of a graph: a data set's name, an .npz archive, or a folder of tables."""
    loaded = datasets.load(graph)
    if as_json:
        sizes = {name: getattr(loaded, name) for name in ("num_nodes", "num_edges", "num_features", "num_classes")}
        click.echo(json.dumps({**sizes, "content_hash": loaded.content_hash}, indent=2))
    else:
        click.echo(loaded)


SAMPLERS = ("uniform", "snowball", "bernoulli", "stratified", "degree-weighted", "random-walk")


@cli.command()
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--sampler",
    "names",
    type=click.Choice(SAMPLERS),
    multiple=True,
    help="May be repeated [uniform, snowball].",
)
@click.option("--train-fraction", type=float, default=0.25, show_default=True, help="Share of nodes to sample.")
@click.option("--fan-out", type=int, default=5, show_default=True, help="snowball: neighbours drawn for one node.")
@click.option("--restart", is_flag=True, help="snowball: go on from a new seed when the queue runs dry.")
@click.option("--num-roots", type=int, help="random-walk: number of walks [as many as fit the train fraction].")
@click.option("--walk-length", type=int, default=2, show_default=True, help="random-walk: steps of a walk.")
@click.option("--draws", type=int, default=100_000, show_default=True, help="Samples, where no formula gives γ.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random draws.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="CSV: γ and η of every node.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def priors(
    graph: str,
    names: tuple[str, ...],
    draws: int,
    seed: int,
    output: Path | None,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Show what the sampler alone gives away: prior probabilities γ and the floor they set (Proposition 1).

    GRAPH is a data set's name, an .npz archive, or a folder with nodes and edges tables.
    """
    loaded = datasets.load(graph)
    rows = []
    for name in names or SAMPLERS[:2]:
        sampler = _make_sampler(name, loaded, **settings)
        with progress_bar(f"{name} samples", draws, quiet=quiet) as progress:
            found = samplers.prior_probabilities(loaded, sampler, num_draws=draws, seed=seed, progress=progress)
        rows.append((name, found))
    if output is not None:
        with atomic_write(output) as temporary:
            _priors_of_nodes(loaded, rows).to_csv(temporary, index=False)
    if as_json:
        click.echo(json.dumps([_summary(name, found) for name, found in rows], indent=2))
    else:
        _print_priors(loaded, rows)


def _make_sampler(
    name: str,
    graph: Graph,
    train_fraction: float,
    fan_out: int,
    restart: bool,
    num_roots: int | None,
    walk_length: int,
) -> Sampler:
    if name == "snowball":
        return samplers.Snowball(train_fraction, fan_out, restart)
    if name == "random-walk":
        fitting = _fitting_roots(graph, train_fraction, walk_length) if num_roots is None else num_roots
        return samplers.RandomWalk(fitting, walk_length)
    by_fraction: dict[str, Callable[[float], Sampler]] = {
        "uniform": samplers.Uniform,
        "bernoulli": samplers.Bernoulli,
        "stratified": samplers.Stratified,
        "degree-weighted": samplers.DegreeWeighted,
    }
    return by_fraction[name](train_fraction)


def _fitting_roots(graph: Graph, train_fraction: float, walk_length: int) -> int:
    check_fraction(train_fraction)
    check_at_least_one(walk_length=walk_length)
    return max(1, round(train_fraction * graph.num_nodes / (walk_length + 1)))


def _summary(name: str, found: Priors) -> dict[str, Any]:
    return {
        "sampler": name,
        "settings": vars(found.sampler),
        "num_draws": found.num_draws,
        "prior_prob": {
            "min": float(found.prob.min()),
            "mean": float(found.prob.mean()),
            "max": float(found.prob.max()),
            "max_standard_error": float(found.standard_error.max()),
        },
        "num_never_drawn": found.num_never_drawn,
        # JSON has no infinity; null says that no ε is large enough.
        "floor": {side: value if abs(value) < float("inf") else None for side, value in vars(found.floor).items()},
    }


def _print_priors(graph: Graph, rows: list[tuple[str, Priors]]) -> None:
    table = Table(title=str(graph), title_justify="left", title_style="", box=rich.box.SIMPLE)
    table.add_column("sampler")
    for column in ("γ min", "γ mean", "γ max", "±", "ε_L ≥", "ε_R ≥"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("draws", justify="right", no_wrap=True)
    for name, found in rows:
        values = (found.prob.min(), found.prob.mean(), found.prob.max(), found.standard_error.max())
        table.add_row(
            name,
            *(f"{value:.4f}" for value in values),
            f"{found.floor.left:.2f}",
            f"{found.floor.right:.2f}",
            "formula" if found.is_exact else f"{found.num_draws:,}",
        )
    stdout.print(table)
    stdout.print("γ: probability that a node is in the training sample.")
    stdout.print("ε_L, ε_R: what the sampler alone gives away, whatever is trained (Prop. 1).")


def _priors_of_nodes(graph: Graph, rows: list[tuple[str, Priors]]) -> pd.DataFrame:
    import pandas as pd

    nodes = graph.node_names or range(graph.num_nodes)
    return pd.concat(
        pd.DataFrame(
            {
                "sampler": name,
                "node": nodes,
                "prior_prob": found.prob,
                "standard_error": found.standard_error,
                "prior_odds": found.odds,
            }
        )
        for name, found in rows
    )


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    prefix = "" if issubclass(category, GraphCleanedWarning) else f"{category.__name__}: "
    # One line, as it is: neither folded at the width of the terminal, nor read as Rich's markup.
    stderr.print(f"bmpaudit: {prefix}{message}", style="yellow", soft_wrap=True, markup=False)
