"""Plans: write one, check one, and say what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bmpaudit.cli.options import analysis_options, json_option, make_plan, merge_settings, plan_options, run_options
from bmpaudit.cli.root import cli
from bmpaudit.files import atomic_write

plan_argument = click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))


@cli.group()
def plan() -> None:
    """Write, check and price the plan of an audit.

    \b
    bmpaudit plan init audit.toml
    """


@plan.command()
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), default="audit.toml")
@click.option("--graph", help="What to audit [that of --plan, or cora].")
@plan_options
@analysis_options
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def init(path: Path, graph: str | None, plan_path: Path | None, force: bool, **settings: Any) -> None:
    """Write a plan with a comment on every key.

    \b
    bmpaudit plan init audit.toml --graph cora --sampler snowball
    """
    from bmpaudit.plan import plan_template
    from bmpaudit.plan.plan_file import parse_plan

    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; --force writes over it")
    table = {"graph": "cora"} | merge_settings(graph, plan_path, settings)
    if table.get("sampler", {}).get("name") == "random-walk" and "num_roots" not in table["sampler"]:
        made = make_plan(graph or table["graph"], plan_path, settings)[2]  # as many walks as the graph needs
    else:
        made = parse_plan(table).plan
    with atomic_write(path) as temporary:
        temporary.write_text(plan_template(made, table["graph"]), encoding="utf-8")
    click.echo(f"{path}: run it with bmpaudit audit --plan {path} --out DIR")


@plan.command()
@plan_argument
@json_option
def check(path: Path, as_json: bool) -> None:
    """Check a plan: unknown keys, impossible values.

    \b
    bmpaudit plan check audit.toml
    """
    from bmpaudit.plan import read_plan
    from bmpaudit.plan.plan_file import plan_table

    found = read_plan(path)
    if as_json:
        click.echo(json.dumps(plan_table(found.plan, found.graph), indent=2))
    else:
        variants, definitions = len(found.plan.variants), ", ".join(found.plan.definitions)
        click.echo(f"{path}: fine. {found.graph or 'no graph'}, {found.plan.title}")
        click.echo(f"{found.plan.num_shadows:,} shadow models, {variants} variants of the attack, {definitions}")


@plan.command()
@plan_argument
@run_options
@json_option
def cost(path: Path, threads: int | None, quiet: bool, as_json: bool) -> None:
    """Say how long a plan will take and how much disk, by training a few models.

    \b
    bmpaudit plan cost audit.toml
    """
    from bmpaudit import datasets
    from bmpaudit.plan import read_plan
    from bmpaudit.shadow import estimate_cost

    del quiet
    found = read_plan(path)
    if not found.graph:
        raise click.UsageError(f"{path} names no graph")
    price = estimate_cost(
        datasets.load(found.graph), found.plan.shadow_plan, found.plan.num_shadows, num_threads=threads
    )
    click.echo(json.dumps(vars(price), indent=2) if as_json else price)
