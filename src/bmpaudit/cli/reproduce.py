"""The paper's experiments, run again and set beside its tables."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from bmpaudit.cli.root import cli
from bmpaudit.errors import InputError
from bmpaudit.progress import progress_bar


@cli.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for all results.")
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Seeds 0, 1, … to run.")
@click.option("--only", type=click.Choice(["cora", "citeseer"]), help="Only this data set.")
@click.option("--fraction", type=float, help="Only this training fraction, 0.25 or 0.5.")
@click.option("--model", type=click.Choice(["gcn", "gat"]), help="Only this model.")
@click.option("--sampler", type=click.Choice(["random", "snowball"]), help="Only this sampling.")
@click.option("--quick", is_flag=True, help="A tenth of the models, for a first look.")
@click.option("--beyond", is_flag=True, help="Also PubMed and MLP, through the same attacks.")
@click.option("--study", is_flag=True, help="Also ε_R against the training fraction, 10 % to 90 %.")
@click.option("--page-only", is_flag=True, help="Run nothing; write tables, figures and page from what is there.")
@click.option("--keep-shadows", is_flag=True, help="Keep shadow models when their attacks are done (43 MB a set).")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to train and attack on [all cores].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def reproduce(
    out: Path,
    seeds: int,
    only: str | None,
    fraction: float | None,
    model: str | None,
    sampler: str | None,
    quick: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run the paper's experiments again, or go on where one left off.

    Trains 16 sets of 1,000 shadow models a seed, attacks each in 8 ways, estimates BMP-R and MP (256 cells), and writes
    tables, figures, verdicts, findings and a page that set all of it beside the published values.
    """
    from bmpaudit.paper.experiments import CONFIGURATIONS
    from bmpaudit.paper.workflow import run_everything

    wanted = {"dataset": only, "train_fraction": fraction, "model": model, "sampling": sampler}
    chosen = [
        of
        for of in CONFIGURATIONS
        if all(value is None or getattr(of, name) == value for name, value in wanted.items())
    ]
    if not chosen:
        raise InputError(f"fraction must be 0.25 or 0.5, got fraction={fraction}")
    # Where nobody watches a bar, a line for each finished set.
    tells = not quiet and not sys.stderr.isatty()
    summary = run_everything(
        out,
        chosen,
        num_seeds=seeds,
        quick=quick,
        watch=partial(progress_bar, quiet=quiet),
        report=(lambda told: click.echo(f"bmpaudit: {told}", err=True)) if tells else (lambda _: None),
        num_threads=options["threads"],
        keep_shadows=options["keep_shadows"],
        beyond=options["beyond"],
        study=options["study"],
        page_only=options["page_only"],
    )
    if as_json:
        told = {
            "num_cells": summary.num_cells,
            "num_agreeing": summary.num_agreeing,
            "findings": [vars(finding) for finding in summary.findings],
            "page": str(summary.page),
        }
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        click.echo(summary)
