"""Which nodes leak most, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import rich.box
from rich.table import Table
from rich.text import Text

from bmpaudit.cli.options import folder_argument, json_option
from bmpaudit.cli.root import cli, stdout
from bmpaudit.cli.show import print_table
from bmpaudit.plain import to_json

if TYPE_CHECKING:
    import pandas as pd

ERRORS = (("false_positives", "num_out"), ("false_negatives", "num_in"))
LONGEST_NAME = 32


@cli.command()
@folder_argument
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Number of nodes to show.")
@click.option("--node", "wanted", multiple=True, help="Only this node, by name or number; can be repeated.")
@click.option("--class", "class_name", help="Only nodes of this class.")
@click.option("--side", type=click.Choice(["right", "left"]), default="right", show_default=True, help="e_R or e_L.")
@json_option
def nodes(folder: Path, top: int, wanted: tuple[str, ...], class_name: str | None, side: str, as_json: bool) -> None:
    """Show the nodes of an audit that leak most, by the lower end of their interval.

    \b
    bmpaudit nodes cora-gat --top 10 --class 3
    """
    from bmpaudit.auditing.stored import read_nodes
    from bmpaudit.auditing.workspace import Workspace

    table = _chosen(read_nodes(Workspace(folder)), wanted, class_name)
    ranked = table.sort_values(f"{side}_low", ascending=False, na_position="last", kind="stable").head(top)
    if as_json:
        rows = ranked.astype(object).where(ranked.notna(), None).to_dict(orient="records")
        click.echo(to_json(rows))
        return
    symbol = "e_R" if side == "right" else "e_L"
    shown = Table(box=rich.box.SIMPLE, pad_edge=False)
    for name in ("node", "class", "degree", "γ", "A/n0", "B/n1", "floor", symbol, "interval", ""):
        shown.add_column(name, justify="left" if name in ("node", "class", "") else "right", no_wrap=True)
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
    stdout.print(f"{len(ranked):,} of {len(table):,} nodes, by the lower end of the interval of {symbol}")


def _name(name: object) -> Text:
    text = Text(" ".join(str(name).split()))
    text.truncate(LONGEST_NAME, overflow="ellipsis")
    return text


def _chosen(table: pd.DataFrame, wanted: tuple[str, ...], class_name: str | None) -> pd.DataFrame:
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
