"""Audits side by side, and many settings swept, in the terminal and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from bmpaudit.comparison.sides import HELD_OUT_ACCURACY, NAMED, NAMED_90, NAMED_99, changes, show_mean, side_by_side
from bmpaudit.util.values import to_json
from bmpaudit.util.words import number, percent, probability, signed

if TYPE_CHECKING:
    from rich.table import Table

    from bmpaudit.comparison.compare import Comparison, EstimatedComparison
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
    content = result.to_dict(top)
    for verdict in result.verdicts:
        console().print(Text(verdict, style="bold"))
    for caution in result.cautions:
        console().print(Text(f"! {caution}"))
    labels = [audit.label for audit in result.audits]
    table = simple_table(f"per released model ({NAMED[content['side']]})", *labels, no_wrap=False)
    for name, cells in side_by_side(content["audits"]):
        table.add_row(Text(name), *(Text(cell) for cell in cells))
    console().print(table)
    for each in content["differences"]:
        table = simple_table(f"{each['audit']} − {each['to']}", "difference", "95 % interval", no_wrap=False)
        for name, change in changes(each["figures"]):
            table.add_row(Text(name), *change)
        console().print(table)
        console().print(Text(f"Intervals are from {each['basis']}. {each['proven']}"))
    for nodes in content["nodes"]:
        _show_nodes(nodes, labels[0])
    if result.estimated is not None:
        _show_estimated(result.estimated)
    _show_settings(result)


def _show_nodes(nodes: dict[str, Any], first: str) -> None:
    if nodes["not_comparable"]:
        return  # it is among the cautions
    console().print(Text(nodes["sentence"]))
    if not nodes["changed_most"]:
        return
    table = simple_table(
        *("node", "class", f"exposure, {first}", nodes["audit"], "change [points]", "95 % interval"),
        num_left=2,
        no_wrap=False,
    )
    for row in nodes["changed_most"]:
        table.add_row(
            Text(str(row["name"])),
            Text(str(row["class"])),
            *(percent(row[f"{name}_exposure"]) for name in ("first", "second")),
            signed(100 * row["change"], 0),
            f"{signed(100 * row['change_low'], 0)} to {signed(100 * row['change_high'], 0)}",
        )
    console().print(table)


def _show_estimated(estimated: EstimatedComparison) -> None:
    console().print(Text("Estimated, under the paper's model:", style="bold"))
    for sentence in estimated.sentences:
        console().print(Text(sentence))
    for caution in estimated.cautions:
        console().print(Text(f"! {caution}"))
    columns = (f"{estimated.symbol} ({estimated.definition})", "5 %", "50 %", "95 %", "floor", "prior's share")
    table = simple_table(*columns, "larger than in the first", no_wrap=False)
    probabilities = ["", *(probability(each.more_prob) for each in estimated.differences)]
    for each, more in zip(estimated.epsilons, probabilities, strict=True):
        values = map(number, (*each.percentiles, each.floor))
        table.add_row(Text(each.label), *values, percent(each.prior_share), more)
    console().print(table)


def _show_settings(result: Comparison) -> None:
    from bmpaudit.comparison.sides import show_value

    if not result.settings:
        console().print("The plans are the same.")
        return
    labels = [audit.label for audit in result.audits]
    table = simple_table("setting", *labels, num_left=1 + len(labels), no_wrap=False)
    for setting in result.settings:
        table.add_row(Text(setting.key), *(Text(show_value(value)) for value in setting.values))
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
    print_table(_table(dict(enumerate(result.points, 1)), has_guarantee=has_guarantee, has_fronts=True))
    again = {place: point.confirmed for place, point in enumerate(result.points, 1) if point.confirmed is not None}
    if again:
        console().print(Text("Again, with fresh models:", style="bold"))
        print_table(_table(again, has_guarantee=has_guarantee, has_fronts=False))
    for caution in result.cautions:
        console().print(Text(f"! {caution}"))


def _table(points: dict[int, SweepPoint], *, has_guarantee: bool, has_fronts: bool) -> Table:
    """Points by their number; a guarantee and fronts have a column where there are any."""
    columns = ["#", "point", "held-out accuracy", "named at 90 %", "at 99 %", "ε_R ≥", "ε_L ≥"]
    table = simple_table(
        *columns, *(["ε_R ≤"] if has_guarantee else []), *(["on the front of"] if has_fronts else []), num_left=2
    )
    for place, point in points.items():
        guaranteed = [number(point.guaranteed_right)] if has_guarantee else []
        table.add_row(str(place), *_cells(point), *guaranteed, *([_fronts(point)] if has_fronts else []))
    return table


def _cells(point: SweepPoint) -> list[Text]:
    shown = [
        point.label,
        *(
            show_mean(quantity, None if mean is None else vars(mean))
            for quantity, mean in (
                (HELD_OUT_ACCURACY, point.accuracy),
                (NAMED_90, point.named_90),
                (NAMED_99, point.named_99),
            )
        ),
        number(point.proven_right),
        number(point.proven_left),
    ]
    return [Text(each) for each in shown]


def _fronts(point: SweepPoint) -> str:
    marks = [name for name, is_on in (("exposure", point.on_exposure_front), ("proof", point.on_proof_front)) if is_on]
    return ", ".join(marks)
