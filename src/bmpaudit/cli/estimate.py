"""From a table of error counts to a posterior."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from bmpaudit.cli.options import (
    FILE,
    json_option,
    make_runtime,
    option,
    quiet_option,
    threads_option,
    trust_option,
)
from bmpaudit.cli.root import cli, echo
from bmpaudit.registry import DEFINITION, ENTRIES, build
from bmpaudit.util.words import count

if TYPE_CHECKING:
    from bmpaudit.attack import ErrorCounts
    from bmpaudit.estimation import Posterior

DEFAULT_LEVEL = 0.9  # of the interval that the table's 5 % and 95 % make
DRIVERS_SHOWN = 3
NAMED = 5  # nodes left out that are named


def _check_save(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Before the work, not after it."""
    if path is not None and path.suffix != ".npz":
        raise click.BadParameter(f"the name must end in .npz, got {path}")
    if path is not None and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"no such folder: {path.parent}")
    return path


@cli.command(
    epilog="""\b
Examples:
  bmpaudit estimate counts.csv
  bmpaudit estimate counts.csv --definition bmp --json
  bmpaudit estimate counts.csv --definition mp --strength-prior 1 1 --save mp.npz
  bmpaudit estimate counts.csv --method mhaar --correlated --chains 8
  bmpaudit estimate cora-gat"""
)
@click.argument("counts", metavar="COUNTS|DIR", type=click.Path(path_type=Path))
@option(
    "--definition",
    metavar="NAME",
    default="bmp-r",
    help=f"Privacy definition to estimate ({', '.join(ENTRIES[DEFINITION])}, or module:Name).",
)
@option(
    "--method",
    type=click.Choice(["exact", "mhaar"]),
    default="exact",
    help="Exact quadrature, or the Markov chains of Algorithm 3 (mhaar).",
)
@option("--prior-mean", type=float, default=0.0, help="Mean of the normal prior of ε.")
@option("--prior-variance", type=float, default=10.0, help="Variance of the normal prior of ε.")
@option("--strength", type=float, default_text="0", help="Assumed attack strength s, in [0, 1).")
@click.option(
    "--strength-prior",
    type=float,
    nargs=2,
    metavar="A B",
    help="Estimate s as well, with the prior Beta(A, B); for definitions with one parameter.",
)
@option(
    "--iterations",
    type=int,
    default_text="10,000; two parameters: 50,000",
    help="Number of steps of a chain (mhaar).",
)
@option("--chains", type=int, default_text="4", help="Number of chains (mhaar).")
@option("--auxiliary", type=int, default_text="50", help="Number of auxiliary points per node and step (mhaar).")
@click.option("--correlated", is_flag=True, help="Let the errors of a node be correlated, not binomial (mhaar).")
@option("--seed", type=int, default=0, help="Random seed of the chains (mhaar).")
@option(
    "--level",
    metavar="FLOAT",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=DEFAULT_LEVEL,
    help="Probability of the credible interval that is shown.",
)
@click.option(
    "--save",
    type=FILE,
    callback=_check_save,
    metavar="FILE.npz",
    help="File to save the posterior to; bmpaudit.Posterior.load reads it.",
)
@trust_option
@threads_option
@quiet_option
@json_option
def estimate(
    counts: Path,
    level: float,
    save: Path | None,
    trust_code: bool,
    threads: int | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Estimate ε from the errors of an attack: those of a table, or those of an audit folder.

    COUNTS is a CSV or Parquet file with the columns node, num_out, num_in, false_positives, false_negatives and
    prior_prob. DIR is an audit folder, whose plan says what to estimate; the other options are for COUNTS.
    """
    if counts.is_dir():
        _estimate_folder(counts, trust_code, threads, as_json, quiet)
        return
    from bmpaudit.attack import ErrorCounts
    from bmpaudit.util.values import to_json

    posterior = _estimate(ErrorCounts.from_table(counts), quiet=quiet, threads=threads, **settings)
    if save is not None:
        posterior.save(save)
    echo(to_json(_as_json(posterior, level)) if as_json else "\n".join(_table(posterior, level)))


def _estimate_folder(folder: Path, trust_code: bool, threads: int | None, as_json: bool, quiet: bool) -> None:
    from bmpaudit.auditing.finished import stored_subject
    from bmpaudit.auditing.workspace import Workspace
    from bmpaudit.cli.show import show_audit
    from bmpaudit.pipeline.pipeline import Pipeline

    context = click.get_current_context()
    for parameter in context.command.params:
        is_given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if is_given and parameter.name not in ("counts", "trust_code", "threads", "as_json", "quiet"):
            raise click.UsageError(
                f"{parameter.opts[0]} is for a table of errors; {folder} has a plan, see bmpaudit audit"
            )
    workspace = Workspace(folder)
    subject = stored_subject(workspace, trust_code=trust_code)
    pipeline = Pipeline(subject, workspace, make_runtime(threads, quiet), may_run=("estimate",))
    with pipeline.prepared():
        audit = pipeline.audit
    show_audit(audit, None, as_json)


def _estimate(
    counts: ErrorCounts,
    *,
    definition: Any,
    method: Any,
    prior_mean: float,
    prior_variance: float,
    strength: float | None,
    strength_prior: tuple[float, float] | None,
    seed: int,
    quiet: bool,
    threads: int | None,
    **of_chains: Any,
) -> Posterior:
    """The posterior that the options ask for."""
    from bmpaudit import estimation
    from bmpaudit.estimation.mhaar import DEFAULT_ITERATIONS, DEFAULT_JOINT_ITERATIONS
    from bmpaudit.util.progress import progress_bar

    if strength is not None and strength_prior is not None:
        raise click.UsageError("--strength fixes what --strength-prior estimates: give one of the two")
    given = {name: value for name, value in of_chains.items() if value is not None and value is not False}
    if method != "mhaar" and given:
        raise click.UsageError(f"--{next(iter(given))} is for --method mhaar, got --method {method}")
    part = build(DEFINITION, definition)
    default = DEFAULT_JOINT_ITERATIONS if len(part.parameters) > 1 else DEFAULT_ITERATIONS
    iterations, chains = given.get("iterations", default), given.get("chains", 4)
    with progress_bar("iterations", iterations * chains, quiet=quiet or method != "mhaar") as progress:
        return estimation.estimate(
            counts,
            part,
            method=method,
            prior=estimation.NormalPrior(prior_mean, prior_variance),
            strength=(strength or 0.0) if strength_prior is None else estimation.StrengthPrior(*strength_prior),
            correlated=estimation.CorrelatedCounts() if "correlated" in given else None,
            num_iterations=iterations,
            num_auxiliary=given.get("auxiliary", 50),
            num_chains=chains,
            seed=seed,
            progress=progress,
            num_threads=threads,
        )


def _table(posterior: Posterior, level: float) -> list[str]:
    """The lines printed."""
    lines = [str(posterior)]
    if posterior.status == "converged":
        lines.append("  status: converged")
    if level != DEFAULT_LEVEL:
        for name in posterior.marginals:
            interval = posterior.interval(level, name)
            lines.append(f"  {f'{100 * level:g} % interval':<14} {name} from {interval.low:.3f} to {interval.high:.3f}")
    lines.append(f"  floor          ε_L ≥ {posterior.floor.left:.3f}, ε_R ≥ {posterior.floor.right:.3f}   (Prop. 1)")
    if posterior.left_out:
        named = ", ".join(map(str, posterior.left_out[:NAMED])) + (", ..." if len(posterior.left_out) > NAMED else "")
        lines.append(f"  left out       {count(len(posterior.left_out), 'node')} whose membership is certain: {named}")
    names = [parameter.name for parameter in posterior.definition.parameters]
    for name in names:
        lines.append(f"  proven*        {name} {posterior.proven(name)}")
        of = f" of {name}" if len(names) > 1 else ""
        share = posterior.tail_prior_share(name)
        lines.append(f"  upper tail     {share:.0%} of the top 5 %{of} has the shape of the prior")
        drivers = [
            f"{node.node} ({node.shift:+.3f}{', never varies' if node.is_constant else ''})"
            for node in posterior.influence(name).drivers(DRIVERS_SHOWN)
        ]
        nodes = "node" if len(drivers) == 1 else "nodes"
        lines.append(f"  driven by      {nodes} {', '.join(drivers)}: shift of the mean")
    return [*lines, "  * with 95 % confidence, if these counts come from Algorithm 4"]


def _as_json(posterior: Posterior, level: float) -> dict[str, Any]:
    summary = posterior.summary()
    for name in posterior.marginals:
        interval = posterior.interval(level, name)
        summary[name]["interval"] = {"level": level, "low": interval.low, "high": interval.high}
    summary["drivers"] = {
        parameter.name: [vars(node) for node in posterior.influence(parameter.name).drivers()]
        for parameter in posterior.definition.parameters
    }
    return summary
