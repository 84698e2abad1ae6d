"""What `bmpaudit reproduce` writes: small tables, from which figures and page are made, also later and elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bmpaudit.paper import records
from bmpaudit.paper.disagreement import explain
from bmpaudit.paper.experiments import BEYOND, CELLS, CONFIGURATIONS
from bmpaudit.paper.figures import write_figures
from bmpaudit.paper.findings import Finding, all_findings, table_findings
from bmpaudit.paper.page import make_page
from bmpaudit.paper.published import published_table
from bmpaudit.paper.reproduce import Run
from bmpaudit.paper.study import study_records, study_runs
from bmpaudit.paper.tables import write_csv, write_tables, write_text
from bmpaudit.paper.verdict import judge

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
    "plain_costs",
)
"""The tables, each a file `<name>.csv`; `plain_costs` comes from benchmarks/reproduction.py."""


@dataclass(frozen=True)
class Summary:
    """What came out.

    Attributes:
        num_cells: Cells that could be compared.
        num_agreeing: Those of them that agree.
        findings: The paper's statements, with our answers.
        page: The page that tells it all.
    """

    num_cells: int
    num_agreeing: int
    findings: tuple[Finding, ...]
    page: Path

    def __str__(self) -> str:
        share = f" ({self.num_agreeing / self.num_cells:.1%})" if self.num_cells else ""
        lines = [f"{self.num_agreeing} of {self.num_cells} cells agree with the published tables{share}"]
        if self.num_cells < len(CELLS):
            lines[0] += f"; {len(CELLS) - self.num_cells} of {len(CELLS)} were not run"
        lines += [f"  {'yes' if finding.holds else 'no ':<3}  {finding.statement}" for finding in self.findings]
        return "\n".join([*lines, f"page: {self.page}"])


def all_runs(out: Path, num_models: int, num_seeds: int, study_models: int) -> dict[str, list[Run]]:
    """Every run that the folder can hold: of the paper's experiments, of those beyond, and of the study."""
    seeds = range(num_seeds)
    return {
        "paper": [Run(of, seed, num_models, out) for seed in seeds for of in CONFIGURATIONS],
        "beyond": [Run(of, seed, num_models, out) for seed in seeds for of in BEYOND],
        "study": study_runs(out, list(seeds), study_models),
    }


def verdicts_of(runs: Sequence[Run]) -> pd.DataFrame:
    """The verdict on every published cell that there is."""
    cells = records.cell_records(runs)
    return judge(published_table(), cells[cells["counting"] == "paper"])


def collect(runs: dict[str, list[Run]]) -> dict[str, pd.DataFrame]:
    """All tables but `plain_costs`, as far as there are results."""
    paper = runs["paper"]
    cells = records.cell_records(paper)
    verdicts = judge(published_table(), cells[cells["counting"] == "paper"])
    nodes, joint, mhaar = records.node_records(paper), records.joint_records(paper), records.mhaar_records(paper)
    unflagged = records.unflagged_records(paper)
    findings = all_findings(cells, nodes, joint, unflagged)
    return {
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
    }


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Findings with the answers of our results, and of the published tables where these can answer."""
    columns = ["statement", "ours", "published", "evidence", "published_evidence"]
    published = {found.statement: found for found in table_findings(published_table())}
    rows = []
    for found in findings:
        theirs = published.get(found.statement)
        rows.append(
            {
                "statement": found.statement,
                "ours": _answer(found.holds),
                "published": "" if theirs is None else _answer(theirs.holds),
                "evidence": found.evidence,
                "published_evidence": "" if theirs is None else theirs.evidence,
            }
        )
    return pd.DataFrame(rows, columns=columns)


def write_outputs(out: Path, runs: dict[str, list[Run]], *, with_figures: bool = True) -> Summary:
    """Writes tables, figures and page from all results in the folder."""
    tables = collect(runs)
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        if len(table):
            write_csv(folder / f"{name}.csv", table)
        else:
            (folder / f"{name}.csv").unlink(missing_ok=True)
    if len(tables["verdicts"]):
        write_tables(tables["verdicts"], folder)
    if with_figures:
        write_figures(folder, tables)
    page = write_page(out)
    found = [
        Finding(row["statement"], row["ours"] == "yes", row["evidence"])
        for row in tables["findings"].to_dict("records")
    ]
    verdicts = tables["verdicts"]
    return Summary(len(verdicts), int(verdicts["agrees"].sum()) if len(verdicts) else 0, tuple(found), page)


def write_page(out: Path) -> Path:
    """Makes `reproduction.md` again from the tables and figures in `reproduction/`, and returns its path."""
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


def _answer(holds: bool) -> str:
    return "yes" if holds else "no"
