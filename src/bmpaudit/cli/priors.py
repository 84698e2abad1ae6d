"""What the sampler alone gives away."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bmpaudit import datasets, registry
from bmpaudit.cli import sections
from bmpaudit.cli.options import json_option, quiet_option, threads_option
from bmpaudit.cli.plan_options import set_option, setting_options
from bmpaudit.cli.plan_settings import settings_by_sampler
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import SectionedCommand, SectionOption
from bmpaudit.cli.show import simple_table
from bmpaudit.cli.terminal import console, echo
from bmpaudit.files import atomic_write
from bmpaudit.graph import Graph
from bmpaudit.plain import to_json
from bmpaudit.progress import progress_bar
from bmpaudit.registry import ENTRIES, SAMPLER
from bmpaudit.report.words import number
from bmpaudit.samplers import Priors, prior_probabilities

if TYPE_CHECKING:
    import pandas as pd

SHOWN_BY_DEFAULT = ("uniform", "snowball")


@cli.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--sampler",
    "names",
    metavar="NAME",
    multiple=True,
    cls=SectionOption,
    section=sections.SAMPLER,
    default_text=" ".join(SHOWN_BY_DEFAULT),
    help=f"How the training sample is drawn ({', '.join(ENTRIES[SAMPLER])}, or module:Name; can be repeated).",
)
@setting_options("sampler")
@set_option
@click.option(
    "--draws",
    type=int,
    default=100_000,
    show_default=True,
    cls=SectionOption,
    help="Number of samples drawn where γ has no formula.",
)
@click.option("--seed", type=int, default=0, show_default=True, cls=SectionOption, help="Random seed of the draws.")
@click.option(
    "--output",
    metavar="FILE.csv",
    type=click.Path(dir_okay=False, path_type=Path),
    cls=SectionOption,
    help="CSV file for γ and η of every node.",
)
@threads_option
@quiet_option
@json_option
def priors(
    graph: str,
    names: tuple[str, ...],
    draws: int,
    seed: int,
    output: Path | None,
    threads: int | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Show what the sampler alone gives away: prior probabilities γ and the floor they set (Proposition 1).

    GRAPH is the name of a data set, an .npz archive, a folder with nodes and edges tables, or module:function.

    \b
    bmpaudit priors cora --sampler snowball --train-fraction 0.5
    """
    loaded = datasets.load(graph)
    rows = []
    for name, chosen in settings_by_sampler(names or SHOWN_BY_DEFAULT, settings).items():
        sampler = registry.build(SAMPLER, {"name": name, **chosen})
        with progress_bar(f"{name} samples", draws, quiet=quiet) as progress:
            drawn = prior_probabilities(
                loaded, sampler, num_draws=draws, seed=seed, progress=progress, num_threads=threads
            )
        rows.append((name, drawn))
    if output is not None:
        with atomic_write(output) as temporary:
            _priors_of_nodes(loaded, rows).to_csv(temporary, index=False)
    if as_json:
        echo(to_json([_summary(name, each) for name, each in rows]))
    else:
        _print_priors(loaded, rows)


def _summary(name: str, priors: Priors) -> dict[str, Any]:
    return {
        "sampler": name,
        "settings": registry.settings_of(priors.sampler),
        "num_draws": priors.num_draws,
        "prior_prob": {
            "min": float(priors.prob.min()),
            "mean": float(priors.prob.mean()),
            "max": float(priors.prob.max()),
            "max_standard_error": float(priors.standard_error.max()),
        },
        "num_never_drawn": priors.num_never_drawn,
        "floor": asdict(priors.floor),
    }


def _print_priors(graph: Graph, rows: list[tuple[str, Priors]]) -> None:
    table = simple_table("sampler", "γ min", "γ mean", "γ max", "±", "ε_L ≥", "ε_R ≥", "draws")
    for name, each in rows:
        values = (each.prob.min(), each.prob.mean(), each.prob.max(), each.standard_error.max())
        table.add_row(
            name,
            *(f"{value:.4f}" for value in values),
            number(each.floor.left),
            number(each.floor.right),
            "formula" if each.is_exact else f"{each.num_draws:,}",
        )
    console().print(str(graph))
    console().print(table)
    console().print("γ: probability that a node is in the training sample.")
    console().print("ε_L, ε_R: the floor that the sampler alone sets, whatever is trained (Prop. 1).")
    levels = {each.floor.level for _, each in rows if not each.is_exact}
    for level in sorted(level for level in levels if level is not None):
        console().print(f"Where γ was drawn, the floor holds with {100 * level:g} % confidence.")


def _priors_of_nodes(graph: Graph, rows: list[tuple[str, Priors]]) -> pd.DataFrame:
    import pandas as pd

    nodes = graph.node_names or range(graph.num_nodes)
    return pd.concat(
        pd.DataFrame(
            {
                "sampler": name,
                "node": nodes,
                "prior_prob": each.prob,
                "standard_error": each.standard_error,
                "prior_odds": each.odds,
            }
        )
        for name, each in rows
    )
