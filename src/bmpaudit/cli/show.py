"""An audit's summary in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich.box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bmpaudit.cli.terminal import console, echo
from bmpaudit.plain import to_json
from bmpaudit.report.words import number


def show_summary(summary: dict[str, Any], report: Path | None, as_json: bool) -> None:
    """The summary as JSON, or as tables."""
    if as_json:
        echo(to_json(summary))
    else:
        print_summary(summary, report)


def print_summary(summary: dict[str, Any], report: Path | None = None) -> None:
    """Verdict, headline, variants, and what to beware of."""
    console().print(Text(summary["title"], style="bold"))
    console().print(Text(summary["verdict"]), soft_wrap=False)
    table = simple_table("", "5 %", "50 %", "95 %", "floor", "proven")
    for row in summary["headline"]:
        table.add_row(row["name"], *(number(row[name]) for name in ("p5", "p50", "p95", "floor", "proven")))
    print_table(table)
    print_table(_variants(summary))
    for caution in summary["cautions"]:
        console().print(Text(f"! {caution}"))
    test = summary["permutation_test"]
    result = "leakage found" if test["is_leakage_found"] else "no leakage found"
    console().print(Text(f"permutation test: {result}, p = {test['p_value']:.2f}"))
    if report is not None:
        console().print(Text(f"page: {report}"), soft_wrap=True)


def _variants(summary: dict[str, Any]) -> Table:
    """One-parameter posteriors of every variant; of joint ones only where there are no others."""
    columns: dict[tuple[str, str], str] = {}
    for variant in summary["variants"].values():
        for definition, posterior in variant["posteriors"].items():
            symbols = {(definition, name): symbol for name, symbol in posterior["symbols"].items()}
            columns |= symbols
    single = {place: symbol for place, symbol in columns.items() if [p[0] for p in columns].count(place[0]) == 1}
    shown = single or columns
    table = simple_table("attack", *(f"{symbol} ({place[0]})" for place, symbol in shown.items()), "AUC")
    for name, variant in summary["variants"].items():
        cells = []
        for definition, parameter in shown:
            values = variant["posteriors"].get(definition, {}).get(parameter)
            cells.append("" if values is None else "/".join(number(values[p], 1) for p in ("p5", "p50", "p95")))
        table.add_row(name, *cells, number(variant["auc"], 3))
    return table


def simple_table(*columns: str, num_left: int = 1, no_wrap: bool = True) -> Table:
    """A table without lines between rows; the first `num_left` columns hold text, the others numbers."""
    table = Table(box=rich.box.SIMPLE, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if position < num_left else "right", no_wrap=no_wrap)
    return table


def print_table(table: Table) -> None:
    """At its full width: a terminal may break lines, but no number is cut off."""
    # Asked how wide it is with room enough: a console offers no more than it has.
    needed = console().measure(table, options=console().options.update(max_width=10_000)).maximum
    Console(highlight=False, width=max(console().width, needed)).print(table)
