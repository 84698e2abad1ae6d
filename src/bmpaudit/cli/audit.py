"""One command from graph to report, and its plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bmpaudit.cli.options import (
    RUN_OPTIONS,
    SectionedCommand,
    SectionOption,
    dask_option,
    graph_argument,
    json_option,
    make_runtime,
    out_option,
    pictures_option,
    quiet_option,
    store_option,
    threads_option,
    trust_option,
)
from bmpaudit.cli.plan_options import check_trainable, code_in_plan, make_subject, merge_settings, plan_options
from bmpaudit.cli.root import cli, echo, tell
from bmpaudit.cli.show import show_audit
from bmpaudit.registry import untrusted
from bmpaudit.util.files import write_text
from bmpaudit.util.values import to_json

if TYPE_CHECKING:
    from bmpaudit.pipeline.cost import AuditCost


DEMO_SHADOWS = 800


@cli.command(cls=SectionedCommand)
@graph_argument
@out_option
@plan_options()
@click.option(
    "--until-width",
    type=float,
    cls=SectionOption,
    section=RUN_OPTIONS,
    help="Add shadow models until the 90 % interval of ε is narrower than this.",
)
@click.option(
    "--until-proven",
    type=float,
    cls=SectionOption,
    section=RUN_OPTIONS,
    help="Add shadow models until ε_R is proven to be at least this.",
)
@click.option(
    "--max-shadows",
    type=int,
    default=10_000,
    show_default=True,
    cls=SectionOption,
    section=RUN_OPTIONS,
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
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.pipeline.pipeline import Pipeline
    from bmpaudit.pipeline.until import audit_until_proven, audit_until_width

    if until_width is not None and until_proven is not None:
        raise click.UsageError("--until-width and --until-proven cannot both be given")
    subject = make_subject(graph, plan_path, settings, out)
    check_trainable(subject, out)
    workspace, runtime = Workspace(out, store), make_runtime(threads, quiet, dask)
    if until_width is None and until_proven is None:
        pipeline = Pipeline(subject, workspace, runtime)
        with pipeline.prepared():
            pipeline.report(pictures=pictures)
        result = pipeline.audit
    else:
        if until_width is not None:
            stopped = audit_until_width(subject, workspace, until_width, max_shadows, runtime, pictures=pictures)
        else:
            assert until_proven is not None  # noqa: S101
            stopped = audit_until_proven(subject, workspace, until_proven, max_shadows, runtime, pictures=pictures)
        tell(stopped.message)
        result = stopped.audit
    show_audit(result, workspace.report_path, as_json)


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
    from bmpaudit.pipeline.pipeline import audit as run_audit

    runtime = make_runtime(threads, quiet, dask)
    result = run_audit("demo", sampler="snowball", shadows=DEMO_SHADOWS, folder=out, runtime=runtime)
    show_audit(result, out / "report.html", as_json)


# Plans: write one, check one, or estimate its cost.


plan_argument = click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))


@cli.group()
def plan() -> None:
    """Write a plan, check it, or estimate its cost.

    \b
    bmpaudit plan init audit.toml
    """


@plan.command(cls=SectionedCommand)
@click.argument("path", metavar="[FILE]", type=click.Path(dir_okay=False, path_type=Path), default="audit.toml")
@click.option(
    "--graph",
    metavar="GRAPH",
    cls=SectionOption,
    default_text="the one of --plan, or cora",
    help="Graph to audit: the name of a data set, an .npz archive, a folder with tables, or module:function.",
)
@click.option("--force", is_flag=True, cls=SectionOption, help="Overwrite an existing file.")
@plan_options()
def init(path: Path, graph: str | None, plan_path: Path | None, force: bool, **settings: Any) -> None:
    """Write a plan with a comment on every key to FILE, or to audit.toml.

    \b
    bmpaudit plan init audit.toml --graph cora --sampler snowball
    """
    from bmpaudit.plan import parse_plan, plan_template

    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; --force overwrites it")
    table = {"graph": "cora"} | merge_settings(graph, plan_path, settings)
    write_text(path, plan_template(parse_plan(table).plan, table["graph"]))
    echo(f"{path}: run it with bmpaudit audit --plan {path} --out DIR")


@plan.command()
@plan_argument
@trust_option
@json_option
def check(path: Path, trust_code: bool, as_json: bool) -> None:
    """Check a plan for unknown keys and impossible values.

    \b
    bmpaudit plan check audit.toml
    """
    from bmpaudit.io.readers import read_toml
    from bmpaudit.plan import plan_table, read_plan

    checked = read_plan(path, trust_code=trust_code)
    for kind, target in code_in_plan(read_toml(path)) if not trust_code else ():
        tell(f"{untrusted(kind, target)}. Until then it is not checked.")
    if as_json:
        echo(to_json(plan_table(checked.plan, checked.graph)))
    else:
        definitions = ", ".join(checked.plan.definitions_by_name)
        echo(f"{path}: fine. {checked.graph or 'no graph'}, {checked.plan.title}")
        echo(f"{checked.plan.shadows:,} shadow models, {len(checked.plan.views)} views, {definitions}")


@plan.command()
@plan_argument
@trust_option
@threads_option
@quiet_option
@json_option
def cost(path: Path, trust_code: bool, threads: int | None, quiet: bool, as_json: bool) -> None:
    """Estimate how long each step of a plan will take, and how much disk space it needs.

    A few models are trained, and the later steps are rehearsed on a small part of the graph.

    \b
    bmpaudit plan cost audit.toml
    """
    from bmpaudit import datasets
    from bmpaudit.auditing.context import Subject
    from bmpaudit.pipeline.cost import audit_cost
    from bmpaudit.plan import read_plan

    stored = read_plan(path, trust_code=trust_code)
    if not stored.graph:
        raise click.UsageError(f"{path} names no graph")
    graph = datasets.load(stored.graph, trust_code=trust_code)
    price = audit_cost(Subject(graph, stored.graph, stored.plan), make_runtime(threads, quiet))
    if as_json:
        echo(to_json(vars(price) | {"total": price.total}))
    else:
        _print_cost(price, f"{stored.graph}, {stored.plan.title}")


def _print_cost(price: AuditCost, title: str) -> None:
    from bmpaudit.cli.show import print_table, simple_table
    from bmpaudit.util.words import duration

    table = simple_table("step", "about")
    for step, seconds in price.seconds.items():
        table.add_row(step, duration(seconds))
    table.add_row("in all", duration(price.total))
    echo(f"{title}, {price.num_models:,} models")
    print_table(table)
    megabytes = f"{price.disk_bytes / 1e6:,.0f} MB"
    echo(f"A model takes {price.seconds_per_model * 1e3:,.1f} ms on one thread; all take {megabytes} of disk.")
