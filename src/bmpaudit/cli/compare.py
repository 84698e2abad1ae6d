"""Audits side by side, in the terminal and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from bmpaudit.cli.options import json_option
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import SectionOption
from bmpaudit.cli.show import simple_table
from bmpaudit.cli.terminal import console, echo
from bmpaudit.plain import to_json
from bmpaudit.report.words import number, percent, probability, signed

if TYPE_CHECKING:
    from bmpaudit.auditing.compare_nodes import NodeComparison
    from bmpaudit.auditing.comparison import Comparison


@cli.command()
@click.argument("folders", metavar="DIR DIR...", nargs=-1, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the comparison as a page, figures, JSON and a table of nodes.",
)
@click.option(
    "--definition",
    metavar="NAME",
    default="bmp-r",
    show_default=True,
    help="Privacy definition whose posteriors are compared; the audits must have estimated it.",
)
@click.option(
    "--side",
    type=click.Choice(["right", "left"]),
    cls=SectionOption,
    default_text="right",
    help="Which ε of a definition with two, and of the nodes: ε_R (right) or ε_L (left).",
)
@click.option(
    "--variant",
    metavar="NAME",
    cls=SectionOption,
    default_text="the main one of each audit",
    help="Variant of the attack, such as none_clean_weak.",
)
@click.option(
    "--top",
    metavar="INTEGER",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    cls=SectionOption,
    help="Number of nodes to show.",
)
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

    Shows the posterior of each audit, its difference from the first, how probable it is that one leaks more than the
    other, and which nodes changed.

    \b
    bmpaudit compare cora-gcn cora-gat --out gcn-against-gat
    """
    from bmpaudit.auditing import compare as compare_audits

    if len(folders) < 2:
        raise click.UsageError(f"compare takes at least two audit folders, got {len(folders)}")
    result = compare_audits(folders, definition, side=side, variant=variant)
    if as_json:
        echo(to_json(result.to_dict(top)))
    else:
        _show(result, top)
    if out is not None:
        from bmpaudit.auditing.compare_report import write_comparison

        page = write_comparison(result, out)
        if not as_json:
            console().print(Text(f"page: {page}"), soft_wrap=True)


def _show(result: Comparison, top: int) -> None:
    from bmpaudit.auditing.comparison import PERCENTILES

    symbol, first = result.symbol, result.audits[0].label
    for verdict in result.verdicts:
        console().print(Text(verdict, style="bold"))
    table = simple_table(
        f"{symbol} ({result.definition})",
        "5 %",
        "50 %",
        "95 %",
        "floor",
        "proven",
        "nodes",
        "prior's share",
        no_wrap=False,
    )
    for audit in result.audits:
        table.add_row(
            Text(audit.label),
            *map(number, audit.posterior.quantile(PERCENTILES, result.parameter)),
            number(audit.floor),
            number(audit.proven),
            f"{audit.posterior.num_nodes:,}",
            percent(audit.prior_share),
        )
    console().print(table)
    table = simple_table("difference", "5 %", "50 %", "95 %", "leaks more", no_wrap=False)
    for each in result.differences:
        table.add_row(
            Text(f"{each.label} − {first}"),
            *map(signed, (each.p5, each.p50, each.p95)),
            probability(each.more_prob),
        )
    console().print(table)
    for nodes in result.nodes:
        _show_nodes(nodes, first, top)
    _show_settings(result)
    for caution in result.cautions:
        console().print(Text(f"! {caution}"))


def _show_nodes(nodes: NodeComparison, first: str, top: int) -> None:
    if nodes.not_comparable:
        return  # it is among the cautions
    console().print(Text(nodes.sentence))
    if not top:
        return
    columns = ("node", "class", f"{nodes.symbol}, {first}", nodes.label, "change", "interval", "leaks more", "")
    table = simple_table(*columns, num_left=2, no_wrap=False)
    for row in nodes.table.head(top).to_dict(orient="records"):
        table.add_row(
            Text(str(row["name"])),
            Text(str(row["class"])),
            number(row["first_median"]),
            number(row["second_median"]),
            signed(row["change_median"]),
            f"{signed(row['change_low'])} to {signed(row['change_high'])}",
            probability(row["more_prob"]),
            "constant" if row["is_constant"] else "",
        )
    console().print(table)


def _show_settings(result: Comparison) -> None:
    from bmpaudit.auditing.compared import show_value

    if not result.settings:
        console().print("The plans are the same.")
        return
    labels = [audit.label for audit in result.audits]
    table = simple_table("setting", *labels, num_left=1 + len(labels), no_wrap=False)
    for setting in result.settings:
        table.add_row(Text(setting.key), *(Text(show_value(value)) for value in setting.values))
    console().print(table)
