"""What `python -m reproduction` writes: small tables, from which figures and page can be made again anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bmpaudit.auditing import Runtime
from bmpaudit.util.files import folder_lock, remove_leftovers, write_text
from reproduction import records
from reproduction.beyond import (
    GROWTH_MODELS,
    STUDY_MODELS,
    against_proofs,
    directions,
    growth_records,
    growth_run,
    study_growth,
    study_records,
    study_runs,
    study_tasks,
)
from reproduction.experiments import (
    BEYOND,
    CELLS,
    CONFIGURATIONS,
    COUNTINGS,
    NUM_MODELS,
    QUICK_SHARE,
    Configuration,
    published_table,
)
from reproduction.figures import write_figures
from reproduction.findings import Finding, all_findings, table_findings
from reproduction.page import make_page
from reproduction.proof_pages import write_csv, write_tables
from reproduction.records import cell_records, disagreement_tasks, explain, exposure_records, judge_cells, proof_records
from reproduction.run import Run, cell_tasks, compute_all, figure_tasks, mhaar_tasks, train_and_attack, unflagged_tasks

FOLDER = "reproduction"
OUTPUT_TABLES = (
    "cells",
    "verdicts",
    "findings",
    "disagreements",
    "nodes",
    "nodes_shown",
    "joint",
    "joint_draws",
    "mhaar",
    "unflagged",
    "runs",
    "beyond",
    "study",
    "proofs",
    "exposures",
    "growth_proofs",
    "growth_exposures",
    "growth_cells",
    "against_proofs",
    "directions",
    "plain_costs",
    "variants",
)
"""The tables, each in a file `<name>.csv`; the last two come from benchmarks/."""


@dataclass(frozen=True)
class Summary:
    """The outcome of a reproduction.

    Attributes:
        num_cells: Number of cells that could be compared.
        num_agreeing: Number of them that agree, with the swapped GAT columns of Table II swapped back.
        num_agreeing_as_printed: Number of them that agree with the tables as printed.
        findings: The paper's statements, with our answers.
        page: Path of the page.
    """

    num_cells: int
    num_agreeing: int
    num_agreeing_as_printed: int
    findings: tuple[Finding, ...]
    page: Path

    def __str__(self) -> str:
        agreement = "no cell could be compared with the published tables"
        if self.num_cells:
            agreement = (
                f"{self.num_agreeing} of {self.num_cells} cells agree with the published tables "
                f"({self.num_agreeing / self.num_cells:.1%}) once two swapped columns of Table II are swapped back; "
                f"as printed, {self.num_agreeing_as_printed} ({self.num_agreeing_as_printed / self.num_cells:.1%})"
            )
        if self.num_cells < len(CELLS):
            agreement += f"; {len(CELLS) - self.num_cells} of {len(CELLS)} were not run"
        answers = [f"  {'yes' if finding.holds else 'no ':<3}  {finding.statement}" for finding in self.findings]
        return "\n".join([agreement, *answers, f"page: {self.page}"])


class RunSizes(NamedTuple):
    """Numbers of models: of a run of the paper, of one of the study of fractions, and of the study of that number."""

    paper: int
    study: int
    growth: int


def all_runs(out: Path, num_seeds: int, sizes: RunSizes) -> dict[str, list[Run]]:
    """Every run that the folder can hold: the paper's experiments, those beyond it, and two studies."""
    seeds = range(num_seeds)
    return {
        "paper": [Run(configuration, seed, sizes.paper, out) for seed in seeds for configuration in CONFIGURATIONS],
        "beyond": [Run(configuration, seed, sizes.paper, out) for seed in seeds for configuration in BEYOND],
        "study": study_runs(out, list(seeds), sizes.study),
        "growth": [growth_run(out, sizes.growth)],
    }


def collect(runs: dict[str, list[Run]]) -> tuple[dict[str, pd.DataFrame], list[Finding]]:
    """All tables except `plain_costs`, as far as there are results, and the findings."""
    paper = runs["paper"]
    cells = records.cell_records(paper)
    verdicts = judge_cells(cells)
    nodes, joint, mhaar = records.node_records(paper), records.joint_records(paper), records.mhaar_records(paper)
    unflagged = records.unflagged_records(paper)
    findings = all_findings(cells, nodes, joint, unflagged)
    tables = {
        "cells": cells,
        "verdicts": verdicts,
        "findings": findings_table(findings),
        "disagreements": explain(verdicts, records.deciding_records(paper), mhaar),
        "nodes": nodes,
        "nodes_shown": records.nodes_shown(paper),
        "joint": joint,
        "joint_draws": records.joint_draws(paper),
        "mhaar": mhaar,
        "unflagged": unflagged,
        "runs": records.run_records([*paper, *runs["beyond"]]),
        "beyond": records.cell_records(runs["beyond"]),
        "study": study_records(runs["study"]),
        "proofs": proof_records(paper),
        "exposures": exposure_records(paper),
        **growth_records(runs["growth"][0]),
    }
    if len(tables["proofs"]) and len(cells):
        tables["against_proofs"] = against_proofs(cells, unflagged, tables["proofs"])
        tables["directions"] = directions(cells, tables["exposures"])
    return tables, findings


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Findings with the answers of our results, and of the published tables where these can answer."""
    columns = ["statement", "ours", "published", "evidence", "published_evidence"]
    published = {finding.statement: finding for finding in table_findings(published_table())}
    rows = []
    for finding in findings:
        theirs = published.get(finding.statement)
        rows.append(
            {
                "statement": finding.statement,
                "ours": _answer(finding),
                "published": "" if theirs is None else _answer(theirs),
                "evidence": finding.evidence,
                "published_evidence": "" if theirs is None else theirs.evidence,
            }
        )
    return pd.DataFrame(rows, columns=columns)


def write_outputs(out: Path, runs: dict[str, list[Run]]) -> Summary:
    """Writes tables, figures and page from all results in the folder."""
    tables, findings = collect(runs)
    folder, verdicts = out / FOLDER, tables["verdicts"]
    for name, table in tables.items():
        if len(table):
            write_csv(folder / f"{name}.csv", table)
        else:
            (folder / f"{name}.csv").unlink(missing_ok=True)
    if len(verdicts):
        write_tables(verdicts, folder)
    write_figures(folder, tables)
    return Summary(
        len(verdicts),
        int(verdicts["agrees"].sum()),
        int(verdicts["agrees_as_printed"].sum()),
        tuple(findings),
        write_page(out),
    )


def write_page(out: Path) -> Path:
    """Makes `reproduction.md` from the tables and figures in `reproduction/`, and returns its path."""
    page = out / "reproduction.md"
    write_text(page, make_page(read_tables(out / FOLDER), [path.stem for path in (out / FOLDER).glob("*.png")]))
    return page


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables that are there, as `write_outputs` left them."""
    return {
        name: pd.read_csv(folder / f"{name}.csv", keep_default_na=False, na_values=["nan"])
        for name in OUTPUT_TABLES
        if (folder / f"{name}.csv").exists()
    }


def num_seeds_there(out: Path) -> int:
    """One more than the highest seed in the folder."""
    seeds = [int(path.name.rpartition("seed")[2]) for path in (out / "runs").glob("*-seed*") if path.is_dir()]
    return max(seeds, default=-1) + 1


def _answer(finding: Finding) -> str:
    return "yes" if finding.holds else "no"


# Everything that `python -m reproduction` does, in its order.


def run_everything(
    out: Path,
    configurations: Sequence[Configuration],
    *,
    num_seeds: int,
    runtime: Runtime | None = None,
    quick: bool = False,
    beyond: bool = False,
    study: bool = False,
    growth: bool = False,
    page_only: bool = False,
    keep_shadows: bool = False,
) -> Summary:
    """Runs what is missing, then writes tables, figures and page from all results in the folder.

    The order: shadow models, attacks and proofs of all runs; posteriors counted the paper's way, then ours; figures;
    what the disagreeing cells depend on; Algorithm 3 on the chosen subset; then, if asked for, what goes beyond the
    paper.

    Args:
        out: Folder for all results; may hold some of them already.
        configurations: Configurations of the paper to run.
        num_seeds: Number of seeds to run: 0, 1, …
        runtime: Threads and progress.
        quick: Whether to train a tenth of the models.
        beyond: Whether to run PubMed and MLP too.
        study: Whether to run the study of training fractions too.
        growth: Whether to run the study of the number of models too.
        page_only: Whether to run nothing.
        keep_shadows: Whether to keep the shadow models once they have been attacked.

    Raises:
        InputError: if the folder is in use, or holds results of another plan or another version of bmpaudit.
    """
    runtime = runtime or Runtime()
    share = QUICK_SHARE if quick else 1
    sizes = RunSizes(NUM_MODELS // share, STUDY_MODELS // share, GROWTH_MODELS // share)
    with folder_lock(out):
        for folder in ("runs", FOLDER):
            remove_leftovers(out / folder)
        if not page_only:
            runs = all_runs(out, num_seeds, sizes)
            paper = [run for run in runs["paper"] if run.configuration in configurations]
            extra = runs["beyond"] if beyond else []
            fractions = runs["study"] if study else []
            train_and_attack([*paper, *extra, *fractions], runtime, proven=paper, keep_shadows=keep_shadows)
            for counting in COUNTINGS:
                compute_all(cell_tasks(paper, counting), runtime)
            compute_all(figure_tasks(paper), runtime, "joint posteriors and summaries of nodes")
            compute_all(unflagged_tasks(paper), runtime)
            compute_all(disagreement_tasks(judge_cells(cell_records(paper)), paper), runtime, "checks of disagreements")
            compute_all(mhaar_tasks(paper), runtime, "chains")
            compute_all(study_tasks(fractions), runtime)
            for counting in COUNTINGS:
                compute_all(cell_tasks(extra, counting), runtime)
            if growth:
                study_growth(runs["growth"][0], runtime, keep_shadows=keep_shadows)
        return write_outputs(out, all_runs(out, max(num_seeds, num_seeds_there(out)), sizes))
