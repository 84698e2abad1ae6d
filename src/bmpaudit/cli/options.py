"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bmpaudit.cli.sections import RUN, SectionOption
from bmpaudit.cli.terminal import tell

if TYPE_CHECKING:
    from bmpaudit.auditing.runtime import Runtime

threads_option = click.option(
    "--threads",
    metavar="INTEGER",
    type=click.IntRange(min=1),
    cls=SectionOption,
    section=RUN,
    default_text="all cores",
    help="Number of threads.",
)
quiet_option = click.option("--quiet", is_flag=True, cls=SectionOption, section=RUN, help="Hide progress bars.")
json_option = click.option(
    "--json", "as_json", is_flag=True, cls=SectionOption, section=RUN, help="Print the result as JSON."
)
folder_argument = click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
graph_argument = click.argument("graph", metavar="[GRAPH]", required=False)
out_option = click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    cls=SectionOption,
    help="Audit folder: a new one, or one to resume or extend.",
)
pictures_option = click.option(
    "--pictures/--no-pictures",
    default=True,
    show_default=True,
    cls=SectionOption,
    section=RUN,
    help="Write the figures as PDF and PNG files.",
)
trust_option = click.option(
    "--trust-code",
    is_flag=True,
    cls=SectionOption,
    section=RUN,
    help="Import code that a plan file or an audit folder names module:Name. It runs: use this only if you trust its "
    "author.",
)


def make_runtime(threads: int | None, quiet: bool) -> Runtime:
    """Progress and notices on stderr."""
    from bmpaudit.auditing.runtime import Runtime

    return Runtime(threads, quiet, tell)
