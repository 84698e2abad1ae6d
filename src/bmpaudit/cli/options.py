"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from bmpaudit.auditing.runtime import Runtime

threads_option = click.option("--threads", type=click.IntRange(min=1), help="Number of threads [all cores].")
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress bar.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
folder_argument = click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
graph_argument = click.argument("graph", metavar="[GRAPH]", required=False)
out_option = click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder of the audit."
)
pictures_option = click.option(
    "--pictures/--no-pictures", default=True, show_default=True, help="Write figures/ as PDF and PNG."
)


def make_runtime(threads: int | None, quiet: bool) -> Runtime:
    """Progress and notices on stderr."""
    return Runtime(threads, quiet, lambda message: click.echo(f"bmpaudit: {message}", err=True))
