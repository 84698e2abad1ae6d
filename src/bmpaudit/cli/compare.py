"""Audits side by side, and many settings swept, in the terminal and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from bmpaudit.cli.options import (
    SectionedCommand,
    SectionOption,
    dask_option,
    json_option,
    make_runtime,
    pictures_option,
    quiet_option,
    threads_option,
    trust_option,
)
from bmpaudit.cli.root import cli, echo, tell
from bmpaudit.cli.show import console, print_table, simple_table
from bmpaudit.comparison.sides import HELD_OUT_ACCURACY, NAMED_90, NAMED_99, show_mean
from bmpaudit.util.values import to_json
from bmpaudit.util.words import number

if TYPE_CHECKING:
    from bmpaudit.comparison.compare import Comparison
    from bmpaudit.sweeps import Sweep, SweepPoint


@cli.command()
@click.argument("audits", metavar="DIR[:RELEASE] DIR[:RELEASE]...", nargs=-1)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the comparison as a page, figures, JSON and a table of nodes.",
)
@click.option(
    "--definition",
    metavar="NAME",
    cls=SectionOption,
    default_text="bmp-r, with --side left bmp-l; else the first that all have",
    help="Privacy definition whose estimated ε is compared; the audits must have estimated it.",
)
@click.option(
    "--side",
    type=click.Choice(["right", "left"]),
    cls=SectionOption,
    default_text="right",
    help="Which nodes are named: members (right) or non-members (left); and which ε of a definition with two.",
)
@click.option(
    "--variant",
    metavar="NAME",
    cls=SectionOption,
    default_text="the strongest on each release",
    help="Variant of the attack for the estimated ε, such as none_clean_weak; its release is what is compared.",
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
    audits: tuple[str, ...],
    out: Path | None,
    definition: str | None,
    side: str | None,
    variant: str | None,
    top: int,
    as_json: bool,
) -> None:
    """Compare finished audits, or releases of one: does the defence help, and what does it cost?

    Shows side by side how many nodes can be named, what is proven, and the held-out accuracy; differences from the
    first audit, with intervals from the same training samples where both have them; and which nodes changed. Each
    audit's main release is compared unless another is named.

    \b
    bmpaudit compare cora-gcn cora-gat --out gcn-against-gat
    bmpaudit compare cora-gcn:clean cora-gcn:noisy
    """
    from bmpaudit.comparison.compare import compare as compare_audits

    if len(audits) < 2:
        raise click.UsageError(f"compare takes at least two audit folders or releases, got {len(audits)}")
    result = compare_audits(audits, definition, side=side, variant=variant)
    if as_json:
        echo(to_json(result.to_dict(top)))
    else:
        _show(result, top)
    if out is not None:
        from bmpaudit.comparison.page import write_comparison

        page = write_comparison(result, out)
        if not as_json:
            console().print(Text(f"page: {page}"), soft_wrap=True)


def _show(result: Comparison, top: int) -> None:
    from bmpaudit.comparison.compare import (
        changed_figures,
        changed_nodes,
        estimated_epsilons,
        settings_that_differ,
        side_by_side,
    )

    for verdict in result.verdicts:
        console().print(Text(verdict, style="bold"))
    for caution in result.cautions:
        console().print(Text(f"! {caution}"))
    _print_cells(side_by_side(result))
    for each in result.differences:
        _print_cells(changed_figures(result, each))
        console().print(Text(f"Intervals are from {each.basis}. {each.proven}"))
    for each in result.differences:
        if not each.nodes.not_comparable:  # else it is among the cautions
            console().print(Text(each.nodes.sentence))
            _print_cells(changed_nodes(result, each, top), num_left=2)
    if result.estimated is not None:
        console().print(Text("Estimated, under the paper's model:", style="bold"))
        for line in (*result.estimated.sentences, *(f"! {caution}" for caution in result.estimated.cautions)):
            console().print(Text(line))
        _print_cells(estimated_epsilons(result.estimated))
    if not result.settings:
        console().print("The plans are the same.")
    _print_cells(settings_that_differ(result), num_left=1 + len(result.audits))


def _print_cells(cells: tuple[list[str], list[list[str]]], num_left: int = 1) -> None:
    """A table that breaks the lines of its cells where the terminal is narrow; nothing if it has no rows."""
    head, rows = cells
    table = simple_table(*head, num_left=num_left, no_wrap=False)
    for row in rows:
        table.add_row(*map(Text, row))
    if rows:
        console().print(table)


# Many audits: which defence exposes least for the accuracy that is left?


@cli.command(cls=SectionedCommand)
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    cls=SectionOption,
    help="Folder of the sweep: a new one, or one to resume or extend.",
)
@click.option(
    "--confirm",
    is_flag=True,
    cls=SectionOption,
    help="Audit the points that no other beats again, with fresh models: the best of many looks better than it is.",
)
@pictures_option
@trust_option
@threads_option
@dask_option
@quiet_option
@json_option
def sweep(
    path: Path,
    out: Path,
    confirm: bool,
    pictures: str,
    trust_code: bool,
    threads: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Audit many settings, and show which of them no other beats in accuracy and privacy.

    FILE is a plan with a table of alternatives for any of its keys. Every release of the plan is a point of its own,
    and releases share their shadow models. Running the command again resumes a stopped sweep; points and models can
    be added to the file.

    \b
    [sweep.grid]
    training.epochs = [50, 200]
    model.dropout = [0.0, 0.5, 0.8]

    \b
    bmpaudit sweep defences.toml --out defences --confirm
    """
    from bmpaudit import datasets
    from bmpaudit.pipeline.pipeline import source_name
    from bmpaudit.sweeps import describe, read_sweep, run_sweep

    source, audits = read_sweep(path, trust_code=trust_code)
    graph = datasets.load(source, trust_code=trust_code)
    runtime = make_runtime(threads, quiet, dask)
    if not quiet:
        tell(describe(audits))
    result = run_sweep(graph, source_name(source), audits, out, confirm=confirm, pictures=pictures, runtime=runtime)
    if as_json:
        echo(to_json(result.to_dict()))
    else:
        show(result)
        console().print(Text(f"table: {out / 'sweep.csv'}"), soft_wrap=True)
        for picture in sorted(out.glob("frontier.*")):
            console().print(Text(f"picture: {picture}"), soft_wrap=True)


def show(result: Sweep) -> None:
    """Prints the points, those on a front again if they were confirmed, and what to beware of."""
    has_guarantee = any(point.guaranteed_right is not None for point in result.points)
    points = list(enumerate(result.points, 1))
    _show_points(points, has_guarantee=has_guarantee, has_fronts=True)
    again = [(place, point.confirmed) for place, point in points if point.confirmed is not None]
    if again:
        console().print(Text("Again, with fresh models:", style="bold"))
        _show_points(again, has_guarantee=has_guarantee, has_fronts=False)
    for caution in result.cautions:
        console().print(Text(f"! {caution}"))


def _show_points(points: list[tuple[int, SweepPoint]], *, has_guarantee: bool, has_fronts: bool) -> None:
    """Points with their numbers; a guarantee and fronts have a column where there are any."""
    columns = ["#", "point", "held-out accuracy", "named at 90 %", "at 99 %", "ε_R ≥", "ε_L ≥"]
    table = simple_table(
        *columns, *(["ε_R ≤"] if has_guarantee else []), *(["on the front of"] if has_fronts else []), num_left=2
    )
    for place, point in points:
        means = ((HELD_OUT_ACCURACY, point.accuracy), (NAMED_90, point.named_90), (NAMED_99, point.named_99))
        bounds = [point.proven_right, point.proven_left, *([point.guaranteed_right] if has_guarantee else [])]
        fronts = {"exposure": point.on_exposure_front, "proof": point.on_proof_front}
        cells = [str(place), point.label, *(show_mean(*each) for each in means), *map(number, bounds)]
        if has_fronts:
            cells.append(", ".join(name for name, is_on in fronts.items() if is_on))
        table.add_row(*map(Text, cells))
    print_table(table)
