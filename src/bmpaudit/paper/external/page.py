"""The page docs/external.md, made from tables of results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import pandas as pd

from bmpaudit.paper.experiments import TITLES as DATASET_TITLES
from bmpaudit.paper.external.experiments import COMMIT, EXPERIMENTS, MODEL_TITLES, PAPER, SOURCE, TITLES, Experiment
from bmpaudit.paper.tables import markdown_grid

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
    template = (files("bmpaudit.paper.external") / "page_template.md").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"


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
