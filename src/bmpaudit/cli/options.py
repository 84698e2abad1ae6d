"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bmpaudit.cli.sections import RUN, SectionOption
from bmpaudit.cli.terminal import tell
from bmpaudit.report.picture_formats import DEFAULT_PICTURES, NO_PICTURES, PICTURE_FORMATS, picture_formats

if TYPE_CHECKING:
    from bmpaudit.auditing.runtime import Runtime


def _checked_pictures(context: click.Context, parameter: click.Parameter, value: str) -> str:  # noqa: ARG001
    """Refuses unknown formats at once, not after the audit."""
    picture_formats(value)
    return value


threads_option = click.option(
    "--threads",
    metavar="INTEGER",
    type=click.IntRange(min=1),
    cls=SectionOption,
    section=RUN,
    default_text="all cores",
    help="Number of threads.",
)
dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    cls=SectionOption,
    section=RUN,
    help="Work on a Dask cluster: the address of its scheduler, such as tcp://scheduler:8786, or local:N for N "
    "processes on this machine.",
)
store_option = click.option(
    "--store",
    metavar="ADDRESS",
    cls=SectionOption,
    section=RUN,
    help="Where the shadow models of a new audit folder are kept, such as s3://bucket/audit.",
    default_text="the audit folder",
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
    "--pictures",
    metavar="FORMATS",
    default=DEFAULT_PICTURES,
    show_default=True,
    callback=_checked_pictures,
    cls=SectionOption,
    section=RUN,
    help=f"Formats of the pictures: {', '.join(PICTURE_FORMATS)}, several separated by commas, or {NO_PICTURES}.",
)
trust_option = click.option(
    "--trust-code",
    is_flag=True,
    cls=SectionOption,
    section=RUN,
    help="Import code that a plan file or an audit folder names module:Name. It runs: use this only if you trust its "
    "author.",
)


def make_runtime(threads: int | None, quiet: bool, dask: str | None = None) -> Runtime:
    """Progress and notices on stderr; the connection to a Dask cluster is closed when the command ends."""
    from bmpaudit.auditing.runtime import Runtime

    executor = None
    if dask is not None:
        from bmpaudit.executors.dask import dask_executor

        executor = click.get_current_context().with_resource(dask_executor(dask))
    return Runtime(threads, quiet, tell, executor)
