"""Audits side by side, in the terminal and as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import rich.box
from rich.table import Table
from rich.text import Text

from bmpaudit.cli.options import json_option
from bmpaudit.cli.root import cli, stdout

if TYPE_CHECKING:
    from bmpaudit.auditing.compare import Comparison
    from bmpaudit.auditing.compare_nodes import NodeComparison


@cli.command()
@click.argument("folders", metavar="DIR DIR...", nargs=-1, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write compare.html, .pdf, .png, .json and compare_nodes.parquet into this folder.",
)
@click.option(
    "--definition",
    type=click.Choice(["bmp", "bmp-r", "bmp-l", "bmp-s", "mp"]),
    default="bmp-r",
    show_default=True,
    help="Which posterior to compare.",
)
@click.option("--side", type=click.Choice(["right", "left"]), help="Which ε of bmp, and e_R or e_L of nodes [right].")
@click.option("--variant", help="Which attack, such as none_clean_weak [the main one of each audit].")
@click.option("--top", type=click.IntRange(min=0), default=10, show_default=True, help="How many nodes to show.")
@json_option
def compare(
    folders: tuple[Path, ...],
    out: Path | None,
    definition: str,
    side: str | None,
    variant: str | None,
    top: int,
    as_json: bool,
) -> None:
    """Compare finished audits: does this sampler, model or defence leak less?

    Shows the posterior of each, of their difference to the first, how probable it is that one leaks more, and which
    nodes changed.

    \b
    bmpaudit compare cora-gcn cora-gat --out gcn-against-gat
    """
    from bmpaudit.auditing.compare import compare_audits

    if len(folders) < 2:
        raise click.UsageError(f"compare takes at least two folders of audits, got {len(folders)}")
    found = compare_audits(folders, definition, side=side, variant=variant)
    if as_json:
        click.echo(json.dumps(found.to_dict(top), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _show(found, top)
    if out is not None:
        from bmpaudit.auditing.compare_report import write_comparison

        page = write_comparison(found, out)
        if not as_json:
            stdout.print(Text(f"page: {page}"), soft_wrap=True)


def _show(found: Comparison, top: int) -> None:
    from bmpaudit.auditing.compare import PERCENTILES, show_number, show_probability, show_signed

    symbol, first = found.symbol, found.audits[0].label
    for verdict in found.verdicts:
        stdout.print(Text(verdict, style="bold"))
    table = _table(
        1, f"{symbol} ({found.definition})", "5 %", "50 %", "95 %", "floor", "proven", "nodes", "prior's share"
    )
    for audit in found.audits:
        table.add_row(
            Text(audit.label),
            *map(show_number, audit.posterior.quantile(PERCENTILES, found.parameter)),
            show_number(audit.floor),
            "-" if audit.proven is None else show_number(audit.proven),
            f"{audit.posterior.num_nodes:,}",
            f"{audit.prior_share:.0%}",
        )
    stdout.print(table)
    table = _table(1, "difference", "5 %", "50 %", "95 %", "leaks more")
    for each in found.differences:
        table.add_row(
            Text(f"{each.label} − {first}"),
            *map(show_signed, (each.p5, each.p50, each.p95)),
            show_probability(each.more_prob),
        )
    stdout.print(table)
    for nodes in found.nodes:
        _show_nodes(nodes, first, top)
    _show_settings(found)
    for caution in found.cautions:
        stdout.print(Text(f"! {caution}"))


def _show_nodes(nodes: NodeComparison, first: str, top: int) -> None:
    from bmpaudit.auditing.compare import show_number, show_probability, show_signed

    if nodes.not_comparable:
        return  # it is among the cautions
    stdout.print(Text(nodes.sentence))
    if not top:
        return
    table = _table(2, "node", "class", f"{nodes.symbol}, {first}", nodes.label, "change", "interval", "leaks more", "")
    for row in nodes.table.head(top).to_dict(orient="records"):
        table.add_row(
            Text(str(row["name"])),
            Text(str(row["class"])),
            show_number(row["first_median"]),
            show_number(row["second_median"]),
            show_signed(row["change_median"]),
            f"{show_signed(row['change_low'])} to {show_signed(row['change_high'])}",
            show_probability(row["more_prob"]),
            "constant" if row["is_constant"] else "",
        )
    stdout.print(table)


def _show_settings(found: Comparison) -> None:
    from bmpaudit.auditing.compared import show_value

    if not found.settings:
        stdout.print("The plans are the same.")
        return
    table = _table(len(found.audits) + 1, "setting", *(audit.label for audit in found.audits))
    for setting in found.settings:
        table.add_row(Text(setting.key), *(Text(show_value(value)) for value in setting.values))
    stdout.print(table)


def _table(num_texts: int, *columns: str) -> Table:
    table = Table(box=rich.box.SIMPLE, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if number < num_texts else "right")
    return table
