"""One command from graph to report, and the same step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bmpaudit.cli.options import (
    analysis_options,
    folder_argument,
    json_option,
    make_plan,
    make_runtime,
    out_option,
    plan_options,
    run_options,
    runs_option,
)
from bmpaudit.cli.root import cli
from bmpaudit.cli.show import show_summary

DEMO_SHADOWS = 200
pictures_option = click.option("--pictures/--no-pictures", default=True, help="Write figures/ (PDF, PNG) [yes].")


@cli.command()
@click.argument("graph", metavar="[GRAPH]", required=False)
@out_option
@plan_options
@analysis_options
@click.option("--until-width", type=float, help="Add models until the 90 % interval of ε is narrower than this.")
@click.option("--max-shadows", type=int, default=10_000, show_default=True, help="With --until-width: at most so many.")
@pictures_option
@run_options
@json_option
def audit(
    graph: str | None,
    out: Path,
    plan_path: Path | None,
    until_width: float | None,
    max_shadows: int,
    pictures: bool,
    threads: int | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Audit a graph: sample, train shadow models, attack, estimate, report.

    GRAPH is a data set's name, an .npz archive, a folder with nodes and edges tables, or module:function. Running it
    again on the same folder goes on where it stopped, or does nothing; more --shadows add to those there.

    \b
    bmpaudit audit cora --sampler snowball --model gat --shadows 1000 --out cora-gat
    bmpaudit audit --out cora-gat --shadows 2000
    """
    from bmpaudit.auditing.folder import AuditFolder
    from bmpaudit.auditing.steps import Subject, run_audit
    from bmpaudit.auditing.until_width import run_until_width

    loaded, source, plan = make_plan(graph, plan_path, settings, out)
    subject, runtime = Subject(loaded, source, plan, AuditFolder(out)), make_runtime(threads, quiet)
    if until_width is None:
        told = run_audit(subject, runtime, pictures=pictures)
    else:
        reached = run_until_width(subject, until_width, max_shadows, runtime, pictures=pictures)
        click.echo(f"bmpaudit: {reached.message}", err=True)
        told = reached.summary
    show_summary(told, subject.folder.report_path, as_json)


@cli.command()
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("bmpaudit-demo"), show_default=True,
    help="Folder of the audit.",
)  # fmt: skip
@run_options
@json_option
def demo(out: Path, threads: int | None, quiet: bool, as_json: bool) -> None:
    """Audit the embedded graph with 200 shadow models, in under a minute.

    \b
    bmpaudit demo
    """
    from bmpaudit import datasets
    from bmpaudit.auditing.folder import AuditFolder
    from bmpaudit.auditing.steps import Subject, run_audit
    from bmpaudit.plan import AuditPlan
    from bmpaudit.samplers import Snowball

    plan = AuditPlan(sampler=Snowball(0.25), num_shadows=DEMO_SHADOWS)
    subject = Subject(datasets.load("demo"), "demo", plan, AuditFolder(out))
    show_summary(run_audit(subject, make_runtime(threads, quiet)), subject.folder.report_path, as_json)


@cli.command()
@click.argument("graph", metavar="[GRAPH]", required=False)
@out_option
@plan_options
@run_options
@json_option
def sample(
    graph: str | None,
    out: Path,
    plan_path: Path | None,
    threads: int | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Write the plan, the priors and who is in which sample: the first step, for models trained elsewhere.

    \b
    bmpaudit sample cora --sampler snowball --shadows 1000 --out cora-own
    """
    from bmpaudit.auditing.folder import AuditFolder
    from bmpaudit.auditing.steps import Subject, sample_step

    loaded, source, plan = make_plan(graph, plan_path, settings, out)
    priors = sample_step(Subject(loaded, source, plan, AuditFolder(out)), make_runtime(threads, quiet))
    told = {
        "folder": str(out),
        "num_samples": plan.num_shadows,
        "prior_prob": {"min": float(priors.prob.min()), "max": float(priors.prob.max())},
    }
    if as_json:
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo(
            f"{plan.num_shadows:,} samples in {out / 'memberships.npz'}; "
            f"γ from {priors.prob.min():.4f} to {priors.prob.max():.4f}"
        )


@cli.command()
@folder_argument
@runs_option
@run_options
@json_option
def attack(folder: Path, runs_path: Path | None, threads: int | None, quiet: bool, as_json: bool) -> None:
    """Attack the shadow models of an audit's folder and write the errors.

    \b
    bmpaudit attack cora-gat
    """
    from bmpaudit.plain import plain
    from bmpaudit.auditing.steps import Subject, attack_step

    attacks = attack_step(Subject.read(folder), make_runtime(threads, quiet), runs_path)
    if as_json:
        told = {
            name: {
                "num_nodes": counts.num_nodes,
                **{key: value for key, value in vars(attacks.performance[name]).items() if key != "roc"},
            }
            for name, counts in attacks.counts.items()
        }
        click.echo(json.dumps(plain(told), indent=2))
        return
    for name, found in attacks.performance.items():
        click.echo(f"{name}: {found}")
    click.echo(str(attacks.null_control))


@cli.command()
@folder_argument
@runs_option
@pictures_option
@run_options
def report(folder: Path, runs_path: Path | None, pictures: bool, threads: int | None, quiet: bool) -> None:
    """Write the page, the tables and the pictures of an audit's folder again.

    \b
    bmpaudit report cora-gat
    """
    from bmpaudit.auditing.steps import Subject, report_step

    click.echo(report_step(Subject.read(folder), make_runtime(threads, quiet), runs_path, pictures=pictures))
