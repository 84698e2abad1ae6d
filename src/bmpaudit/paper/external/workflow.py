"""Everything that `bmpaudit reproduce --external` does: train, attack, set beside the published figures."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bmpaudit import datasets
from bmpaudit.auditing import Pipeline, Runtime, Subject, Workspace
from bmpaudit.build import build_id
from bmpaudit.errors import InputError
from bmpaudit.files import folder_lock, remove_leftovers, write_text
from bmpaudit.paper.external.attacked import attack_targets
from bmpaudit.paper.external.experiments import (
    EXPERIMENTS,
    NUM_TARGETS,
    POOL,
    QUERY,
    QUICK_POOL,
    QUICK_SHADOWS,
    QUICK_TARGETS,
    RELEASE,
    Experiment,
)
from bmpaudit.paper.external.page import make_page
from bmpaudit.paper.external.published import KEY, published_figures
from bmpaudit.paper.results import ResultsFile
from bmpaudit.paper.tables import write_csv
from bmpaudit.plain import plain

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
        figures = judge(_figures(out, sizes))
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


def _figures(out: Path, sizes: tuple[int, int]) -> pd.DataFrame:
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
