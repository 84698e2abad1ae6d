"""One command from graph to report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bmpaudit.cli.options import (
    dask_option,
    graph_argument,
    json_option,
    make_runtime,
    out_option,
    pictures_option,
    quiet_option,
    store_option,
    threads_option,
)
from bmpaudit.cli.plan_options import plan_options
from bmpaudit.cli.plan_settings import check_trainable, make_subject
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import RUN, SectionedCommand, SectionOption
from bmpaudit.cli.show import show_summary
from bmpaudit.cli.terminal import tell

DEMO_SHADOWS = 800


@cli.command(cls=SectionedCommand)
@graph_argument
@out_option
@plan_options()
@click.option(
    "--until-width",
    type=float,
    cls=SectionOption,
    section=RUN,
    help="Add shadow models until the 90 % interval of ε is narrower than this.",
)
@click.option(
    "--until-proven",
    type=float,
    cls=SectionOption,
    section=RUN,
    help="Add shadow models until ε_R is proven to be at least this.",
)
@click.option(
    "--max-shadows",
    type=int,
    default=10_000,
    show_default=True,
    cls=SectionOption,
    section=RUN,
    help="Maximum number of shadow models with --until-width and --until-proven.",
)
@pictures_option
@store_option
@threads_option
@dask_option
@quiet_option
@json_option
def audit(
    graph: str | None,
    out: Path,
    plan_path: Path | None,
    until_width: float | None,
    until_proven: float | None,
    max_shadows: int,
    pictures: str,
    store: str | None,
    threads: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Audit a graph: sample, train shadow models, attack, estimate, report.

    GRAPH is the name of a data set, an .npz archive, a folder with nodes and edges tables, or module:function.

    Running the command again on the same folder resumes a stopped audit and leaves a finished one alone. A larger
    --shadows adds models to those already there.

    \b
    bmpaudit audit cora --sampler snowball --model gat --shadows 1000 --out cora-gat
    bmpaudit audit --out cora-gat --shadows 2000
    """
    from bmpaudit.auditing.pipeline import Pipeline
    from bmpaudit.auditing.until import audit_until_proven, audit_until_width
    from bmpaudit.auditing.workspace import Workspace

    if until_width is not None and until_proven is not None:
        raise click.UsageError("--until-width and --until-proven cannot both be given")
    subject = make_subject(graph, plan_path, settings, out)
    check_trainable(subject, out)
    workspace, runtime = Workspace(out, store), make_runtime(threads, quiet, dask)
    if until_width is None and until_proven is None:
        pipeline = Pipeline(subject, workspace, runtime)
        with pipeline.prepared():
            pipeline.report(pictures=pictures)
        summary = pipeline.audit.summary
    else:
        if until_width is not None:
            stopped = audit_until_width(subject, workspace, until_width, max_shadows, runtime, pictures=pictures)
        else:
            assert until_proven is not None  # noqa: S101
            stopped = audit_until_proven(subject, workspace, until_proven, max_shadows, runtime, pictures=pictures)
        tell(stopped.message)
        summary = stopped.audit.summary
    show_summary(summary, workspace.report_path, as_json)


@cli.command()
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("bmpaudit-demo"),
    show_default=True,
    help="Audit folder.",
)
@threads_option
@dask_option
@quiet_option
@json_option
def demo(out: Path, threads: int | None, dask: str | None, quiet: bool, as_json: bool) -> None:
    """Audit the embedded graph with 800 shadow models, in under a minute.

    \b
    bmpaudit demo
    """
    from bmpaudit.auditing.run import audit as run_audit

    runtime = make_runtime(threads, quiet, dask)
    result = run_audit("demo", sampler="snowball", shadows=DEMO_SHADOWS, folder=out, runtime=runtime)
    show_summary(result.summary, out / "report.html", as_json)
