"""The paper's experiments, repeated and set beside its tables: `python -m reproduction --out DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bmpaudit.cli.options import answer, make_runtime, shared
from bmpaudit.cli.root import main
from bmpaudit.util.errors import InputError


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for all results.")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Number of seeds to run: 0, 1, …"
)
@click.option("--only", type=click.Choice(["cora", "citeseer"]), help="Only this data set.")
@click.option("--fraction", type=float, help="Only this training fraction, 0.25 or 0.5.")
@click.option("--model", type=click.Choice(["gcn", "gat"]), help="Only this model.")
@click.option("--sampler", type=click.Choice(["uniform", "snowball"]), help="Only this sampler.")
@click.option("--quick", is_flag=True, help="Train a tenth of the models, for a first look.")
@click.option("--beyond", is_flag=True, help="Also attack PubMed and MLP.")
@click.option("--study", is_flag=True, help="Also study ε_R for training fractions from 10 % to 90 %.")
@click.option("--growth", is_flag=True, help="Also study how results move with the number of models, up to 20,000.")
@click.option("--external", is_flag=True, help="Run published experiments of others instead of the paper's.")
@click.option("--page-only", is_flag=True, help="Run nothing; write tables, figures and page from existing results.")
@click.option("--keep-shadows", is_flag=True, help="Keep the shadow models, as audit folders (43 MB per set).")
@shared("threads", "dask", "quiet", "json")
def reproduce(
    out: Path,
    seeds: int,
    only: str | None,
    fraction: float | None,
    model: str | None,
    sampler: str | None,
    external: bool,
    **options: Any,
) -> None:
    """Repeat the paper's experiments, or resume.

    Trains 16 sets of 1,000 shadow models per seed, attacks each in 8 ways, estimates BMP-R and MP (256 cells), and
    writes tables, figures, verdicts, findings, proofs and a page with our values beside the published ones.
    """
    runtime = make_runtime()
    if external:
        from reproduction.external import run_external

        kept = {name: options[name] for name in ("quick", "page_only", "keep_shadows")}
        agreement = run_external(out, runtime, **kept)
        answer({**vars(agreement), "page": str(agreement.page)}, agreement)
        return
    from reproduction.experiments import CONFIGURATIONS
    from reproduction.workflow import run_everything

    wanted = {"dataset": only, "train_fraction": fraction, "model": model, "sampler": sampler}
    chosen = [
        configuration
        for configuration in CONFIGURATIONS
        if all(value is None or getattr(configuration, name) == value for name, value in wanted.items())
    ]
    if not chosen:
        raise InputError(f"fraction must be 0.25 or 0.5, got fraction={fraction}")
    summary = run_everything(out, chosen, num_seeds=seeds, runtime=runtime, **options)
    findings = [vars(finding) for finding in summary.findings]
    answer({**vars(summary), "findings": findings, "page": str(summary.page)}, summary)


if __name__ == "__main__":
    main(reproduce, "python -m reproduction")
