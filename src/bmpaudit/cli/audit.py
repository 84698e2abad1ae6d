"""One command from graph to report, the same pipeline step by step, a sampler's priors, proofs, and the gate."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from click.decorators import FC

from bmpaudit import datasets, registry, samplers, shadow
from bmpaudit.auditing import Workspace, finished
from bmpaudit.auditing.answer import known_mean
from bmpaudit.cli import options
from bmpaudit.cli.options import SectionedCommand, answer, asked, make_runtime, option, print_json, run_option, shared
from bmpaudit.cli.plan import make_subject, plan_options, setting_options, settings_by_sampler
from bmpaudit.cli.root import cli, echo, tell
from bmpaudit.cli.show import print_rows, say, show_audit
from bmpaudit.pipeline import outside_runs
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.pipeline.pipeline import audit as run_audit
from bmpaudit.plan import Gate
from bmpaudit.registry import ATTACK, ENTRIES, SAMPLER
from bmpaudit.releases import ACCESSES
from bmpaudit.util import errors, files, matrices, words

DEMO_SHADOWS = 800


@cli.command(cls=SectionedCommand)
@shared("graph", "out")
@plan_options()
@run_option("--until-width", type=float, help="Add shadow models until the 90 % interval of ε is narrower than this.")
@run_option("--until-proven", type=float, help="Add shadow models until ε_R is proven to be at least this.")
@run_option(
    "--max-shadows",
    type=int,
    default=10_000,
    help="Maximum number of shadow models with --until-width and --until-proven.",
)
@shared("pictures", "store", "threads", "dask", "quiet", "json")
def audit(graph: str | None, out: Path, max_shadows: int, pictures: str, store: str | None, **settings: Any) -> None:
    """Audit a graph: sample, train shadow models, attack, estimate, report.

    GRAPH is the name of a data set, an .npz archive, a folder with nodes and edges tables, or module:function.

    Running the command again on the same folder resumes a stopped audit and leaves a finished one alone. A larger
    --shadows adds models to those already there.

    \b
    bmpaudit audit cora --sampler snowball --model gat --shadows 1000 --out cora-gat
    bmpaudit audit --out cora-gat --shadows 2000
    """
    target = {name: settings.pop(f"until_{name}") for name in ("width", "proven")}
    if None not in target.values():
        raise click.UsageError("--until-width and --until-proven cannot both be given")
    subject = make_subject(graph, settings, out)
    workspace, runtime = Workspace(out, store), make_runtime()
    if any(value is not None for value in target.values()):
        from bmpaudit.pipeline.pipeline import audit_until

        stopped = audit_until(subject, workspace, runtime, max_shadows=max_shadows, pictures=pictures, **target)
        tell(stopped.message)
        audited = stopped.audit
    else:
        pipeline = Pipeline(subject, workspace, runtime)
        with pipeline.prepared():
            pipeline.report(pictures=pictures)
        audited = pipeline.audit
    show_audit(audited, workspace.report_path)


@cli.command()
@option("--out", metavar="DIR", default=Path("bmpaudit-demo"), help="Audit folder.")
@shared("threads", "dask", "quiet", "json")
def demo(out: Path) -> None:
    """Audit the embedded graph with 800 shadow models, in under a minute.

    \b
    bmpaudit demo
    """
    audited = run_audit("demo", sampler="snowball", shadows=DEMO_SHADOWS, folder=out, runtime=make_runtime())
    show_audit(audited, out / "report.html")


# The pipeline, step by step.


@cli.command(cls=SectionedCommand)
@shared("graph", "out")
@plan_options()
@shared("threads", "quiet", "json")
def sample(graph: str | None, out: Path, **settings: Any) -> None:
    """Draw the training samples, for models that you train elsewhere.

    Writes the plan, the prior probability of every node, and which node is in which sample. GRAPH is the name of a data
    set, an .npz archive, a folder with nodes and edges tables, or module:function.

    \b
    bmpaudit sample cora --sampler snowball --shadows 1000 --out cora-own
    """
    pipeline = Pipeline(make_subject(graph, settings, out, trains=False), Workspace(out), make_runtime())
    with pipeline.prepared():
        priors = pipeline.sample()
    low, high, shadows = float(priors.prob.min()), float(priors.prob.max()), pipeline.plan.shadows
    values = {"folder": str(out), "num_samples": shadows, "prior_prob": {"min": low, "max": high}}
    answer(values, f"{shadows:,} samples in {out / 'memberships.npz'}; γ from {low:.4f} to {high:.4f}")


def _parse_range(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:  # noqa: ARG001
    if value is None:
        return None
    start, _, stop = value.partition(":")
    if not (start.isdecimal() and stop.isdecimal()):
        raise click.BadParameter(f"must be START:STOP, such as 0:256, got {value!r}")
    return int(start), int(stop)


@cli.command(cls=SectionedCommand)
@shared("graph", "out")
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
@shared("store", "threads", "dask", "quiet", "json")
def train(
    graph: str | None,
    out: Path,
    keep_logits: bool,
    only_cost: bool,
    chosen: tuple[int, int] | None,
    store: str | None,
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
    subject = make_subject(graph, settings, out)
    plan = subject.plan
    if only_cost:
        threads = make_runtime().num_threads
        price = shadow.estimate_cost(
            subject.graph, plan.shadow_plan, plan.shadows, num_threads=threads, keep_logits=keep_logits
        )
        answer(vars(price), price)
        return
    if chosen is not None and asked("dask") is not None:
        raise click.UsageError("--range is for machines without a scheduler: give either --range or --dask")
    pipeline = Pipeline(subject, Workspace(out, store), make_runtime(), keep_logits=keep_logits)
    if chosen is not None:
        done = pipeline.train_range(*chosen)
        start, stop, num_done = chosen[0], min(chosen[1], len(done)), int(done.sum())
        values = {"folder": str(out), "range": [start, stop], "done": num_done, "shadows": len(done)}
        answer(values, f"models {start:,} to {stop - 1:,} are in {out}, which has {num_done:,} of {len(done):,}")
        return
    with pipeline.prepared():
        runs = pipeline.runs
    summary = _summary_of_runs(runs)
    if asked("json"):
        print_json({"folder": str(out), "seed": plan.seed, **summary})
    else:
        _print_runs(subject.graph, out, summary, plan.seed)
    if runs.num_models == 0:
        sys.exit(1)


def _summary_of_runs(runs: shadow.ShadowRuns) -> dict[str, Any]:
    views = {}
    for view, statistics in runs.statistics.items():
        totals, counts = np.zeros(2), np.zeros(2)
        for rows in matrices.model_blocks(*runs.memberships.shape):
            margins, members = statistics[rows], runs.memberships[rows]
            for side, is_side in enumerate((members, ~members)):
                totals[side] += margins[is_side].sum(dtype=np.float64)
                counts[side] += np.count_nonzero(is_side)
        means = [float(total / count) if count else None for total, count in zip(totals, counts, strict=True)]
        views[view] = {"mean_margin_in": means[0], "mean_margin_out": means[1]}
    return {
        "num_models": runs.num_models,
        "failed": list(runs.failed),
        "train_accuracy": known_mean(runs.train_accuracy),
        "held_out_accuracy": known_mean(runs.held_out_accuracy),
        "views": views,
    }


def _print_runs(graph: object, out: Path, summary: dict[str, Any], seed: int) -> None:
    def shown(values: Iterable[float | None], form: str) -> list[str]:
        return ["-" if value is None else format(value, form) for value in values]

    say(graph)
    means = [(view, *shown(each.values(), ".3f")) for view, each in summary["views"].items()]
    print_rows(("view", "mean statistic, node in sample", "mean statistic, node not in sample"), means)
    say(f"{summary['num_models']:,} shadow models in {out}", soft_wrap=True)
    accuracies = shown((summary["train_accuracy"], summary["held_out_accuracy"]), ".1%")
    say(f"accuracy on their samples {accuracies[0]}, elsewhere {accuracies[1]}")
    if failed := summary["failed"]:
        first = ", ".join(map(str, failed[:10]))
        say(f"{len(failed):,} models failed (seed {seed}; empty sample, or not finite): {first}")


@cli.command()
@shared("folder")
@option(
    "--runs",
    "runs_path",
    metavar="FILE.npz",
    help="Import models trained elsewhere: memberships and, for each view, logits, probabilities or margins.",
)
@option(
    "--allow-misfit",
    is_flag=True,
    help="Audit models trained elsewhere even if their memberships do not fit the sampler.",
)
@shared("trust-code", "threads", "dask", "quiet", "json")
def attack(folder: Path, runs_path: Path | None, allow_misfit: bool, trust_code: bool) -> None:
    """Attack the shadow models of an audit folder and count the errors.

    \b
    bmpaudit attack cora-gat
    bmpaudit attack cora-own --runs runs.npz
    """
    workspace, runtime = Workspace(folder), make_runtime()
    subject = finished.stored_subject(workspace, trust_code=trust_code)
    if runs_path is not None:
        subject = outside_runs.import_runs(subject, workspace, runs_path, runtime, allow_misfit=allow_misfit)
    pipeline = Pipeline(subject, workspace, runtime, may_run=("attack",), allow_misfit=allow_misfit)
    with pipeline.prepared():
        attacks, findings = pipeline.attacks, pipeline.findings
    if asked("json"):
        sizes = {name: {"num_nodes": counts.num_nodes} for name, counts in attacks.counts.items()}
        print_json({name: size | asdict(attacks.performance[name]) for name, size in sizes.items()})
        return
    for name, performance in attacks.performance.items():
        echo(f"{name}: {performance}")
    echo(str(attacks.permutation_test))
    for release, part in findings.items():
        if part.certified is not None:
            echo(f"{release} release: {part.certified}")
        echo(f"{release} release: {part.exposure.exposure.statement()}")
        echo(f"{release} release: {part.proof or f'nothing proven: {part.not_proven}'}")


@cli.command()
@click.argument("folder", metavar="[DIR]", required=False, type=options.FOLDER)
@option(
    "--runs",
    "runs_path",
    metavar="FILE",
    help="Models from a file instead of a folder: .npz with memberships, prior_prob (prior_draws) and views.",
)
@option("--allow-misfit", is_flag=True, help="Accept models of --runs that share their samples.")
@option(
    "--attack",
    "attacks",
    multiple=True,
    help=f"Attack to choose from: {', '.join(ENTRIES[ATTACK])}, or module:Name; can be repeated [those of an audit].",
)
@option("--release", default="", show_default=False, help="Release, such as clean or noisy [the first one].")
@option(
    "--access",
    type=click.Choice(ACCESSES),
    default_text="as it is released",
    help="What the adversary sees of it.",
)
@option("--level", type=float, default=0.95, help="Confidence of each bound.")
@option(
    "--method",
    type=click.Choice(["one-guess", "prequential"]),
    default_text="the plan's, or one-guess",
    help="One guess per model with a fixed split, or the form that holds whenever you stop adding models.",
)
@option("--num-fitting", type=int, help="Number of models that the rule is fitted on [a third].")
@shared("trust-code", "threads", "quiet", "json")
def prove(
    folder: Path | None,
    runs_path: Path | None,
    allow_misfit: bool,
    attacks: tuple[str, ...],
    trust_code: bool,
    **chosen: Any,
) -> None:
    """Prove lower bounds on ε from the shadow models of an audit folder, or of a file.

    An adversary who sees a model names one node, or nobody. How often they are right bounds ε_R, ε_L and the ε of MP
    from below, with confidence and without assumptions about the attack.

    \b
    bmpaudit prove cora-gat
    bmpaudit prove --runs models.npz --json
    """
    settings, runtime = outside_runs.ProofSettings(attacks, **chosen), make_runtime()
    if folder is not None and runs_path is None:
        proof = outside_runs.prove_folder(folder, settings, runtime, trust_code=trust_code)
    elif runs_path is not None and folder is None:
        proof = outside_runs.prove_file(runs_path, settings, runtime, allow_misfit=allow_misfit)
    else:
        raise click.UsageError("prove takes an audit folder or --runs FILE, one of the two")
    answer(proof.to_plain(), proof)


SHOWN_BY_DEFAULT = ("uniform", "snowball")


@cli.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH")
@option(
    "--sampler",
    "names",
    metavar="NAME",
    multiple=True,
    section="Sampler",
    default_text=" ".join(SHOWN_BY_DEFAULT),
    help=f"How the training sample is drawn ({', '.join(ENTRIES[SAMPLER])}, or module:Name; can be repeated).",
)
@setting_options("sampler")
@option("--draws", type=int, default=100_000, help="Number of samples drawn where γ has no formula.")
@option("--seed", type=int, default=0, help="Random seed of the draws.")
@option("--output", metavar="FILE.csv", help="CSV file for γ and η of every node.")
@shared("threads", "quiet", "json")
def priors(graph: str, names: tuple[str, ...], draws: int, seed: int, output: Path | None, **settings: Any) -> None:
    """Show what the sampler alone gives away: prior probabilities γ and the floor they set (Proposition 1).

    GRAPH is the name of a data set, an .npz archive, a folder with nodes and edges tables, or module:function.

    \b
    bmpaudit priors cora --sampler snowball --train-fraction 0.5
    """
    loaded, runtime = datasets.load(graph), make_runtime()
    rows = []
    for name, chosen in settings_by_sampler(names or SHOWN_BY_DEFAULT, settings).items():
        sampler = registry.build(SAMPLER, {"name": name, **chosen})
        with runtime.progress(f"{name} samples", draws) as progress:
            drawn = samplers.prior_probabilities(
                loaded, sampler, num_draws=draws, seed=seed, progress=progress, num_threads=runtime.num_threads
            )
        rows.append((name, drawn))
    if output is not None:
        nodes = loaded.node_names or range(loaded.num_nodes)
        columns = ("sampler", "node", "prior_prob", "standard_error", "prior_odds")
        values = [(name, nodes, each.prob, each.standard_error, each.odds) for name, each in rows]
        tables = [pd.DataFrame(dict(zip(columns, row, strict=True))) for row in values]
        with files.atomic_write(output) as temporary:
            pd.concat(tables).to_csv(temporary, index=False)
    summaries, cells = [], list[list[str]]()
    for name, each in rows:
        gamma = {"min": each.prob.min(), "mean": each.prob.mean(), "max": each.prob.max()}
        gamma["max_standard_error"] = each.standard_error.max()
        counts = {"num_draws": each.num_draws, "prior_prob": gamma, "num_never_drawn": (each.prob == 0).sum()}
        of_sampler = {"sampler": name, "settings": registry.settings_of(each.sampler)}
        summaries.append({**of_sampler, **counts, "floor": asdict(each.floor)})
        floor = [words.number(each.floor.left), words.number(each.floor.right)]
        origin = "formula" if each.is_exact else f"{each.num_draws:,}"
        cells.append([name, *(f"{value:.4f}" for value in gamma.values()), *floor, origin])
    if asked("json"):
        print_json(summaries)
        return
    say(loaded)
    print_rows(("sampler", "γ min", "γ mean", "γ max", "±", "ε_L ≥", "ε_R ≥", "draws"), cells)
    say(
        "γ: probability that a node is in the training sample.",
        "ε_L, ε_R: the floor that the sampler alone sets, whatever is trained (Prop. 1).",
    )
    levels = {each.floor.level for _, each in rows if not each.is_exact}
    for level in sorted(level for level in levels if level is not None):
        say(f"Where γ was drawn, the floor holds with {100 * level:g} % confidence.")


# Whether a finished audit passes a gate, for people, scripts and CI servers.


def gate_options() -> Callable[[FC], FC]:
    """Adds an option for each field of a gate."""
    rows, about = [], registry.field_help(Gate)
    for name in Gate.model_fields:
        settings: dict[str, Any] = {"metavar": "FLOAT", "type": float, "help": f"{about[name]}."}
        if name in ("max_exposure", "max_exposure_non_members"):
            text = f"{about[name].partition(';')[0]}; can be repeated."
            settings = {"metavar": "N@P", "multiple": True, "help": text}
        elif name == "release":
            settings = {"metavar": "NAME", "help": "Release that is checked.", "default_text": "the plan's first"}
        elif name == "access":
            text = "What the adversary sees of it."
            settings = {"type": click.Choice(ACCESSES), "help": text, "default_text": "as it is released"}
        elif name == "max_leaking_nodes":
            settings |= {"metavar": "N", "type": int}
        rows.append(option(f"--{name.replace('_', '-')}", **settings))
    return options.all_of(rows)


class Unusable(click.ClickException):
    """A file or folder cannot be read or written."""

    exit_code = 4


@cli.command("check", cls=SectionedCommand)
@shared("folder")
@gate_options()
@shared("json")
@run_option("--markdown", is_flag=True, help="Print a few lines for a model card.")
@run_option("--junit", metavar="FILE", help="Also write JUnit XML to FILE, one test case for each threshold.")
def check_gate(folder: Path, markdown: bool, junit: Path | None, **thresholds: Any) -> None:
    """Hold a finished audit against thresholds, and exit accordingly.

    Options override the section [gate] of the audit's plan, which is used where they say nothing. Exit code 0: all
    passed; 1: a threshold is exceeded; 2: wrong use; 3: not exceeded, but these shadow models cannot decide it; 4: a
    file or folder cannot be read or written.

    \b
    bmpaudit check cora-audit --max-proven-right 3 --max-exposure 10@0.99
    """
    from bmpaudit.gate import check, to_junit, to_markdown

    if asked("json") and markdown:
        raise click.UsageError("check prints JSON or Markdown, got --json and --markdown")
    given = {name: value for name, value in thresholds.items() if value not in (None, ())}
    try:
        result = check(folder, **given)
        if junit is not None:
            files.write_text(junit, f'<?xml version="1.0" encoding="UTF-8"?>\n{to_junit(result)}\n')
        answer(result.to_plain(), to_markdown(result) if markdown else result)
    except errors.DataError as failure:
        raise Unusable(str(failure)) from failure
    except OSError as failure:
        place = "" if failure.filename is None else f"{failure.filename}: "
        raise Unusable(f"{place}{failure.strerror or failure}") from failure
    click.get_current_context().exit(result.exit_code)
