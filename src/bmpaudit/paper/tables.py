"""Tables II to V with ours and the published value in each cell: Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from bmpaudit.files import atomic_write
from bmpaudit.paper.experiments import DECISIONS, EDGES, MEASURES, MODELS, OUTPUTS, SAMPLINGS
from bmpaudit.paper.published import TABLES, is_exchanged

_TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
_HEADS = [(model, edges, measure) for model in MODELS for edges in EDGES for measure in MEASURES]
_ROWS = [(sampling, decision, output) for sampling in SAMPLINGS for decision in DECISIONS for output in OUTPUTS]


def table_title(dataset: str, fraction: float) -> str:
    """`Table II: Cora, 25 % of the nodes sampled`."""
    return f"Table {TABLES[dataset, fraction]}: {_TITLES[dataset]}, {fraction:.0%} of the nodes sampled"


def markdown_table(verdicts: pd.DataFrame, dataset: str, fraction: float) -> str:
    """A cell: ours, p5/p50/p95, medians over seeds, with the span of the seeds' p50; below it the published, ✓ or ✗.

    After ✗ stands by how much the published p50 misses the widened span; + where ours is higher.
    """

    def show(row: dict[str, Any]) -> str:
        verdict = "✓" if row["agrees"] else f"✗ {row['miss']:+.1f}"
        return f"{_ours(row)}<br>[{short(row['lowest'])}, {short(row['highest'])}]<br>*{_published(row)}* {verdict}"

    heads = [f"{model.upper()} {edges} {measure.upper()}" for model, edges, measure in _HEADS]
    lines = [
        "| sampling | decision | output | " + " | ".join(heads) + " |",
        "|" + " --- |" * (3 + len(heads)),
    ]
    found = _by_place(verdicts, dataset, fraction)
    lines += [f"| {' | '.join(place)} | " + " | ".join(_filled(found, place, show)) + " |" for place in _ROWS]
    return "\n".join(lines)


def latex_table(verdicts: pd.DataFrame, dataset: str, fraction: float) -> str:
    """The same for a paper: ours above, the published value below in italics, disagreement in bold."""

    def show(row: dict[str, Any]) -> str:
        ours = _ours(row) if row["agrees"] else rf"\textbf{{{_ours(row)}}}"
        return rf"\shortstack{{{ours}\\\textit{{{_published(row)}}}}}"

    found = _by_place(verdicts, dataset, fraction)
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
        "Sampling & Decision & Output & " + " & ".join(["BMP-R", "MP"] * 4) + r" \\",
        r"\hline",
    ]
    for place in _ROWS:
        lines.append(" & ".join([*place, *_filled(found, place, show)]) + r" \\")
        if place[1:] == ("strong", "noisy"):
            lines.append(r"\hline")
    return "\n".join([*lines, r"\end{tabular}", r"\end{table*}"])


def write_tables(verdicts: pd.DataFrame, folder: Path) -> None:
    """Writes `table-II.md`, `.tex` and `.csv`, and so on, of the tables that have any cell."""
    for dataset, fraction in TABLES:
        part = verdicts[(verdicts["dataset"] == dataset) & (verdicts["train_fraction"] == fraction)]
        if not len(part):
            continue
        name = f"table-{TABLES[dataset, fraction]}"
        note = "\n\nGAT random: published columns exchanged back.\n" if is_exchanged(part).any() else "\n"
        write_text(folder / f"{name}.md", markdown_table(part, dataset, fraction) + note)
        write_text(folder / f"{name}.tex", latex_table(part, dataset, fraction) + "\n")
        write_csv(folder / f"{name}.csv", part)


def write_text(path: Path, text: str) -> None:
    """Whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Four significant digits after the point at most: results, not noise."""
    write_text(path, table.to_csv(index=False, float_format=_plain))


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


def _by_place(verdicts: pd.DataFrame, dataset: str, fraction: float) -> dict[tuple[str, ...], dict[str, Any]]:
    part = verdicts[(verdicts["dataset"] == dataset) & (verdicts["train_fraction"] == fraction)]
    names = ("sampling", "decision", "output", "model", "edges", "measure")
    return {tuple(str(row[name]) for name in names): row for row in part.to_dict("records")}  # type: ignore[misc]


def _filled(
    found: dict[tuple[str, ...], dict[str, Any]], place: tuple[str, ...], show: Callable[[dict[str, Any]], str]
) -> list[str]:
    return [show(found[*place, *head]) if (*place, *head) in found else "-" for head in _HEADS]
