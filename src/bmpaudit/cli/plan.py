"""Plans: write one, check one, or estimate its cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bmpaudit.cli.options import json_option, threads_option, trust_option
from bmpaudit.cli.plan_options import plan_options
from bmpaudit.cli.plan_settings import code_in_plan, merge_settings
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import SectionedCommand, SectionOption
from bmpaudit.cli.terminal import echo, tell
from bmpaudit.files import write_text
from bmpaudit.plain import to_json
from bmpaudit.registry import untrusted

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
    from bmpaudit.auditing.plan_file import plan_table, read_plan, read_table

    checked = read_plan(path, trust_code=trust_code)
    for kind, target in code_in_plan(read_table(path)) if not trust_code else ():
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
@json_option
def cost(path: Path, trust_code: bool, threads: int | None, as_json: bool) -> None:
    """Estimate how long a plan will take and how much disk space it needs, by training a few models.

    \b
    bmpaudit plan cost audit.toml
    """
    from bmpaudit import datasets
    from bmpaudit.auditing.plan_file import read_plan
    from bmpaudit.shadow import estimate_cost

    stored = read_plan(path, trust_code=trust_code)
    if not stored.graph:
        raise click.UsageError(f"{path} names no graph")
    graph = datasets.load(stored.graph, trust_code=trust_code)
    price = estimate_cost(graph, stored.plan.shadow_plan, stored.plan.shadows, num_threads=threads)
    echo(to_json(vars(price)) if as_json else price)
