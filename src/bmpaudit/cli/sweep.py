"""Many audits: which defence exposes least for the accuracy that is left?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from bmpaudit.cli.options import (
    dask_option,
    json_option,
    make_runtime,
    pictures_option,
    quiet_option,
    threads_option,
    trust_option,
)
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import SectionedCommand, SectionOption
from bmpaudit.cli.show import print_table, simple_table
from bmpaudit.cli.terminal import console, echo, tell
from bmpaudit.plain import to_json
from bmpaudit.report.compare_words import HELD_OUT_ACCURACY, NAMED_90, NAMED_99, show_mean
from bmpaudit.report.words import number

if TYPE_CHECKING:
    from rich.table import Table

    from bmpaudit.auditing.sweep import Sweep
    from bmpaudit.auditing.sweep_point import SweepPoint


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
    from bmpaudit.auditing.run import source_name
    from bmpaudit.auditing.sweep import describe, run_sweep
    from bmpaudit.auditing.sweep_plan import read_sweep

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
