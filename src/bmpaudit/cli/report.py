"""The report of an audit folder."""

from __future__ import annotations

from pathlib import Path

from bmpaudit.cli.options import (
    folder_argument,
    make_runtime,
    pictures_option,
    quiet_option,
    threads_option,
    trust_option,
)
from bmpaudit.cli.root import cli
from bmpaudit.cli.terminal import echo


@cli.command()
@folder_argument
@pictures_option
@trust_option
@threads_option
@quiet_option
def report(folder: Path, pictures: str, trust_code: bool, threads: int | None, quiet: bool) -> None:
    """Write the page, the tables and the pictures of an audit folder.

    \b
    bmpaudit report cora-gat
    """
    from bmpaudit.auditing.pipeline import Pipeline
    from bmpaudit.auditing.stored import stored_subject
    from bmpaudit.auditing.workspace import Workspace

    workspace = Workspace(folder)
    subject = stored_subject(workspace, trust_code=trust_code)
    pipeline = Pipeline(subject, workspace, make_runtime(threads, quiet), may_run=("report",))
    with pipeline.prepared():
        echo(pipeline.report(pictures=pictures))
