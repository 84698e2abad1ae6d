"""Plans: write one, check one, or estimate its cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bmpaudit.cli.options import json_option, make_runtime, quiet_option, threads_option, trust_option
from bmpaudit.cli.plan_options import plan_options
from bmpaudit.cli.plan_settings import code_in_plan, merge_settings
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import SectionedCommand, SectionOption
from bmpaudit.cli.terminal import echo, tell
from bmpaudit.files import write_text
from bmpaudit.plain import to_json
from bmpaudit.registry import untrusted

if TYPE_CHECKING:
    from bmpaudit.auditing.cost import AuditCost

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
    from bmpaudit.auditing.plan_file import parse_plan, plan_template

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
    from bmpaudit.auditing.plan_file import plan_table, read_plan
    from bmpaudit.reading.text import read_toml

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
    from bmpaudit.auditing.cost import audit_cost
    from bmpaudit.auditing.plan_file import read_plan
    from bmpaudit.auditing.subject import Subject

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
    from bmpaudit.report.words import duration

    table = simple_table("step", "about")
    for step, seconds in price.seconds.items():
        table.add_row(step, duration(seconds))
    table.add_row("in all", duration(price.total))
    echo(f"{title}, {price.num_models:,} models")
    print_table(table)
    megabytes = f"{price.disk_bytes / 1e6:,.0f} MB"
    echo(f"A model takes {price.seconds_per_model * 1e3:,.1f} ms on one thread; all take {megabytes} of disk.")
