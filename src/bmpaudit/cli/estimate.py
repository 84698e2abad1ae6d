"""From a table of error counts to a posterior."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bmpaudit.cli.root import cli
from bmpaudit.estimation.definition import DEFINITIONS


@cli.command()
@click.argument("counts", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--definition", type=click.Choice(list(DEFINITIONS)), default="bmp-r", show_default=True, help="What to estimate."
)
@click.option(
    "--method", type=click.Choice(["exact", "mhaar"]), default="exact", show_default=True, help="mhaar: Algorithm 3."
)
@click.option("--prior-mean", type=float, default=0.0, show_default=True, help="Of the normal prior of ε.")
@click.option("--prior-variance", type=float, default=10.0, show_default=True, help="Of the normal prior of ε.")
@click.option("--strength", type=float, default=0.0, show_default=True, help="Attack strength s, in [0, 1).")
@click.option("--iterations", type=int, help="mhaar: steps of a chain [10,000; bmp 50,000].")
@click.option("--chains", type=int, default=4, show_default=True, help="mhaar: number of chains.")
@click.option("--seed", type=int, default=0, show_default=True, help="mhaar: of the chains.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate(
    counts: Path,
    definition: Any,
    method: Any,
    prior_mean: float,
    prior_variance: float,
    strength: float,
    iterations: int | None,
    chains: int,
    seed: int,
    as_json: bool,
) -> None:
    """Estimate ε from a table of an attack's errors.

    COUNTS is a CSV or Parquet file with the columns node, num_out, num_in, false_positives, false_negatives and
    prior_prob.
    """
    from bmpaudit import estimation
    from bmpaudit.attack import ErrorCounts

    posterior = estimation.estimate(
        ErrorCounts.from_table(counts),
        definition,
        method=method,
        prior=estimation.NormalPrior(prior_mean, prior_variance),
        strength=strength,
        num_iterations=iterations,
        num_chains=chains,
        seed=seed,
    )
    if as_json:
        click.echo(json.dumps(_without_infinity(posterior.summary()), indent=2))
        return
    click.echo(posterior)
    click.echo(f"  floor          ε_L ≥ {posterior.floor.left:.3f}, ε_R ≥ {posterior.floor.right:.3f}   (Prop. 1)")
    if posterior.left_out:
        click.echo(f"  left out       {len(posterior.left_out):,} nodes whose membership is certain")
    if posterior.method != "exact":
        click.echo(f"  status         {posterior.status}")


def _without_infinity(value: Any) -> Any:
    """JSON has no infinity: "inf" and "-inf" stand for it."""
    if isinstance(value, dict):
        return {name: _without_infinity(part) for name, part in value.items()}
    return str(value) if isinstance(value, float) and value in (float("inf"), float("-inf")) else value
