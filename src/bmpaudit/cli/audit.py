"""One command from graph to report, and the same step by step."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bmpaudit.cli.options import (
    folder_argument,
    graph_argument,
    json_option,
    make_runtime,
    out_option,
    pictures_option,
    quiet_option,
    threads_option,
)
from bmpaudit.cli.plan_options import make_subject, plan_options, trust_option
from bmpaudit.cli.root import cli
from bmpaudit.cli.show import show_summary

DEMO_SHADOWS = 200


@cli.command()
@graph_argument
@out_option
@plan_options()
@click.option("--until-width", type=float, help="Add models until the 90 % interval of ε is narrower than this.")
@click.option(
    "--max-shadows", type=int, default=10_000, show_default=True, help="Maximum number of models with --until-width."
)
@pictures_option
@threads_option
@quiet_option
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

    GRAPH is the name of a data set, an .npz archive, a folder with nodes and edges tables, or module:function. Running the
    command again on the same folder resumes a stopped audit; a finished one is left alone. More --shadows are added to those
    already there.

    \b
    bmpaudit audit cora --sampler snowball --model gat --shadows 1000 --out cora-gat
    bmpaudit audit --out cora-gat --shadows 2000
    """
    from bmpaudit.auditing.pipeline import Pipeline
    from bmpaudit.auditing.until_width import audit_until_width
    from bmpaudit.auditing.workspace import Workspace

    subject, workspace, runtime = (
        make_subject(graph, plan_path, settings, out),
        Workspace(out),
        make_runtime(threads, quiet),
    )
    if until_width is None:
        pipeline = Pipeline(subject, workspace, runtime)
        with pipeline.prepared():
            pipeline.report(pictures=pictures)
        summary = pipeline.audit.summary
    else:
        reached = audit_until_width(subject, workspace, until_width, max_shadows, runtime, pictures=pictures)
        click.echo(f"bmpaudit: {reached.message}", err=True)
        summary = reached.audit.summary
    show_summary(summary, workspace.report_path, as_json)


@cli.command()
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("bmpaudit-demo"), show_default=True,
    help="Folder of the audit.",
)  # fmt: skip
@threads_option
@quiet_option
@json_option
def demo(out: Path, threads: int | None, quiet: bool, as_json: bool) -> None:
    """Audit the embedded graph with 200 shadow models, in under a minute.

    \b
    bmpaudit demo
    """
    from bmpaudit.auditing import audit

    result = audit("demo", sampler="snowball", shadows=DEMO_SHADOWS, folder=out, runtime=make_runtime(threads, quiet))
    show_summary(result.summary, out / "report.html", as_json)


@cli.command()
@graph_argument
@out_option
@plan_options()
@threads_option
@quiet_option
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
    from bmpaudit.auditing.pipeline import Pipeline
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.plain import to_json

    pipeline = Pipeline(make_subject(graph, plan_path, settings, out), Workspace(out), make_runtime(threads, quiet))
    with pipeline.prepared():
        priors = pipeline.sample()
    low, high, shadows = float(priors.prob.min()), float(priors.prob.max()), pipeline.plan.shadows
    if as_json:
        click.echo(to_json({"folder": str(out), "num_samples": shadows, "prior_prob": {"min": low, "max": high}}))
    else:
        click.echo(f"{shadows:,} samples in {out / 'memberships.npz'}; γ from {low:.4f} to {high:.4f}")


@cli.command()
@folder_argument
@click.option(
    "--runs",
    "runs_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Import models trained elsewhere: .npz with memberships and, by view, logits, probabilities or margins.",
)
@click.option(
    "--allow-misfit", is_flag=True, help="Audit imported models even if their memberships do not fit the sampler."
)
@trust_option
@threads_option
@quiet_option
@json_option
def attack(
    folder: Path,
    runs_path: Path | None,
    allow_misfit: bool,
    trust_code: bool,
    threads: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Attack the shadow models of an audit folder and write the errors.

    \b
    bmpaudit attack cora-gat
    """
    from bmpaudit.auditing.outside_runs import import_runs
    from bmpaudit.auditing.pipeline import Pipeline
    from bmpaudit.auditing.stored import stored_subject
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.plain import to_json

    workspace, runtime = Workspace(folder), make_runtime(threads, quiet)
    subject = stored_subject(workspace, trust_code=trust_code)
    if runs_path is not None:
        subject = import_runs(subject, workspace, runs_path, runtime, allow_misfit=allow_misfit)
    pipeline = Pipeline(subject, workspace, runtime, may_run=("attack",), allow_misfit=allow_misfit)
    with pipeline.prepared():
        attacks = pipeline.attacks
    if as_json:
        rows = {
            name: {"num_nodes": counts.num_nodes, **asdict(attacks.performance[name])}
            for name, counts in attacks.counts.items()
        }
        click.echo(to_json(rows))
        return
    for name, performance in attacks.performance.items():
        click.echo(f"{name}: {performance}")
    click.echo(str(attacks.permutation_test))


@cli.command()
@folder_argument
@pictures_option
@threads_option
@quiet_option
def report(folder: Path, pictures: bool, threads: int | None, quiet: bool) -> None:
    """Write the page, the tables and the pictures of an audit folder again.

    \b
    bmpaudit report cora-gat
    """
    from bmpaudit.auditing.pipeline import Pipeline
    from bmpaudit.auditing.stored import stored_subject
    from bmpaudit.auditing.workspace import Workspace

    workspace = Workspace(folder)
    pipeline = Pipeline(stored_subject(workspace), workspace, make_runtime(threads, quiet), may_run=("report",))
    with pipeline.prepared():
        click.echo(pipeline.report(pictures=pictures))
