"""An audit's summary in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import rich.box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bmpaudit.cli.root import stdout

SYMBOLS = {"epsilon_right": "ε_R", "epsilon_left": "ε_L", "epsilon": "ε"}


def show_summary(told: dict[str, Any], report: Path | None, as_json: bool) -> None:
    """The summary as JSON, or as tables."""
    if as_json:
        click.echo(json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print_summary(told, report)


def print_summary(told: dict[str, Any], report: Path | None = None) -> None:
    """Verdict, headline, variants, and what to beware of."""
    stdout.print(Text(told["title"], style="bold"))
    stdout.print(Text(told["verdict"]), soft_wrap=False)
    table = _table("", "5 %", "50 %", "95 %", "floor", "proven")
    for row in told["headline"]:
        table.add_row(row["name"], *(_number(row[name]) for name in ("p5", "p50", "p95", "floor", "proven")))
    print_table(table)
    print_table(_variants(told))
    for caution in told["cautions"]:
        stdout.print(Text(f"! {caution}"))
    control = told["null_control"]
    found = "leakage found" if control["leakage_found"] else "no leakage found"
    stdout.print(Text(f"null control: {found}, p = {control['p_value']:.2f}"))
    if report is not None:
        stdout.print(Text(f"page: {report}"), soft_wrap=True)


def _variants(told: dict[str, Any]) -> Table:
    columns: dict[tuple[str, str], None] = {}
    for variant in told["variants"].values():
        for definition, found in variant["posteriors"].items():
            columns |= {(definition, name): None for name in SYMBOLS if name in found}
    shown = [place for place in columns if place[0] != "bmp"] or list(columns)
    table = _table("attack", *(f"{SYMBOLS[name]} ({definition})" for definition, name in shown), "AUC")
    for name, variant in told["variants"].items():
        cells = []
        for definition, parameter in shown:
            found = variant["posteriors"].get(definition, {}).get(parameter)
            cells.append("" if found is None else "/".join(_number(found[p], 1) for p in ("p5", "p50", "p95")))
        table.add_row(name, *cells, _number(variant["auc"], 3))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=rich.box.SIMPLE, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def print_table(table: Table) -> None:
    """At its full width: a terminal may break lines, but no number is cut off."""
    # Asked how wide it is with room enough: a console offers no more than it has.
    needed = stdout.measure(table, options=stdout.options.update(max_width=10_000)).maximum
    Console(highlight=False, width=max(stdout.width, needed)).print(table)


def _number(value: Any, digits: int = 2) -> str:
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if isinstance(value, (int, float)) else {"inf": "∞", "-inf": "-∞"}[value]
