"""Which nodes leak most, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bmpaudit.cli.options import folder_argument, json_option
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import SectionOption
from bmpaudit.cli.terminal import console, echo

if TYPE_CHECKING:
    import pandas as pd
    from rich.text import Text

ERRORS = (("false_positives", "num_out"), ("false_negatives", "num_in"))
LONGEST_NAME = 32


@cli.command()
@folder_argument
@click.option(
    "--top",
    metavar="INTEGER",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    cls=SectionOption,
    help="Number of nodes to show.",
)
@click.option("--node", "wanted", multiple=True, help="Show this node, by name or number; can be repeated.")
@click.option("--class", "class_name", help="Show only nodes of this class.")
@click.option(
    "--side",
    type=click.Choice(["right", "left"]),
    default="right",
    show_default=True,
    help="Which ε of a node: e_R (right) or e_L (left).",
)
@json_option
def nodes(folder: Path, top: int, wanted: tuple[str, ...], class_name: str | None, side: str, as_json: bool) -> None:
    """Show the nodes of an audit that leak most, by the lower end of their interval.

    \b
    bmpaudit nodes cora-gat --top 10 --class 3
    """
    from bmpaudit.auditing.stored import read_nodes
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.plain import to_json

    table = _chosen(read_nodes(Workspace(folder)), wanted, class_name)
    ranked = table.sort_values(f"{side}_low", ascending=False, na_position="last", kind="stable").head(top)
    if as_json:
        rows = ranked.astype(object).where(ranked.notna(), None).to_dict(orient="records")
        echo(to_json(rows))
        return
    _show(ranked, side, len(table))


def _show(ranked: pd.DataFrame, side: str, num_chosen: int) -> None:
    from rich.text import Text

    from bmpaudit.cli.show import print_table, simple_table

    symbol = "e_R" if side == "right" else "e_L"
    shown = simple_table("node", "class", "degree", "γ", "A/n0", "B/n1", "floor", symbol, "interval", "", num_left=2)
    shown.columns[-1].justify = "left"
    for _, row in ranked.iterrows():
        middle, low, high = (row[f"{side}_{end}"] for end in ("median", "low", "high"))
        is_known = row.notna()
        shown.add_row(
            _name(row["name"]),
            _name(row["class"]),
            str(row["degree"]),
            f"{row['prior_prob']:.4f}",
            *(f"{row[part]}/{row[whole]}" if is_known[whole] else "-" for part, whole in ERRORS),
            f"{row[f'floor_{side}']:.2f}" if is_known[f"floor_{side}"] else "-",
            f"{middle:.2f}" if is_known[f"{side}_median"] else "-",
            f"{low:.2f} to {high:.2f}" if is_known[f"{side}_median"] else "-",
            Text(row["flag"]),
        )
    print_table(shown)
    console().print(f"{len(ranked):,} of {num_chosen:,} nodes, by the lower end of the interval of {symbol}")


def _name(name: object) -> Text:
    from rich.text import Text

    text = Text(" ".join(str(name).split()))
    text.truncate(LONGEST_NAME, overflow="ellipsis")
    return text


def _chosen(table: pd.DataFrame, wanted: tuple[str, ...], class_name: str | None) -> pd.DataFrame:
    import numpy as np

    classes = sorted(table["class"].unique())
    if wanted:
        is_wanted = np.zeros(len(table), dtype=np.bool_)
        for name in wanted:
            is_it = (table["name"] == name).to_numpy()
            if not is_it.any():
                is_it = (table["node"].astype(str) == name).to_numpy()
            if not is_it.any():
                raise click.UsageError(f"--node: there is no node {name!r}")
            is_wanted |= is_it
        table = table[is_wanted]
    if class_name is not None:
        if class_name not in classes:
            raise click.UsageError(f"--class must be one of {', '.join(classes)}, got {class_name!r}")
        table = table[table["class"] == class_name]
    return table
