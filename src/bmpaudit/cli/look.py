"""Looking at a finished audit: its most exposed nodes, and its report made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bmpaudit.cli.options import (
    SectionOption,
    folder_argument,
    json_option,
    make_runtime,
    pictures_option,
    quiet_option,
    threads_option,
    trust_option,
)
from bmpaudit.cli.root import cli, echo
from bmpaudit.util.text import visible

if TYPE_CHECKING:
    import pandas as pd
    from rich.text import Text

    from bmpaudit.auditing.nodes import Side


LONGEST_NAME = 32
SIDES: dict[str, Side] = {"right": "member", "left": "non_member"}


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
    type=click.Choice(list(SIDES)),
    default="right",
    show_default=True,
    help="Rank by how often a node is named as a member (right) or as a non-member (left).",
)
@json_option
def nodes(folder: Path, top: int, wanted: tuple[str, ...], class_name: str | None, side: str, as_json: bool) -> None:
    """Show which nodes of an audit can be named most often.

    \b
    bmpaudit nodes cora-gat --top 10 --class 3
    """
    from bmpaudit.auditing.finished import read_nodes
    from bmpaudit.auditing.nodes import ranked_nodes
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.cli.show import console
    from bmpaudit.util.values import to_json

    table = read_nodes(Workspace(folder))
    ranked = ranked_nodes(_chosen(table, wanted, class_name), SIDES[side])
    shown = ranked.head(top)
    if as_json:
        rows = shown.astype(object).where(shown.notna(), None).to_dict(orient="records")
        echo(to_json(rows))
        return
    _print_nodes(shown, SIDES[side])
    is_anyone_named = bool((table[f"{SIDES[side]}_named"] > 0).any())
    console().print(f"{len(shown):,} of {len(ranked):,} nodes, {_ranking(SIDES[side], is_anyone_named)}")


def _print_nodes(shown: pd.DataFrame, side: Side) -> None:
    from rich.text import Text

    from bmpaudit.auditing.nodes import node_accuracy
    from bmpaudit.cli.show import print_table, simple_table
    from bmpaudit.util.words import number, percent

    columns = ("node", "class", "degree", "γ", "named", "exposure", "interval", "accuracy", "")
    table = simple_table(*columns, num_left=2)
    table.columns[-1].justify = "left"
    for (_, row), accuracy in zip(shown.iterrows(), node_accuracy(shown).tolist(), strict=True):
        is_known = row.notna()[f"{side}_exposure"]
        exposure, low, high = (row[f"{side}_exposure{end}"] for end in ("", "_low", "_high"))
        table.add_row(
            _name(row["name"]),
            _name(row["class"]),
            str(row["degree"]),
            f"{row['prior_prob']:.4f}",
            f"{row[f'{side}_named']}/{row[f'{side}_models']}" if is_known else "–",
            percent(exposure) if is_known else "–",
            f"{percent(low)} to {percent(high)}" if is_known else "–",
            number(accuracy),
            Text(row["flag"]),
        )
    print_table(table)


def _ranking(side: Side, is_anyone_named: bool) -> str:
    models, role = ("with", "a member") if side == "member" else ("without", "a non-member")
    if not is_anyone_named:
        return (
            f"ranked by the attack's accuracy (0.50 is guessing), because nobody is ever named as {role} with 99 % "
            "certainty"
        )
    return (
        f"ranked by the lower end of the exposure's interval; exposure is the share of models {models} the node that "
        f"name it as {role} with 99 % certainty"
    )


def _name(name: object) -> Text:
    from rich.text import Text

    text = Text(visible(" ".join(str(name).split())))
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


@cli.command()
@folder_argument
@pictures_option
@trust_option
@threads_option
@quiet_option
def report(folder: Path, pictures: str, trust_code: bool, threads: int | None, quiet: bool) -> None:
    """Write the page, the tables and the pictures of an audit folder.

    \b
    bmpaudit report cora-gat
    """
    from bmpaudit.auditing.finished import stored_subject
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.pipeline.pipeline import Pipeline

    workspace = Workspace(folder)
    subject = stored_subject(workspace, trust_code=trust_code)
    pipeline = Pipeline(subject, workspace, make_runtime(threads, quiet), may_run=("report",))
    with pipeline.prepared():
        echo(pipeline.report(pictures=pictures))
