"""The published figures, with their spread over target models and the file they come from."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bmpaudit import datasets, registry
from bmpaudit.attack import Evidence
from bmpaudit.attack.performance import roc_within_models
from bmpaudit.auditing import Runtime, Subject, Workspace
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan
from bmpaudit.registry import ATTACK
from bmpaudit.shadow import ShadowRuns
from bmpaudit.util.build import build_id
from bmpaudit.util.errors import InputError
from bmpaudit.util.files import folder_lock, remove_leftovers, write_text
from bmpaudit.util.values import Flags, Floats32, Ints, plain
from reproduction.experiments import TITLES as DATASET_TITLES
from reproduction.experiments import render_page
from reproduction.proof_pages import markdown_grid, write_csv
from reproduction.run import ResultsFile

KEY = ("dataset", "model", "num_shadows", "attack", "measure")
"""The columns that name a figure."""


def published_figures() -> pd.DataFrame:
    """A row per figure: the columns of `KEY`, `published`, `spread` (a standard deviation) and `file`.

    >>> sorted(set(published_figures()["num_shadows"]))
    [8, 128]
    """
    import pandas as pd

    with (files("reproduction") / "external_published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False)


# The experiments of others as audit plans.


POOL, NUM_TARGETS = 192, 20
"""Shadow models to choose from, enough that every node is in 64 of them and not in 64 others; models to attack."""
QUICK_POOL, QUICK_TARGETS, QUICK_SHADOWS = 40, 4, 8
"""For a first look, which leaves out what needs more shadow models."""
QUERY, RELEASE = "none", "clean"
SOURCE = "https://github.com/MarcusLassila/MIA-audit-GNN"
COMMIT = "b3e0c95fcecb6e508c211a46292d7d17ed405206"
PAPER = "https://arxiv.org/abs/2505.24089"


@dataclass(frozen=True)
class Experiment:
    """A data set and a model with the settings of Lassila et al. (2025): half of the nodes, uniformly drawn.

    Attributes:
        dataset: Name of the data set.
        model: Name of the model.
        epochs: Number of epochs.
        weight_decay: L2 penalty.
        options: Settings of the model beyond 64 hidden units, dropout 0.5 on the hidden layer and ReLU.
    """

    dataset: str
    model: str
    epochs: int
    weight_decay: float
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """`cora-gcn`, and so on."""
        return f"{self.dataset}-{self.model}"

    def plan(self, num_models: int) -> AuditPlan:
        """The plan of all models: first those that attacks are fitted on, then those that are attacked."""
        return AuditPlan(
            shadows=num_models,
            sampler={"name": "uniform", "train_fraction": 0.5},
            model={
                "name": self.model,
                "hidden": 64,
                "dropout": 0.5,
                "dropout_on": ["hidden"],
                "activation": "relu",
                **dict(self.options),
            },
            training={"epochs": self.epochs, "learning_rate": 0.001, "weight_decay": self.weight_decay},
            releases=RELEASE,
            queries=QUERY,
        )


_FOUR_HEADS = (("heads", 4),)
_LARGEST = (("aggregation", "max"),)

EXPERIMENTS = (
    Experiment("cora", "gcn", 200, 1e-5),
    Experiment("cora", "gat", 100, 1e-4, _FOUR_HEADS),
    Experiment("cora", "sage", 200, 1e-4, _LARGEST),
    Experiment("citeseer", "gcn", 100, 1e-4),
    Experiment("citeseer", "gat", 50, 1e-4, _FOUR_HEADS),
    Experiment("citeseer", "sage", 100, 1e-4, _LARGEST),
)

ATTACKS: Mapping[str, Any] = {
    "gaussian": "gaussian",
    "rmia": {"name": "rmia", "gamma": 1.0},
    "base": "base",
}
"""By the name in the table of published figures; LiRA is called gaussian here."""

TITLES = {"gaussian": "LiRA", "rmia": "RMIA", "base": "BASE", "confidence": "confidence"}
MODEL_TITLES = {"gcn": "GCN", "gat": "GAT", "sage": "GraphSAGE"}


# Attacks on target models by the published protocol: each node is in half of the shadow models, exactly.


FALSE_POSITIVE_RATES = {"tpr_at_1e-2": 0.01, "tpr_at_1e-3": 0.001}
TARGET_SHARE = 0.5


def attack_targets(
    memberships: Flags, margins: Floats32, labels: Ints, num_shadows: int, num_pool: int, num_threads: int | None = None
) -> dict[str, dict[str, list[float]]]:
    """Attacks each target model with shadow models of its own choice.

    For each target model and node, half of the shadow models are the first with the node, and half the first without
    it, of the pool in an order drawn for the target. Figures are over a quarter of the nodes from each side.

    Args:
        memberships: Of the pool and then the target models, shape (J, N).
        margins: Label margins of the same, shape (J, N).
        labels: Class of each node, shape (N,).
        num_shadows: Number of shadow models, even.
        num_pool: Number of models in the pool.
        num_threads: Number of threads.

    Returns:
        By attack and measure, a value for each target model.
    """
    figures: dict[str, dict[str, list[float]]] = {}
    for target in range(num_pool, len(memberships)):
        stream = np.random.default_rng([target, num_shadows])
        order = stream.permutation(num_pool)
        chosen, is_in = halves(memberships[:num_pool][order], num_shadows)
        shadows = _evidence(is_in, np.take_along_axis(margins[:num_pool][order], chosen, axis=0), labels)
        challenged = _evidence(memberships[target : target + 1], margins[target : target + 1], labels)
        nodes = balanced_nodes(memberships[target], stream)
        members = memberships[target : target + 1, nodes]
        scores = {"confidence": challenged.only_statistic[:, nodes].astype(np.float64)}
        for name, attack in ATTACKS.items():
            made = registry.build(ATTACK, attack).score(shadows, challenged, num_threads=num_threads or 1)
            scores[name] = made.log_likelihood_ratio[:, nodes]
        for name, values in scores.items():
            of_attack = figures.setdefault(name, {"auc": [], **{measure: [] for measure in FALSE_POSITIVE_RATES}})
            for measure, rate in FALSE_POSITIVE_RATES.items():
                roc = roc_within_models(values, members, rate, num_threads=num_threads)
                of_attack[measure].append(float(roc.true_positive_rate[0]))
            of_attack["auc"].append(float(roc.auc[0]))
    return figures


def halves(memberships: Flags, num_shadows: int) -> tuple[Ints, Flags]:
    """For each node the first K/2 models with it, then the first K/2 without it, and which they are, shape (K, N).

    Raises:
        InputError: if a node has fewer.
    """
    half, num_in = num_shadows // 2, memberships.sum(axis=0)
    fewest = int(np.minimum(num_in, len(memberships) - num_in).min())
    if fewest < half:
        raise InputError(f"each node must be in {half} models and not in {half} others, got {fewest} for one")
    with_node, without = (np.argsort(~flags, axis=0, kind="stable")[:half] for flags in (memberships, ~memberships))
    is_in = np.zeros((num_shadows, memberships.shape[1]), dtype=np.bool_)
    is_in[:half] = True
    return np.concatenate([with_node, without]), is_in


def balanced_nodes(is_member: Flags, stream: np.random.Generator) -> Ints:
    """As many members as non-members, together half of the nodes, drawn at random."""
    half = int(TARGET_SHARE * len(is_member)) // 2
    sides = (np.flatnonzero(is_member), np.flatnonzero(~is_member))
    return np.concatenate([stream.permutation(side)[:half] for side in sides])


def _evidence(memberships: Flags, margins: Floats32, labels: Ints) -> Evidence:
    runs = ShadowRuns.from_arrays(memberships, {f"{QUERY}_{RELEASE}": margins}, labels)
    return Evidence.of_runs(runs, RELEASE, (QUERY,))


# The page docs/external.md, made from tables of results.


MEASURES = {"auc": "AUC", "tpr_at_1e-2": "TPR at 1 % FPR", "tpr_at_1e-3": "TPR at 0.1 % FPR"}


def make_page(figures: pd.DataFrame) -> str:
    """The text of the page, from the table that `judge` returns."""
    parts = {
        "source": f"[its repository]({SOURCE}/tree/{COMMIT}), commit `{COMMIT[:7]}`",
        "paper": PAPER,
        "brief": _brief(figures),
        "settings": _settings(figures),
        "missing": _missing(figures),
        "figures": _figures(figures),
        "disagreements": _disagreements(figures),
    }
    return render_page("external.md", parts)


def _brief(figures: pd.DataFrame) -> str:
    if not len(figures):
        return "Nothing was run."
    rows = []
    for measure, title in MEASURES.items():
        part = figures[figures["measure"] == measure]
        off = part["difference"].abs()
        agreeing = f"{part['agrees'].sum()} of {len(part)}"
        rows.append([title, agreeing, f"{off.median():.4f}", f"{off.max():.4f}", f"{part['spread'].median():.4f}"])
    return "\n".join(
        [
            f"**{figures['agrees'].sum()} of {len(figures)} published figures agree "
            f"({figures['agrees'].mean():.1%})**: ours differ by at most two published standard deviations over target "
            "models.",
            "",
            *markdown_grid(
                ["figure", "agree", "median difference", "largest", "median published standard deviation"], rows
            ),
        ]
    )


def _run_experiments(figures: pd.DataFrame) -> list[Experiment]:
    run = set(zip(figures["dataset"], figures["model"], strict=True))
    return [experiment for experiment in EXPERIMENTS if (experiment.dataset, experiment.model) in run]


def _missing(figures: pd.DataFrame) -> str:
    run = _run_experiments(figures)
    names = [f"{DATASET_TITLES[e.dataset]} with {MODEL_TITLES[e.model]}" for e in EXPERIMENTS if e not in run]
    return f"Planned but not run here: {', '.join(names)}." if names else ""


def _settings(figures: pd.DataFrame) -> str:
    rows = [
        [
            DATASET_TITLES[experiment.dataset],
            MODEL_TITLES[experiment.model],
            f"{experiment.epochs}",
            f"{experiment.weight_decay:g}",
            ", ".join(f"{name} {value}" for name, value in experiment.options) or "-",
        ]
        for experiment in _run_experiments(figures)
    ]
    return "\n".join(markdown_grid(["data set", "model", "epochs", "weight decay", "also"], rows))


def _figures(figures: pd.DataFrame) -> str:
    heads = ["data set", "model", "shadow models", "attack", *MEASURES.values()]
    rows = []
    for key, part in figures.groupby(["dataset", "model", "num_shadows", "attack"], sort=False):
        dataset, model, number, attack = key
        cells = {row["measure"]: _cell(row) for row in part.to_dict("records")}
        shown = [cells.get(measure, "-") for measure in MEASURES]
        rows.append([DATASET_TITLES[str(dataset)], MODEL_TITLES[str(model)], f"{number}", TITLES[str(attack)], *shown])
    return "\n".join(markdown_grid(heads, rows))


def _cell(row: Mapping[Any, Any]) -> str:
    verdict = "✓" if row["agrees"] else f"✗ {row['difference']:+.3f}"
    return f"{_number(row['ours'], row['ours_spread'])}<br>*{_number(row['published'], row['spread'])}* {verdict}"


def _number(value: float, spread: float) -> str:
    return f"{value:.3f} ({spread:.3f})"


def _disagreements(figures: pd.DataFrame) -> str:
    wrong = figures[~figures["agrees"]]
    if not len(wrong):
        return "No figure disagrees."
    rows = [
        [
            f"{DATASET_TITLES[row['dataset']]} {MODEL_TITLES[row['model']]}",
            f"{row['num_shadows']}",
            f"{TITLES[row['attack']]}, {MEASURES[row['measure']]}",
            _number(row["published"], row["spread"]),
            _number(row["ours"], row["ours_spread"]),
            f"{row['difference'] / row['spread']:+.1f}",
        ]
        for row in wrong.to_dict("records")
    ]
    heads = ["", "shadow models", "figure", "published", "ours", "difference in published standard deviations"]
    return "\n".join(markdown_grid(heads, rows))


# Everything that `python -m reproduction --external` does: train, attack, set beside the published figures.


FOLDER = "external"
WIDTH = 2.0
LEAST_DIFFERENCE = 0.015
"""What is allowed where no spread is published."""


@dataclass(frozen=True)
class ExternalSummary:
    """The outcome.

    Attributes:
        num_figures: Number of published figures that could be compared.
        num_agreeing: Number of them that agree.
        page: Path of the page.
    """

    num_figures: int
    num_agreeing: int
    page: Path

    def __str__(self) -> str:
        return f"{self.num_agreeing} of {self.num_figures} published figures agree with ours\npage: {self.page}"


def run_external(
    out: Path,
    runtime: Runtime | None = None,
    *,
    quick: bool = False,
    page_only: bool = False,
    keep_shadows: bool = False,
) -> ExternalSummary:
    """Runs what is missing, then writes tables and page.

    Args:
        out: Folder for all results; may hold some of them already.
        runtime: Threads and progress.
        quick: Whether to train few models, for figures with 8 shadow models only.
        page_only: Whether to run nothing.
        keep_shadows: Whether to keep the models once they have been attacked.

    Raises:
        InputError: if the folder is in use, or holds results of another plan or another version of bmpaudit.
    """
    runtime = runtime or Runtime()
    sizes = (QUICK_POOL, QUICK_TARGETS) if quick else (POOL, NUM_TARGETS)
    with folder_lock(out):
        remove_leftovers(out / FOLDER)
        if not page_only:
            for experiment in EXPERIMENTS:
                _run(out, experiment, sizes, runtime, keep_shadows=keep_shadows)
        figures = judge(_computed_figures(out, sizes))
        write_csv(out / FOLDER / "figures.csv", figures)
        page = write_page(out)
    return ExternalSummary(len(figures), int(figures["agrees"].sum()), page)


def write_page(out: Path) -> Path:
    """Makes `external.md` from the tables in `external/`, and returns its path."""
    page = out / "external.md"
    write_text(page, make_page(read_figures(out / FOLDER)))
    return page


def read_figures(folder: Path) -> pd.DataFrame:
    """The figures, as `run_external` left them."""
    return pd.read_csv(folder / "figures.csv")


def judge(figures: pd.DataFrame) -> pd.DataFrame:
    """Verdicts: a figure agrees if ours differs by at most two published standard deviations.

    Args:
        figures: A row per figure: the columns of `KEY`, `ours` and `ours_spread`.
    """
    table: pd.DataFrame = published_figures().merge(figures, on=list(KEY))
    difference = table["ours"] - table["published"]
    allowed = (WIDTH * table["spread"]).where(table["spread"] > 0, LEAST_DIFFERENCE)
    return table.assign(difference=difference, agrees=difference.abs() <= allowed + 1e-12)


def _run(out: Path, experiment: Experiment, sizes: tuple[int, int], runtime: Runtime, *, keep_shadows: bool) -> None:
    folder = _folder(out, experiment, sizes)
    graph, plan = datasets.load(experiment.dataset), experiment.plan(sum(sizes))
    results = ResultsFile(folder / "results.json")
    made_by = {"plan": plain(plan.shadow_plan.describe(graph)), "build": build_id()}
    if "made_by" in results and results["made_by"] != made_by:
        raise InputError(f"{results.path} holds results of another plan or version of bmpaudit: use a new folder")
    missing = [number for number in _numbers_of_shadows(experiment, sizes) if f"{number}" not in results]
    if missing:
        results.put("made_by", made_by)
        start = time.perf_counter()
        pipeline = Pipeline(Subject(graph, experiment.dataset, plan), Workspace(folder / "audit"), runtime)
        with pipeline.prepared():
            shadows = pipeline.runs
        tables = np.asarray(shadows.memberships), np.asarray(shadows.statistics[f"{QUERY}_{RELEASE}"])
        for number in missing:
            results.put(f"{number}", attack_targets(*tables, graph.labels, number, sizes[0], runtime.num_threads))
        if not runtime.quiet:
            runtime.notice(f"{experiment.name} ready after {time.perf_counter() - start:.1f} s")
    if not keep_shadows and (folder / "audit").exists():
        shutil.rmtree(folder / "audit")


def _computed_figures(out: Path, sizes: tuple[int, int]) -> pd.DataFrame:
    """A row per figure of ours: mean and standard deviation over target models."""
    rows = []
    for experiment in EXPERIMENTS:
        results = ResultsFile(_folder(out, experiment, sizes) / "results.json")
        for number in _numbers_of_shadows(experiment, sizes):
            for attack, measures in results.get(f"{number}", {}).items():
                for measure, values in measures.items():
                    key = (experiment.dataset, experiment.model, number, attack, measure)
                    rows.append([*key, np.mean(values), np.std(values), len(values)])
    return pd.DataFrame(rows, columns=[*KEY, "ours", "ours_spread", "num_targets"])


def _numbers_of_shadows(experiment: Experiment, sizes: tuple[int, int]) -> list[int]:
    figures = published_figures()
    own = figures[(figures["dataset"] == experiment.dataset) & (figures["model"] == experiment.model)]
    most = QUICK_SHADOWS if sizes[0] == QUICK_POOL else POOL
    return sorted({int(number) for number in own["num_shadows"] if number <= most})


def _folder(out: Path, experiment: Experiment, sizes: tuple[int, int]) -> Path:
    return out / FOLDER / "runs" / f"{experiment.name}-{sum(sizes)}"
