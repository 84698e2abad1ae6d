"""Options that several commands share, and what is made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bmpaudit import datasets
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.plan import AuditPlan, Runtime, read_plan
from bmpaudit.plan.plan_file import MODELS, SAMPLERS, parse_plan, read_table
from bmpaudit.progress import progress_bar

Command = Callable[..., Any]

OWN_GRAPH = "graph.npz"  # in a folder whose graph was given as an object

# Where in a plan file the value of an option stands.
PLACES = {
    "shadows": ("shadows",),
    "seed": ("seed",),
    "engine": ("engine",),
    "sampler": ("sampler", "name"),
    **{name: ("sampler", name) for name in ("train_fraction", "fan_out", "restart", "num_roots", "walk_length")},
    "model": ("model", "name"),
    **{name: ("model", name) for name in ("hidden", "heads", "layers", "dropout")},
    **{name: ("training", name) for name in ("epochs", "learning_rate", "weight_decay")},
    "noise_std": ("queries", "noise_std"),
    "prior_source": ("attack", "prior_source"),
    "prior_draws": ("attack", "prior_draws"),
    "unfittable": ("attack", "unfittable"),
    "min_models": ("attack", "min_models"),
    "definition": ("estimation", "definitions"),
    "prior_variance": ("estimation", "prior_variance"),
}

_PLAN_OPTIONS = (
    click.option(
        "--plan",
        "plan_path",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Settings from a file (bmpaudit plan init); options given here come first.",
    ),
    click.option("--shadows", type=int, help="Number of shadow models; may be raised later [1000]."),
    click.option("--sampler", type=click.Choice(list(SAMPLERS)), help="Who is in the training sample [uniform]."),
    click.option("--train-fraction", type=float, help="Share of the nodes that is sampled [0.25]."),
    click.option("--fan-out", type=int, help="snowball: neighbours drawn for one node [5]."),
    click.option("--restart", is_flag=True, help="snowball: go on from a new seed when the queue runs dry."),
    click.option("--num-roots", type=int, help="random-walk: number of walks [as many as fit the train fraction]."),
    click.option("--walk-length", type=int, help="random-walk: steps of a walk [2]."),
    click.option("--model", type=click.Choice(list(MODELS)), help="What is trained [gcn]."),
    click.option("--hidden", type=int, help="Hidden units, for gat of one head [16; gat 4]."),
    click.option("--heads", type=int, help="gat: heads of the hidden layers [8]."),
    click.option("--layers", type=int, help="Layers of the model [2]."),
    click.option("--dropout", type=float, help="Share dropped while training [0.5]."),
    click.option("--epochs", type=int, help="Steps of the optimiser [100]."),
    click.option("--learning-rate", type=float, help="Of the optimiser [0.01]."),
    click.option("--weight-decay", type=float, help="L2 penalty on all parameters [0.0005]."),
    click.option("--noise-std", type=float, help="Noise on the last layer, noisy views [0.25]."),
    click.option("--engine", type=click.Choice(["native", "torch"]), help="What trains the models [native]."),
    click.option("--seed", type=int, help="Of all random numbers [0]."),
)

_ANALYSIS_OPTIONS = (
    click.option(
        "--definition",
        type=click.Choice(["bmp", "bmp-r", "bmp-l", "bmp-s", "mp"]),
        multiple=True,
        help="What to estimate; may be repeated [bmp, bmp-r, bmp-l, mp].",
    ),
    click.option("--prior-variance", type=float, help="Of the normal prior of ε [10]."),
    click.option(
        "--prior-source", type=click.Choice(["exact", "shadow-frequency"]), help="Where γ comes from [exact]."
    ),
    click.option("--prior-draws", type=int, help="Samples for priors without a formula [100000]."),
    click.option(
        "--unfittable",
        type=click.Choice(["leave-out", "non-member"]),
        help="Nodes that cannot be attacked [leave-out].",
    ),
    click.option("--min-models", type=int, help="Models each hypothesis is fitted on, at least [2]."),
)

_RUN_OPTIONS = (
    click.option("--threads", type=int, help="Threads to use [all cores]."),
    click.option("--quiet", is_flag=True, help="No progress bar."),
)


def _with(options: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


plan_options = _with(_PLAN_OPTIONS)
analysis_options = _with(_ANALYSIS_OPTIONS)
run_options = _with(_RUN_OPTIONS)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
runs_option = click.option(
    "--runs",
    "runs_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Models trained elsewhere: .npz with memberships and, by view, logits or margins.",
)
folder_argument = click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
out_option = click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder of the audit."
)


def make_runtime(threads: int | None, quiet: bool) -> Runtime:
    """Progress on stderr, unless nobody wants it."""
    if threads is not None and threads < 1:
        raise click.UsageError(f"--threads must be at least 1, got {threads}")

    def progress(what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        return progress_bar(what, total, quiet=quiet)

    return Runtime(threads, progress, lambda told: click.echo(f"bmpaudit: {told}", err=True))


def make_plan(
    graph: str | None, plan_path: Path | None, settings: dict[str, Any], folder: Path | None = None
) -> tuple[Graph, str, AuditPlan]:
    """The graph, where it came from, and the plan: options on the command line first, then the file's, then defaults.

    Without GRAPH and --plan, the plan of the folder goes on.
    """
    base = plan_path
    if base is None and graph is None and folder is not None and (folder / "plan.toml").exists():
        base = folder / "plan.toml"
    table = merge_settings(graph, base, settings)
    source = str(table.get("graph") or "")
    if not source:
        raise click.UsageError("GRAPH is missing: give it, or a --plan that names one, or --out of an audit")
    if source == OWN_GRAPH and graph is None and base is not None and (base.parent / OWN_GRAPH).exists():
        loaded = datasets.load(base.parent / OWN_GRAPH)
        if folder is None or base.parent.resolve() != folder.resolve():
            source = str((base.parent / OWN_GRAPH).resolve())
    else:
        loaded = datasets.load(source)
        if source not in datasets.NAMED_DATASETS and Path(source).exists():
            source = str(Path(source).resolve())  # the folder is good from everywhere
    _fit_roots(table.get("sampler", {}), loaded)
    return loaded, source, parse_plan({**table, "graph": source}).plan


def merge_settings(graph: str | None, base: Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """The nested values of a plan: GRAPH and options on the command line first, then those of the file `base`."""
    given = _given(settings)
    table: dict[str, Any] = {}
    if base is not None:
        read_plan(base)  # what is wrong in the file is told as the file's
        table = read_table(base)
    for section, kinds, default in (("sampler", SAMPLERS, "uniform"), ("model", MODELS, "gcn")):
        there = table.get(section, {}).get("name", default)
        name = given.get(section, {}).get("name", there)
        if name != there:
            table.pop(section, None)  # settings of another kind say nothing about this one
        _refuse_misfits(section, kinds, name, given.get(section, {}))
    if "train_fraction" in given.get("sampler", {}) and "num_roots" not in given["sampler"]:
        table.get("sampler", {}).pop("num_roots", None)  # it is fitted to the share that is asked for
    for section, values in given.items():
        table[section] = {**table.get(section, {}), **values} if isinstance(values, dict) else values
    if graph is not None:
        table["graph"] = graph
    return table


def _refuse_misfits(section: str, kinds: Mapping[str, type[Any]], name: str, given: Mapping[str, Any]) -> None:
    """Options of another sampler or model than the one that is used."""
    keys = {kind: {field.name for field in dataclasses.fields(kinds[kind])} for kind in kinds}
    if section == "sampler":
        keys["random-walk"].add("train_fraction")
    for key in given:
        if key != "name" and key not in keys[name]:
            fitting = " or ".join(kind for kind in kinds if key in keys[kind])
            raise click.UsageError(f"--{key.replace('_', '-')} is for --{section} {fitting}, got --{section} {name}")


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """The options that stand on the command line, as sections of a plan."""
    context = click.get_current_context()
    sections: dict[str, Any] = {}
    for name, place in PLACES.items():
        if name not in settings or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = list(settings[name]) if isinstance(settings[name], tuple) else settings[name]
        if len(place) == 1:
            sections[place[0]] = value
        else:
            sections.setdefault(place[0], {})[place[1]] = value
    return sections


def _fit_roots(sampler: dict[str, Any], graph: Graph) -> None:
    """For random walks a train fraction means as many walks as would cover it if they never met."""
    if sampler.get("name") != "random-walk":
        return
    fraction = sampler.pop("train_fraction", None)
    if "num_roots" in sampler and fraction is not None:
        raise click.UsageError("--train-fraction and --num-roots both say how many nodes are sampled; give one")
    if "num_roots" not in sampler:
        fraction = 0.25 if fraction is None else fraction
        if not 0 < fraction < 1:
            raise InputError(f"train_fraction must be in (0, 1), got train_fraction={fraction}")
        length = sampler.get("walk_length", 2)
        sampler["num_roots"] = max(1, round(fraction * graph.num_nodes / (max(length, 1) + 1)))
