"""The pipeline step by step: samples, training, attacks, proofs; and what a sampler alone gives away."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.text import Text

from bmpaudit import datasets, registry
from bmpaudit.auditing.finished import stored_subject
from bmpaudit.auditing.stages import CANDIDATES
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.cli.options import (
    FILE,
    FOLDER,
    HEADINGS,
    SectionedCommand,
    dask_option,
    folder_argument,
    graph_argument,
    json_option,
    make_runtime,
    option,
    out_option,
    quiet_option,
    run_option,
    store_option,
    threads_option,
    trust_option,
)
from bmpaudit.cli.plan_options import (
    check_trainable,
    make_subject,
    plan_options,
    set_option,
    setting_options,
    settings_by_sampler,
)
from bmpaudit.cli.root import cli, echo
from bmpaudit.cli.show import console, print_table, simple_table
from bmpaudit.graph import Graph
from bmpaudit.pipeline.outside_runs import ProofSettings, import_runs, prove_file, prove_folder
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.registry import ATTACK, ENTRIES, SAMPLER
from bmpaudit.samplers import Priors, prior_probabilities
from bmpaudit.shadow import ShadowRuns, estimate_cost
from bmpaudit.util.files import atomic_write
from bmpaudit.util.matrices import model_blocks
from bmpaudit.util.progress import progress_bar
from bmpaudit.util.values import to_json
from bmpaudit.util.words import number

if TYPE_CHECKING:
    import pandas as pd


@cli.command(cls=SectionedCommand)
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
    """Draw the training samples, for models that you train elsewhere.

    Writes the plan, the prior probability of every node, and which node is in which sample. GRAPH is the name of a data
    set, an .npz archive, a folder with nodes and edges tables, or module:function.

    \b
    bmpaudit sample cora --sampler snowball --shadows 1000 --out cora-own
    """
    pipeline = Pipeline(make_subject(graph, plan_path, settings, out), Workspace(out), make_runtime(threads, quiet))
    with pipeline.prepared():
        priors = pipeline.sample()
    low, high, shadows = float(priors.prob.min()), float(priors.prob.max()), pipeline.plan.shadows
    if as_json:
        echo(to_json({"folder": str(out), "num_samples": shadows, "prior_prob": {"min": low, "max": high}}))
    else:
        echo(f"{shadows:,} samples in {out / 'memberships.npz'}; γ from {low:.4f} to {high:.4f}")


def _parse_range(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:  # noqa: ARG001
    if value is None:
        return None
    start, _, stop = value.partition(":")
    if not (start.isdecimal() and stop.isdecimal()):
        raise click.BadParameter(f"must be START:STOP, such as 0:256, got {value!r}")
    return int(start), int(stop)


@cli.command(cls=SectionedCommand)
@graph_argument
@out_option
@plan_options(without=("attack", "decision", "estimation", "permutations"))
@run_option("--keep-logits", is_flag=True, help="Store the logits beside the statistics.")
@run_option(
    "--cost",
    "only_cost",
    is_flag=True,
    help="Only estimate how long training will take and how much disk space it needs.",
)
@run_option(
    "--range",
    "chosen",
    metavar="START:STOP",
    callback=_parse_range,
    help="Train only models START to STOP - 1, both multiples of 32, beside other processes that train other ranges "
    "into the same folder.",
)
@store_option
@threads_option
@dask_option
@quiet_option
@json_option
def train(
    graph: str | None,
    out: Path,
    plan_path: Path | None,
    keep_logits: bool,
    only_cost: bool,
    chosen: tuple[int, int] | None,
    store: str | None,
    threads: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Train shadow models, or resume training.

    GRAPH is the name of a data set, an .npz archive, a folder with nodes and edges tables, or module:function. Without
    it, the plan of the audit folder is used.

    \b
    bmpaudit train cora --sampler snowball --model gat --shadows 1000 --out cora-gat
    bmpaudit train --out cora-gat --dask tcp://scheduler:8786
    bmpaudit train --out cora-gat --range 0:256
    """
    subject = make_subject(graph, plan_path, settings, out)
    check_trainable(subject, out)
    plan = subject.plan
    if only_cost:
        cost = estimate_cost(
            subject.graph, plan.shadow_plan, plan.shadows, num_threads=threads, keep_logits=keep_logits
        )
        echo(to_json(vars(cost)) if as_json else cost)
        return
    if chosen is not None and dask is not None:
        raise click.UsageError("--range is for machines without a scheduler: give either --range or --dask")
    pipeline = Pipeline(subject, Workspace(out, store), make_runtime(threads, quiet, dask), keep_logits=keep_logits)
    if chosen is not None:
        done = pipeline.train_range(*chosen)
        start, stop, num_done = chosen[0], min(chosen[1], len(done)), int(done.sum())
        if as_json:
            echo(to_json({"folder": str(out), "range": [start, stop], "done": num_done, "shadows": len(done)}))
        else:
            echo(f"models {start:,} to {stop - 1:,} are in {out}, which has {num_done:,} of {len(done):,}")
        return
    with pipeline.prepared():
        runs = pipeline.runs
    summary = _summary_of_runs(runs)
    if as_json:
        echo(to_json({"folder": str(out), "seed": plan.seed, **summary}))
    else:
        _print_runs(subject.graph, out, summary, plan.seed)
    if runs.num_models == 0:
        sys.exit(1)


def _summary_of_runs(runs: ShadowRuns) -> dict[str, Any]:
    views = {}
    for view, statistics in runs.statistics.items():
        totals, counts = np.zeros(2), np.zeros(2)
        for rows in model_blocks(*runs.memberships.shape):
            margins, members = statistics[rows], runs.memberships[rows]
            for side, is_side in enumerate((members, ~members)):
                totals[side] += margins[is_side].sum(dtype=np.float64)
                counts[side] += np.count_nonzero(is_side)
        means = [float(total / count) if count else None for total, count in zip(totals, counts, strict=True)]
        views[view] = {"mean_margin_in": means[0], "mean_margin_out": means[1]}
    return {
        "num_models": runs.num_models,
        "failed": list(runs.failed),
        "train_accuracy": _mean(runs.train_accuracy),
        "held_out_accuracy": _mean(runs.held_out_accuracy),
        "views": views,
    }


def _mean(values: np.ndarray) -> float | None:
    """None where there is nothing to average: JSON has no NaN."""
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None


def _print_runs(graph: Graph, out: Path, summary: dict[str, Any], seed: int) -> None:
    table = simple_table("view", "mean statistic, node in sample", "mean statistic, node not in sample")
    for view, means in summary["views"].items():
        table.add_row(view, *("-" if mean is None else f"{mean:.3f}" for mean in means.values()))
    console().print(Text(str(graph)))
    print_table(table)
    accuracies = (summary["train_accuracy"], summary["held_out_accuracy"])
    shown = ["-" if accuracy is None else f"{accuracy:.1%}" for accuracy in accuracies]
    console().print(Text(f"{summary['num_models']:,} shadow models in {out}"), soft_wrap=True)
    console().print(f"accuracy on their samples {shown[0]}, elsewhere {shown[1]}")
    failed = summary["failed"]
    if failed:
        first = ", ".join(map(str, failed[:10]))
        console().print(f"{len(failed):,} models failed (seed {seed}; empty sample, or not finite): {first}")


@cli.command()
@folder_argument
@click.option(
    "--runs",
    "runs_path",
    metavar="FILE.npz",
    type=FILE,
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


@cli.command()
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER)
@click.option(
    "--runs",
    "runs_path",
    type=FILE,
    help="Models from a file instead of a folder: .npz with memberships, prior_prob and views.",
)
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    help=f"Attack to choose from: {', '.join(ENTRIES[ATTACK])}, or module:Name; can be repeated [student gaussian].",
)
@click.option("--release", default="", help="Release, such as clean or noisy [the first one].")
@option("--level", type=float, default=0.95, help="Confidence of each bound.")
@option(
    "--method",
    type=click.Choice(["one-guess", "prequential"]),
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
    settings = ProofSettings(attacks or CANDIDATES, release, level, method, num_fitting)  # type: ignore[arg-type]
    runtime = make_runtime(threads, quiet)
    if folder is not None and runs_path is None:
        proof = prove_folder(folder, settings, runtime, trust_code=trust_code)
    elif runs_path is not None and folder is None:
        proof = prove_file(runs_path, settings, runtime)
    else:
        raise click.UsageError("prove takes an audit folder or --runs FILE, one of the two")
    echo(to_json(proof.to_plain()) if as_json else str(proof))


SHOWN_BY_DEFAULT = ("uniform", "snowball")


@cli.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH")
@option(
    "--sampler",
    "names",
    metavar="NAME",
    multiple=True,
    section=HEADINGS[SAMPLER],
    default_text=" ".join(SHOWN_BY_DEFAULT),
    help=f"How the training sample is drawn ({', '.join(ENTRIES[SAMPLER])}, or module:Name; can be repeated).",
)
@setting_options("sampler")
@set_option
@option("--draws", type=int, default=100_000, help="Number of samples drawn where γ has no formula.")
@option("--seed", type=int, default=0, help="Random seed of the draws.")
@option("--output", metavar="FILE.csv", type=FILE, help="CSV file for γ and η of every node.")
@threads_option
@quiet_option
@json_option
def priors(
    graph: str,
    names: tuple[str, ...],
    draws: int,
    seed: int,
    output: Path | None,
    threads: int | None,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Show what the sampler alone gives away: prior probabilities γ and the floor they set (Proposition 1).

    GRAPH is the name of a data set, an .npz archive, a folder with nodes and edges tables, or module:function.

    \b
    bmpaudit priors cora --sampler snowball --train-fraction 0.5
    """
    loaded = datasets.load(graph)
    rows = []
    for name, chosen in settings_by_sampler(names or SHOWN_BY_DEFAULT, settings).items():
        sampler = registry.build(SAMPLER, {"name": name, **chosen})
        with progress_bar(f"{name} samples", draws, quiet=quiet) as progress:
            drawn = prior_probabilities(
                loaded, sampler, num_draws=draws, seed=seed, progress=progress, num_threads=threads
            )
        rows.append((name, drawn))
    if output is not None:
        with atomic_write(output) as temporary:
            _priors_of_nodes(loaded, rows).to_csv(temporary, index=False)
    if as_json:
        echo(to_json([_summary_of_priors(name, each) for name, each in rows]))
    else:
        _print_priors(loaded, rows)


def _summary_of_priors(name: str, priors: Priors) -> dict[str, Any]:
    return {
        "sampler": name,
        "settings": registry.settings_of(priors.sampler),
        "num_draws": priors.num_draws,
        "prior_prob": {
            "min": float(priors.prob.min()),
            "mean": float(priors.prob.mean()),
            "max": float(priors.prob.max()),
            "max_standard_error": float(priors.standard_error.max()),
        },
        "num_never_drawn": priors.num_never_drawn,
        "floor": asdict(priors.floor),
    }


def _print_priors(graph: Graph, rows: list[tuple[str, Priors]]) -> None:
    table = simple_table("sampler", "γ min", "γ mean", "γ max", "±", "ε_L ≥", "ε_R ≥", "draws")
    for name, each in rows:
        values = (each.prob.min(), each.prob.mean(), each.prob.max(), each.standard_error.max())
        table.add_row(
            name,
            *(f"{value:.4f}" for value in values),
            number(each.floor.left),
            number(each.floor.right),
            "formula" if each.is_exact else f"{each.num_draws:,}",
        )
    console().print(str(graph))
    console().print(table)
    console().print("γ: probability that a node is in the training sample.")
    console().print("ε_L, ε_R: the floor that the sampler alone sets, whatever is trained (Prop. 1).")
    levels = {each.floor.level for _, each in rows if not each.is_exact}
    for level in sorted(level for level in levels if level is not None):
        console().print(f"Where γ was drawn, the floor holds with {100 * level:g} % confidence.")


def _priors_of_nodes(graph: Graph, rows: list[tuple[str, Priors]]) -> pd.DataFrame:
    import pandas as pd

    nodes = graph.node_names or range(graph.num_nodes)
    columns = ("sampler", "node", "prior_prob", "standard_error", "prior_odds")
    return pd.concat(
        pd.DataFrame(dict(zip(columns, (name, nodes, each.prob, each.standard_error, each.odds), strict=True)))
        for name, each in rows
    )
