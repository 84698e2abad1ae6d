"""What `bmpaudit reproduce` writes: small tables, from which figures and page can be made again anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bmpaudit.files import write_text
from bmpaudit.paper import records
from bmpaudit.paper.against_proofs import against_proofs, directions
from bmpaudit.paper.disagreement import explain
from bmpaudit.paper.experiments import BEYOND, CELLS, CONFIGURATIONS
from bmpaudit.paper.figures import write_figures
from bmpaudit.paper.finding import Finding
from bmpaudit.paper.findings import all_findings
from bmpaudit.paper.growth import growth_records, growth_run
from bmpaudit.paper.page import make_page
from bmpaudit.paper.proof_records import exposure_records, proof_records
from bmpaudit.paper.published import published_table
from bmpaudit.paper.run import Run
from bmpaudit.paper.study import study_records, study_runs
from bmpaudit.paper.table_findings import table_findings
from bmpaudit.paper.tables import write_csv, write_tables
from bmpaudit.paper.verdict import judge_cells

FOLDER = "reproduction"
TABLES = (
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
        for name in TABLES
        if (folder / f"{name}.csv").exists()
    }


def num_seeds_there(out: Path) -> int:
    """One more than the highest seed in the folder."""
    seeds = [int(path.name.rpartition("seed")[2]) for path in (out / "runs").glob("*-seed*") if path.is_dir()]
    return max(seeds, default=-1) + 1


def _answer(finding: Finding) -> str:
    return "yes" if finding.holds else "no"
