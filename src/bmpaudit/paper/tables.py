"""Tables II to V with ours and the published value in each cell: Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from bmpaudit.files import write_text
from bmpaudit.paper.experiments import DEFINITIONS, MODELS, QUERIES, RELEASES, RULES, SAMPLERS, TITLES
from bmpaudit.paper.published import PAPERS_SAMPLERS, TABLES, is_swapped

_ROW_NAMES = ("sampler", "rule", "release")
_ROWS = tuple(product(SAMPLERS, RULES, RELEASES))
_HEAD_NAMES = ("model", "query", "definition")
_HEADS = tuple(product(MODELS, QUERIES, DEFINITIONS))
SWAPPED_NOTE = 'GAT, rows "random": published columns swapped back.'


def table_title(dataset: str, fraction: float) -> str:
    """`Table II: Cora, 25 % of the nodes sampled`."""
    return f"Table {TABLES[dataset, fraction]}: {TITLES[dataset]}, {fraction:.0%} of the nodes sampled"


def markdown_table(verdicts: pd.DataFrame, dataset: str, fraction: float) -> str:
    """A cell holds ours (p5/p50/p95, medians over seeds), the range of the seeds' p50, the published value, and ✓ or ✗.

    ✗ is followed by how far the published p50 lies outside the widened range; + where ours is higher.
    """

    def show(row: dict[str, Any]) -> str:
        verdict = "✓" if row["agrees"] else f"✗ {row['miss']:+.1f}"
        return f"{_ours(row)}<br>[{short(row['lowest'])}, {short(row['highest'])}]<br>*{_published(row)}* {verdict}"

    heads = [f"{model.upper()} {query} {definition.upper()}" for model, query, definition in _HEADS]
    rows = _filled(verdicts, dataset, fraction, show)
    return "\n".join(markdown_grid([*_ROW_NAMES, *heads], [[*place, *values] for place, values in rows]))


def latex_table(verdicts: pd.DataFrame, dataset: str, fraction: float) -> str:
    """The same for a paper: ours above, the published value below in italics, disagreement in bold."""

    def show(row: dict[str, Any]) -> str:
        ours = _ours(row) if row["agrees"] else rf"\textbf{{{_ours(row)}}}"
        return rf"\shortstack{{{ours}\\\textit{{{_published(row)}}}}}"

    title = table_title(dataset, fraction).partition(": ")[2].replace("%", r"\%")
    lines = [
        r"\begin{table*}[ht]",
        rf"\caption{{{title}: p5/p50/p95 of ours (medians over seeds) above the published, bold where they disagree.}}",
        r"\centering\small\setlength{\tabcolsep}{3pt}",
        r"\begin{tabular}{lll|cccc|cccc}",
        r"\hline",
        r" & & & \multicolumn{4}{c|}{GCN} & \multicolumn{4}{c}{GAT} \\",
        r" & & & \multicolumn{2}{c}{full edge} & \multicolumn{2}{c|}{no edges} & \multicolumn{2}{c}{full edge}"
        r" & \multicolumn{2}{c}{no edges} \\",
        "Sampler & Rule & Release & " + " & ".join(["BMP-R", "MP"] * 4) + r" \\",
        r"\hline",
    ]
    for place, values in _filled(verdicts, dataset, fraction, show):
        lines.append(" & ".join([*place, *values]) + r" \\")
        if place[1:] == [RULES[-1], RELEASES[-1]]:
            lines.append(r"\hline")
    return "\n".join([*lines, r"\end{tabular}", r"\end{table*}"])


def write_tables(verdicts: pd.DataFrame, folder: Path) -> None:
    """Writes `table-II.md`, `.tex` and `.csv`, and so on, for the tables that have any cell."""
    for dataset, fraction in TABLES:
        part = verdicts[(verdicts["dataset"] == dataset) & (verdicts["train_fraction"] == fraction)]
        if not len(part):
            continue
        name = f"table-{TABLES[dataset, fraction]}"
        note = f"\n\n{SWAPPED_NOTE}\n" if is_swapped(part).any() else "\n"
        write_text(folder / f"{name}.md", markdown_table(part, dataset, fraction) + note)
        write_text(folder / f"{name}.tex", latex_table(part, dataset, fraction) + "\n")
        write_csv(folder / f"{name}.csv", part)


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Numbers with at most four decimals: results, not noise; `nan` where there is none."""
    write_text(path, table.to_csv(index=False, float_format=_plain, na_rep="nan"))


def markdown_grid(heads: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return lines + ["| " + " | ".join(value.replace("|", r"\|") for value in row) + " |" for row in rows]


def short(value: float) -> str:
    """Two significant digits, as the paper prints them.

    >>> short(7.25), short(10.4), short(0.456)
    ('7.2', '10', '0.46')
    """
    return f"{value:.2g}" if abs(value) < 10 else f"{value:.0f}"


def _plain(value: object) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _ours(row: dict[str, Any]) -> str:
    return f"{short(row['p5'])}/{short(row['median'])}/{short(row['p95'])}"


def _published(row: dict[str, Any]) -> str:
    return "/".join(short(row[f"published_{name}"]) for name in ("p5", "p50", "p95"))


def _filled(
    verdicts: pd.DataFrame, dataset: str, fraction: float, show: Callable[[dict[str, Any]], str]
) -> list[tuple[list[str], list[str]]]:
    """For each row of a table its heading in the paper's words, and its cells; a dash where a cell was not run."""
    part = verdicts[(verdicts["dataset"] == dataset) & (verdicts["train_fraction"] == fraction)]
    names = (*_ROW_NAMES, *_HEAD_NAMES)
    cells = {tuple(row[name] for name in names): show(row) for row in part.to_dict("records")}  # type: ignore[arg-type]
    return [
        ([PAPERS_SAMPLERS[place[0]], *place[1:]], [cells.get((*place, *head), "-") for head in _HEADS])
        for place in _ROWS
    ]
