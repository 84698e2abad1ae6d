"""Tables and paragraphs in the terminal, and an audit's summary among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import rich.box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from bmpaudit.cli.root import echo
from bmpaudit.util.text import visible
from bmpaudit.util.values import to_json
from bmpaudit.util.words import number, percent

if TYPE_CHECKING:
    from bmpaudit.auditing.finished import Audit
    from bmpaudit.auditing.result import AuditResult, ReleaseResult

SHOWN_PRECISIONS = (0.9, 0.99)

# Stands for a space while lines are broken: Rich takes a no-break space for one to break at.
KEPT_SPACE = "\ue000"
IN_A_FIGURE = re.compile(r" (?=[:=≥≤] \S)|(?<= [:=≥≤]) |(?<=\d) (?=%)")


class VisibleConsole(Console):
    """Whatever a name holds, it cannot move the cursor, change colours or answer for the user.

    Odds such as 176 : 1, ε_R ≥ 5.17 and 12 % stay on one line.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of something to print; only Rich's own control codes stay."""
        if isinstance(renderable, Text):
            renderable = renderable.copy()
            renderable.plain = IN_A_FIGURE.sub(KEPT_SPACE, renderable.plain)
        for segment in super().render(renderable, options):
            text = segment.text.replace(KEPT_SPACE, " ")
            yield segment if segment.control else Segment(visible(text), segment.style)


def console(width: int | None = None) -> Console:
    """Where tables and paragraphs are printed, as wide as the terminal is now unless told otherwise."""
    return VisibleConsole(highlight=False, width=width)


def show_audit(audit: Audit, report: Path | None, as_json: bool) -> None:
    """The result as JSON, or as tables."""
    if as_json:
        echo(to_json(audit.summary))
    else:
        print_result(audit.result, report)


def print_result(result: AuditResult, report: Path | None = None) -> None:
    """The answer, what is certain first; then each release, what to beware of, and what to do next."""
    console().print(Text(result.title, style="bold"))
    console().print(Text(result.answer.verdict))
    console().print()
    lines = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    lines.add_column(no_wrap=True)
    lines.add_column()
    for name, text in result.answer.lines:
        lines.add_row(Text(name, style="bold"), Text(text))
    for warning in result.answer.warnings:
        lines.add_row("", Text(f"! {warning}"))
    console().print(lines)
    print_table(_releases(result.releases))
    exposures = [release.exposure for release in result.releases.values()]
    if not all(exposure.named(each).is_settled for exposure in exposures for each in SHOWN_PRECISIONS):
        console().print(Text("* too few models to say how many can be named"))
    for caution in result.cautions:
        console().print(Text(f"! {caution}"))
    test = result.permutation_test
    found = "leakage found" if test.is_leakage_found else "no leakage found"
    smallest = 1 / (len(test.null_statistics) + 1)
    note = " (the smallest that so many shuffles can give)" if test.p_value <= smallest else ""
    console().print(Text(f"permutation test: {found}, p = {test.p_value:.2f}{note}"))
    console().print(Text("what to do next", style="bold"))
    steps = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for step in result.next:
        steps.add_row("•", Text(step))
    console().print(steps)
    if report is not None:
        console().print(Text(f"page: {report}"), soft_wrap=True)


def _releases(releases: Mapping[str, ReleaseResult]) -> Table:
    from bmpaudit.auditing.result import PARAMETERS

    table = simple_table("release", "ε_R ≥", "ε_L ≥", "MP ε ≥", "named 90 %", "99 %", "TPR at 1 %", "accuracy")
    for name, release in releases.items():
        named = [release.exposure.named(precision) for precision in SHOWN_PRECISIONS]
        table.add_row(
            Text(name),
            *(number(release.shown(parameter)) for parameter in PARAMETERS),
            *(f"{number(row.correct, 1)}{'' if row.is_settled else ' *'}" for row in named),
            percent(release.tpr_at_fpr["0.01"], 1),
            percent(release.held_out_accuracy, 1),
        )
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
    console(max(console().width, needed)).print(table)
