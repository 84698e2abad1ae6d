"""What the models prove, in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from bmpaudit.cli.options import json_option, make_runtime, quiet_option, threads_option, trust_option
from bmpaudit.cli.root import cli
from bmpaudit.cli.sections import SectionOption
from bmpaudit.cli.terminal import echo
from bmpaudit.plain import to_json
from bmpaudit.registry import ATTACK, ENTRIES


@cli.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--runs",
    "runs_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Models from a file instead of a folder: .npz with memberships, prior_prob and views.",
)
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    help=f"Attack to choose from: {', '.join(ENTRIES[ATTACK])}, or module:Name; can be repeated [student gaussian].",
)
@click.option("--release", default="", help="Release, such as clean or noisy [the first one].")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of each bound.")
@click.option(
    "--method",
    type=click.Choice(["one-guess", "prequential"]),
    cls=SectionOption,
    default_text="the plan's, or one-guess",
    help="One guess per model with a fixed split, or the form that holds whenever you stop adding models.",
)
@click.option("--num-fitting", type=int, help="Number of models that the rule is fitted on [a third].")
@trust_option
@threads_option
@quiet_option
@json_option
def prove(
    folder: Path | None,
    runs_path: Path | None,
    attacks: tuple[str, ...],
    release: str,
    level: float,
    method: str | None,
    num_fitting: int | None,
    trust_code: bool,
    threads: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Prove lower bounds on ε from the shadow models of an audit folder, or of a file.

    An adversary who sees a model names one node, or nobody. How often they are right bounds ε_R, ε_L and the ε of MP
    from below, with confidence and without assumptions about the attack.

    \b
    bmpaudit prove cora-gat
    bmpaudit prove --runs models.npz --json
    """
    from bmpaudit.auditing.proof_step import CANDIDATES
    from bmpaudit.auditing.proving import ProofSettings, prove_file, prove_folder

    settings = ProofSettings(attacks or CANDIDATES, release, level, method, num_fitting)  # type: ignore[arg-type]
    runtime = make_runtime(threads, quiet)
    if folder is not None and runs_path is None:
        proof = prove_folder(folder, settings, runtime, trust_code=trust_code)
    elif runs_path is not None and folder is None:
        proof = prove_file(runs_path, settings, runtime)
    else:
        raise click.UsageError("prove takes an audit folder or --runs FILE, one of the two")
    echo(to_json(proof.to_plain()) if as_json else str(proof))
