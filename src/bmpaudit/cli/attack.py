"""The attack on the shadow models of an audit folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from bmpaudit.cli.options import (
    dask_option,
    folder_argument,
    json_option,
    make_runtime,
    quiet_option,
    threads_option,
    trust_option,
)
from bmpaudit.cli.root import cli
from bmpaudit.cli.terminal import echo


@cli.command()
@folder_argument
@click.option(
    "--runs",
    "runs_path",
    metavar="FILE.npz",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Import models trained elsewhere: memberships and, for each view, logits, probabilities or margins.",
)
@click.option(
    "--allow-misfit",
    is_flag=True,
    help="Audit models trained elsewhere even if their memberships do not fit the sampler.",
)
@trust_option
@threads_option
@dask_option
@quiet_option
@json_option
def attack(
    folder: Path,
    runs_path: Path | None,
    allow_misfit: bool,
    trust_code: bool,
    threads: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Attack the shadow models of an audit folder and count the errors.

    \b
    bmpaudit attack cora-gat
    bmpaudit attack cora-own --runs runs.npz
    """
    from bmpaudit.auditing.outside_runs import import_runs
    from bmpaudit.auditing.pipeline import Pipeline
    from bmpaudit.auditing.stored import stored_subject
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.plain import to_json

    workspace, runtime = Workspace(folder), make_runtime(threads, quiet, dask)
    subject = stored_subject(workspace, trust_code=trust_code)
    if runs_path is not None:
        subject = import_runs(subject, workspace, runs_path, runtime, allow_misfit=allow_misfit)
    pipeline = Pipeline(subject, workspace, runtime, may_run=("attack",), allow_misfit=allow_misfit)
    with pipeline.prepared():
        attacks, findings = pipeline.attacks, pipeline.findings
    if as_json:
        rows = {
            name: {"num_nodes": counts.num_nodes, **asdict(attacks.performance[name])}
            for name, counts in attacks.counts.items()
        }
        echo(to_json(rows))
        return
    for name, performance in attacks.performance.items():
        echo(f"{name}: {performance}")
    echo(str(attacks.permutation_test))
    for release, part in findings.items():
        echo(f"{release} release: {part.exposure.exposure.statement()}")
        echo(f"{release} release: {part.proof or f'nothing proven: {part.not_proven}'}")
