"""What the commands show in the terminal: tables and paragraphs of an audit, a comparison, a sweep, and nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import rich.box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from bmpaudit.auditing.answer import certificate_cell
from bmpaudit.auditing.result import HEADLINE_CERTAINTY, LEVELS, PARAMETERS
from bmpaudit.cli.options import asked, print_json
from bmpaudit.releases import ACCESSES
from bmpaudit.util.text import visible
from bmpaudit.util.words import CEILING, CEILING_NOTE, count, interval, number, percent

if TYPE_CHECKING:
    import pandas as pd

    from bmpaudit import sweeps
    from bmpaudit.auditing import Audit, AuditResult
    from bmpaudit.auditing.nodes import Side
    from bmpaudit.comparison import compare
    from bmpaudit.inference import infer

TABLE_NOTE = (
    "certified names: at least so many per model on average, of which at least that share is right; named, 99 %: "
    "estimated limits"
)
LONGEST_NAME = 32

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


def say(*paragraphs: object, style: str = "", soft_wrap: bool = False) -> None:
    """Prints paragraphs; with `soft_wrap` each is one line that can be copied, however narrow the terminal is."""
    for paragraph in paragraphs:
        console().print(Text(str(paragraph), style=style), soft_wrap=soft_wrap)


def print_rows(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    num_left: int = 1,
    *,
    left: Collection[str] = (),
    may_break: bool = False,
) -> None:
    """A table without lines between rows: the first `num_left` columns and those in `left` hold text, others numbers.

    A terminal may break its lines, but no number is cut off; if its cells `may_break`, it is as wide as the terminal.
    """
    table = Table(box=rich.box.SIMPLE, pad_edge=False)
    for place, name in enumerate(head):
        is_left = place < num_left or name in left
        table.add_column(Text(name), justify="left" if is_left else "right", no_wrap=not may_break)
    for row in rows:
        table.add_row(*map(Text, row))
    # Asked how wide it is with room enough: a console offers no more than it has.
    needed = console().measure(table, options=console().options.update(max_width=10_000)).maximum
    console(None if may_break else max(console().width, needed)).print(table)


def show_audit(audit: Audit, report: Path | None) -> None:
    """The result as JSON, or as tables."""
    if asked("json"):
        print_json(audit.summary)
    else:
        print_result(audit.result, report)


def print_result(result: AuditResult, report: Path | None = None) -> None:
    """The answer, what is certain first; then each release, what to beware of, and what to do next."""
    say(result.title, style="bold")
    console().print(Text.assemble((LEVELS[result.answer.level].upper(), "bold"), f"  {result.answer.verdict}"))
    console().print()
    lines = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    lines.add_column(no_wrap=True)
    lines.add_column()
    for name, text in result.answer.lines:
        lines.add_row(Text(name, style="bold"), Text(text))
    for warning in result.answer.warnings:
        lines.add_row("", Text(f"! {warning}"))
    console().print(lines)
    rows = []
    for name, release, access in result.rungs:
        named = access.exposure.named(HEADLINE_CERTAINTY)
        certificate = access.certified.leading() if access.certified else None
        row = [name, certificate_cell(*((certificate.names, certificate.certainty) if certificate else (None, None)))]
        row.append(interval(named.correct_low, named.correct_high, 1))
        row += [_bound_cell(access.shown(each), is_ceiling=access.is_at_ceiling(each)) for each in PARAMETERS]
        rows.append([*row, percent(release.held_out_accuracy, 1)])
    print_rows(("release", "certified names", "named, 99 %", "ε_R ≥", "ε_L ≥", "MP ε ≥", "accuracy"), rows)
    say(TABLE_NOTE)
    if any(each.is_at_ceiling(parameter) for each in result.releases.values() for parameter in PARAMETERS):
        say(CEILING_NOTE)
    say(*(f"! {caution}" for caution in result.cautions))
    test = result.permutation_test
    beat = "beat all " if test.p_value <= 1 / (test.num_shuffles + 1) else ""
    say(
        f"permutation test: p = {test.p_value:.2g} ({beat}{test.num_shuffles:,} shuffles of memberships); "
        f"{test.num_leaking:,} of {count(test.num_nodes, 'node')} proven to leak"
    )
    say("what to do next", style="bold")
    steps = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for step in result.next:
        steps.add_row("•", Text(step))
    console().print(steps)
    if report is not None:
        say(f"page: {report}", soft_wrap=True)


def _bound_cell(shown: float | None, *, is_ceiling: bool) -> str:
    """What is proven; marked if it is the most that so many guesses can show."""
    return f"{number(shown)}{CEILING if is_ceiling else ''}"


def print_nodes(shown: pd.DataFrame, side: Side) -> None:
    """Nodes of an audit, with how often they are named on one side, and certain without any shadow model."""
    rows = []
    has_certain = shown[f"{side}_certain"].fillna(0).gt(0).any()
    for _, row in shown.iterrows():
        is_known = row.notna()[f"{side}_exposure"]
        exposure, low, high = (row[f"{side}_exposure{end}"] for end in ("", "_low", "_high"))
        rows.append(
            [
                *(_short(visible(" ".join(str(row[name]).split()))) for name in ("name", "class")),
                str(row["degree"]),
                f"{row['prior_prob']:.4f}",
                f"{row[f'{side}_named']}/{row[f'{side}_models']}" if is_known else "–",
                f"{percent(exposure)} ({interval(100 * low, 100 * high, 0)})" if is_known else "–",
                f"{row['p_value']:.2g}" if row.notna()["p_value"] else "–",
                "proven" if row["is_leaking"] else "",
                *([_certain_cell(row, side)] if has_certain else []),
                row["flag"],
            ]
        )
    head = ["node", "class", "degree", "γ", "named", "exposure", "p", "leaks"]
    head += ["certain", ""] if has_certain else [""]
    num_columns = len(head) if shown["flag"].ne("").any() else len(head) - 1
    print_rows(head[:num_columns], [row[:num_columns] for row in rows], 2, left=("leaks", "certain", ""))


def _certain_cell(row: pd.Series, side: Side) -> str:
    """In how many models logic alone settles a node, and the feature that usually tells."""
    if not row.notna()[f"{side}_certain"] or row[f"{side}_certain"] == 0:
        return ""
    return f"{row[f'{side}_certain']}/{row[f'{side}_models']} by {row['telling_feature']}"


def _short(name: str) -> str:
    text = Text(" ".join(name.split()))
    text.truncate(LONGEST_NAME, overflow="ellipsis")
    return text.plain


def print_comparison(result: compare.Comparison, top: int) -> None:
    """What the audits compared differ in, and `top` of the nodes that changed."""
    from bmpaudit.comparison.compare import (
        changed_figures,
        changed_nodes,
        estimated_epsilons,
        settings_that_differ,
        side_by_side,
    )

    def print_cells(cells: tuple[list[str], list[list[str]]], num_left: int = 1) -> None:
        if cells[1]:
            print_rows(*cells, num_left, may_break=True)

    say(*result.verdicts, style="bold")
    say(*(f"! {caution}" for caution in result.cautions))
    print_cells(side_by_side(result))
    for each in result.differences:
        print_cells(changed_figures(result, each))
        say(f"Intervals are from {each.basis}. {each.proven}")
    for each in result.differences:
        if not each.nodes.not_comparable:  # else it is among the cautions
            say(each.nodes.sentence)
            print_cells(changed_nodes(result, each, top), num_left=2)
    if result.estimated is not None:
        say("Estimated, under the paper's model:", style="bold")
        say(*result.estimated.sentences, *(f"! {caution}" for caution in result.estimated.cautions))
        print_cells(estimated_epsilons(result.estimated))
    if not result.settings:
        say("The plans are the same.")
    print_cells(settings_that_differ(result), num_left=1 + len(result.audits))


def print_sweep(result: sweeps.Sweep) -> None:
    """The points, those on the front again if they were confirmed, and what to beware of."""
    from bmpaudit.comparison.sides import HELD_OUT_ACCURACY, NAMED_90, show_mean

    has_guarantee = any(point.guaranteed_right is not None for point in result.points)

    def print_points(points: list[tuple[int, sweeps.SweepPoint]], *, has_front: bool) -> None:
        head = ["#", "point", "accuracy", "named at 90 %", "certified", "ε_R ≥"]
        head += (["ε_R ≤"] if has_guarantee else []) + (["front"] if has_front else [])
        rows = []
        for place, point in points:
            means = ((HELD_OUT_ACCURACY, point.accuracy), (NAMED_90, point.named_90))
            cells = [str(place), point.label, *(show_mean(*each) for each in means)]
            cells.append(certificate_cell(point.certified_names, point.certified_share))
            cells.append(_bound_cell(point.proven_right, is_ceiling=point.is_ceiling_right))
            cells += [number(point.guaranteed_right)] if has_guarantee else []
            rows.append(cells + (["yes" if point.on_front else ""] if has_front else []))
        print_rows(head, rows, 2)

    points = list(enumerate(result.points, 1))
    print_points(points, has_front=True)
    seen = [access for access in ACCESSES if any(access in point.named_90_from for point in result.points)]
    if len(seen) > 1:
        say("Named at 90 % by what the adversary sees, as each audit by itself finds:")
        rows = [[str(n), *(show_mean(NAMED_90, point.named_90_from.get(each)) for each in seen)] for n, point in points]
        print_rows(["#", *seen], rows)
    again = [(place, point.confirmed) for place, point in points if point.confirmed is not None]
    if again:
        say("Again, with fresh models:", style="bold")
        print_points(again, has_front=False)
    if any(point.is_ceiling_right for _, point in points):
        say(CEILING_NOTE)
    say(*(f"! {caution}" for caution in result.cautions))


def print_inference(result: infer.Inference, top: int) -> None:
    """The answer about one released model, and the `top` likeliest members."""
    from bmpaudit.inference.infer import node_cells

    say(*(f"! {warning}" for warning in result.warnings))
    say(result.verdict, style="bold")
    say(result.setting)
    print_rows(*result.named_cells())
    say(*result.findings())
    if top:
        head, rows = node_cells(result, top)
        shown = [[*map(_short, row[:2]), *(" ".join(cell.split()) for cell in row[2:])] for row in rows]
        print_rows(head, shown, 2, left=("named", "beyond every", "was in", ""))
        say(f"{len(rows):,} of {len(result.table):,} nodes, the most likely members first")
