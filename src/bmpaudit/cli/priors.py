"""What the sampler alone gives away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import rich.box
from rich.table import Table

from bmpaudit import datasets, samplers
from bmpaudit.cli.root import cli, stdout
from bmpaudit.cli.sampler_options import SAMPLERS, make_sampler, sampler_options
from bmpaudit.files import atomic_write
from bmpaudit.graph import Graph
from bmpaudit.plain import plain
from bmpaudit.progress import progress_bar
from bmpaudit.samplers import Priors

if TYPE_CHECKING:
    import pandas as pd


@cli.command()
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--sampler",
    "names",
    type=click.Choice(SAMPLERS),
    multiple=True,
    help="May be repeated [uniform, snowball].",
)
@sampler_options
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

    GRAPH is a data set's name, an .npz archive, a folder with nodes and edges tables, or module:function.

    \b
    bmpaudit priors cora --sampler snowball --train-fraction 0.5
    """
    loaded = datasets.load(graph)
    rows = []
    for name in names or SAMPLERS[:2]:
        sampler = make_sampler(name, **settings)
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
        "floor": plain(vars(found.floor)),
    }


def _print_priors(graph: Graph, rows: list[tuple[str, Priors]]) -> None:
    table = Table(title=str(graph), title_justify="left", title_style="", box=rich.box.SIMPLE)
    table.add_column("sampler")
    for column in ("γ min", "γ mean", "γ max", "±", "ε_L", "ε_R"):
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
    stdout.print("ε_L, ε_R: the floor that the sampler alone sets, whatever is trained (Prop. 1).")
    if not all(found.is_exact for _, found in rows):
        stdout.print("Where γ is estimated from draws, the floor is a lower bound with 95 % confidence.")
    for name, found in rows:
        if found.num_never_drawn:
            stdout.print(f"{name}: {found.num_never_drawn:,} nodes were never drawn; more --draws raise ε_L.")


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
