"""Tables II to V with ours and the published value in each cell: Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bmpaudit.util.files import write_text
from reproduction.beyond import CONFIGURATION, INTERVALS, PROVERS
from reproduction.experiments import (
    CONFIGURATIONS,
    DEFINITIONS,
    MODELS,
    PAPERS_SAMPLERS,
    QUERIES,
    RELEASES,
    RULES,
    SAMPLERS,
    TABLES,
    TITLES,
    cell_label,
    is_swapped,
)

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


# Parts of the page about what is proven: intervals that are refuted, proofs and exposure, and what to use.


Tables = Mapping[str, pd.DataFrame]

ADVERSARY_TITLES = {"full": "full edges, Gaussian", "none": "no edges, Gaussian", "all": "both, Student"}
PRECISIONS = (0.9, 0.99, 0.999)
SHOWN = ("published", "paper")
SAFE = 0.9
FACTOR_WORDS = {
    "train_fraction": "the training fraction",
    "release": "the release",
    "sampler": "the sampler",
    "model": "the model",
    "query": "the query",
}
PROVEN_FIGURE, EXPOSURE_FIGURE, GROWTH_FIGURE = "proven", "exposure-curves", "growth"


def proofs_part(tables: Tables, figures: Sequence[str]) -> str:
    """What is proven beside what is published and estimated, and which intervals that refutes."""
    if "against_proofs" not in tables:
        return ""
    table = tables["against_proofs"]
    seeds = tables["proofs"].groupby(CONFIGURATION)["seed"].nunique()
    number = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    num_run = len(seeds) // len(RELEASES)
    lines = [
        "## What is proven, and which intervals it refutes",
        "",
        "On the same models, lower bounds on ε_R, ε_L and ε of MP were proven by one guess per model "
        "([proof.md](proof.md)), each with 95 % confidence: 333 models to fit on, 667 to guess about, so that no bound "
        "on ε_R can exceed 5.40. Three adversaries: the paper's Gaussian attack with full edges, the same with no "
        f"edges, and a Student attack that uses both answers. Values are medians over {number} seeds, the lower one of "
        "an even number. That a median exceeds the truth has a probability of at most 5 % with one seed, and of at "
        "most 0.8 % with two or three. An interval is *refuted* if its 95 % end (p95; for published ones, the largest "
        "number that is printed so) lies below what is proven."
        + ("" if num_run == len(CONFIGURATIONS) else f" {num_run} of {len(CONFIGURATIONS)} configurations were run."),
        "",
        *_refuted_counts(table),
        "",
        "A cell's own query and attack see no more than what the estimate is made from. Both queries together "
        "say more about the release, which an ε for one query does not claim to cover; but the fused attack is not "
        "always the stronger one: with noisy outputs it can prove less than the query without edges by itself.",
        "",
    ]
    if PROVEN_FIGURE in figures:
        text = (
            "Published, exact and proven ε of all cells, by published p50 within each group. Triangles above a grey "
            "bar are intervals that are refuted by their own attack."
        )
        lines += [f"![{text}](reproduction/{PROVEN_FIGURE}.png)", "", text, ""]
    lines += [*_refuted_list(table), "", *_proven_table(tables["proofs"], table)]
    return "\n".join(lines)


def exposure_part(tables: Tables, figures: Sequence[str]) -> str:
    """How many members one released model gives away."""
    if "exposures" not in tables:
        return ""
    exposures = tables["exposures"]
    heads = ["", "members"]
    heads += [f"{ADVERSARY_TITLES[name]}: {100 * each:g} %" for name in ("full", "all") for each in PRECISIONS]
    rows = []
    for key, part in exposures.groupby(CONFIGURATION, sort=False):
        cells = []
        for adversary in ("full", "all"):
            for precision in PRECISIONS:
                of = part[(part["adversary"] == adversary) & np.isclose(part["precision"], precision)]
                cells.append(_spread(of.groupby("seed")["correct_mean"].mean(), 1) if len(of) else "-")
        rows.append([_label(key), f"{part['total'].mean():.0f}", *cells])
    lines = [
        "## What one released model gives away",
        "",
        "Members that an adversary names correctly, on average over models, if they name whom they hold to be a member "
        "with a calibrated probability of at least 90, 99 or 99.9 %. Median over seeds (the lower one of two), range "
        "in brackets; `reproduction/exposures.csv` has confidence limits, all precisions, and the query without edges.",
        "",
    ]
    if EXPOSURE_FIGURE in figures:
        text = "Share of its members that one released model gives away, against the precision, for all configurations."
        lines += [f"![{text}](reproduction/{EXPOSURE_FIGURE}.png)", "", text, ""]
    return "\n".join([*lines, *markdown_grid(heads, rows)])


def growth_part(tables: Tables, figures: Sequence[str]) -> str:
    """How results move with the number of models."""
    if "growth_proofs" not in tables:
        return ""
    proofs, exposures, cells = (tables[f"growth_{name}"] for name in ("proofs", "exposures", "cells"))
    rows = []
    for number in sorted(proofs["num_models"].unique()):
        row = [f"{number:,}"]
        for release in RELEASES:
            of, named, posteriors = (
                table[(table["num_models"] == number) & (table["release"] == release)]
                for table in (proofs, exposures, cells)
            )
            bounds = {str(each["adversary"]): each for each in of.to_dict("records")}
            row += [_bound(bounds[name]["epsilon_right_proven"]) for name in ("full", "all")]
            row.append(_bound(bounds["all"]["mp_proven"]))
            right = posteriors[(posteriors["definition"] == "bmp-r") & (posteriors["query"] == "full")]
            by_rule = {str(each["rule"]): each for each in right.to_dict("records")}
            row += ["/".join(short(by_rule[rule][name]) for name in ("p5", "p50", "p95")) for rule in RULES]
            is_sure = (named["adversary"] == "all") & np.isclose(named["precision"], 0.99)
            row.append(f"{named.loc[is_sure, 'correct_mean'].iloc[0]:.1f}")
        rows.append(row)
    columns = ["proven ε_R, full", "both", "proven MP, both", "BMP-R, full, weak", "strong", "named at 99 %, both"]
    heads = ["models"]
    for release in RELEASES:
        heads += [f"{release}: {columns[0]}", *columns[1:]]
    lines = [
        "## How results move with the number of models",
        "",
        f"Cora 25 % uniform GCN, `python -m reproduction --growth`: {proofs['num_models'].max():,} models, of which "
        "the first 100, 300, … are used. The posteriors are counted the paper's way.",
        "",
    ]
    if GROWTH_FIGURE in figures:
        text = (
            "Clean outputs: what is proven, the paper's posterior (strong decisions, p50 with p5 to p95), and members "
            "named per model (solid: both queries, Student; dotted: full edges, Gaussian), against the number of "
            "models."
        )
        lines += [f"![{text}](reproduction/{GROWTH_FIGURE}.png)", "", text, ""]
    first, last = rows[0], rows[-1]
    moved = ", ".join(
        f"{what} from {first[place]} to {last[place]}"
        for place, what in (
            (1, "proven ε_R (full)"),
            (2, "(both)"),
            (4, "BMP-R (full, weak)"),
            (6, "members named at 99 %"),
        )
    )
    lines += [f"Clean outputs, from {first[0]} to {last[0]} models: {moved}.", ""]
    return "\n".join([*lines, *markdown_grid(heads, rows)])


def uses_part(tables: Tables) -> str:
    """What the estimate is good for, with the evidence."""
    if "directions" not in tables:
        return ""
    table, moves = tables["against_proofs"], tables["directions"]
    refuted = {name: int(table[f"below_{name}_same"].sum()) for name in INTERVALS}
    driven = table[table["is_driven"]]
    by_definition = ", ".join(f"{name.upper()} {(driven['definition'] == name).sum()}" for name in DEFINITIONS)
    by_sampler = ", ".join(f"{name} {(driven['sampler'] == name).sum()}" for name in SAMPLERS)
    of_factor = moves[moves["factor"] != "all"].groupby("factor", sort=False)[["num_agreeing", "num_pairs"]].sum()
    shares = of_factor["num_agreeing"] / of_factor["num_pairs"]
    safe, unsafe = (_factors(shares[shares >= SAFE]), _factors(shares[shares < SAFE]))
    correlation = moves.loc[moves["factor"] == "all", "correlation"]
    return "\n".join(
        [
            "## For which purposes is the paper's estimate safe to use?",
            "",
            f"- *To claim that a release leaks at most so much*: no. {refuted['published']} of {len(table)} published "
            f"intervals, and {refuted['paper']} of ours, end below what the same attack with the same query proves. "
            "Use a guarantee ([guarantees.md](guarantees.md)); no audit gives an upper bound.",
            "- *To claim that a release leaks at least so much*: no. "
            f"{len(driven)} of {len(table)} cells are driven by decisions that never vary: without those nodes p50 "
            f"falls below what p5 was with them ({by_definition}; {by_sampler}; first seed; column `is_driven` of "
            "`reproduction/against_proofs.csv`). What is decided about such nodes does not depend on the model, so "
            "nothing was learnt about them. Use what is proven.",
            "- *To say how many members are at risk*: no. The rank correlation between p50 and the share of members "
            f"that the same adversary names at 99 % lies between {correlation.min():+.2f} and {correlation.max():+.2f} "
            "over the cells of a definition and a rule. Use exposure.",
            f"- *To say which of two settings leaks more*: if they differ in {safe or 'nothing that was varied here'} "
            f"only, the estimate goes the way of exposure in at least nine of ten pairs"
            + (f"; if they differ in {unsafe}, it does not." if unsafe else "."),
            "",
            "Pairs of cells that differ in one factor only, and in how many of them p50 (counted the paper's way) goes "
            "the way of the share of members that the cell's own adversary names at 99 %; and the rank correlation "
            "over all cells:",
            "",
            *_directions(moves),
        ]
    )


def _factors(shares: pd.Series[float]) -> str:
    named = [f"{FACTOR_WORDS[str(name)]} ({share:.0%})" for name, share in shares.items()]
    return " or ".join([", ".join(named[:-1]), named[-1]]) if len(named) > 1 else "".join(named)


def _directions(moves: pd.DataFrame) -> list[str]:
    factors = [name for name in moves["factor"].unique() if name != "all"]
    rows = []
    for (definition, rule), part in moves.groupby(["definition", "rule"], sort=False):
        cells = {row["factor"]: row for row in part.to_dict("records")}
        shown = [f"{int(cells[name]['num_agreeing'])} of {int(cells[name]['num_pairs'])}" for name in factors]
        rows.append([f"{str(definition).upper()} {rule}", *shown, f"{cells['all']['correlation']:+.2f}"])
    return markdown_grid(["p50 of", *factors, "rank correlation"], rows)


def _refuted_counts(table: pd.DataFrame) -> list[str]:
    rows = []
    for name, title in INTERVALS.items():
        row = [title]
        for prover in PROVERS:
            for definition in DEFINITIONS:
                part = table[table["definition"] == definition]
                row.append(f"{int(part[f'below_{name}_{prover}'].sum())} of {len(part)}")
        rows.append(row)
    heads = [f"{definition.upper()}, by {title}" for title in PROVERS.values() for definition in DEFINITIONS]
    return markdown_grid(["intervals below what is proven", *heads], rows)


def _refuted_list(table: pd.DataFrame) -> list[str]:
    wrong = table[table["below_published_same"] | table["below_paper_same"]]
    rows = [
        [
            f"{cell_label(row)} {row['definition'].upper()}",
            _interval(row, "published") + (" ✗" if row["below_published_same"] else ""),
            _interval(row, "paper") + (" ✗" if row["below_paper_same"] else ""),
            _interval(row, "ours") + (" ✗" if row["below_ours_same"] else ""),
            _bound(row["proven_same"]),
            _bound(row["proven_all"]),
        ]
        for row in wrong.to_dict("records")
    ]
    return [
        f"{len(wrong)} cells whose published interval or ours, counted the paper's way, is refuted by its own query "
        "and attack (✗):",
        "",
        *markdown_grid(["cell", "published", "ours, paper's way", "ours", "proven, own attack", "proven, all"], rows),
    ]


def _proven_table(proofs: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    names = {"epsilon_right": "ε_R", "epsilon_left": "ε_L", "mp": "MP"}
    heads = [""]
    for title in names.values():
        heads += [f"{title}: {ADVERSARY_TITLES['full']}", ADVERSARY_TITLES["all"]]
    heads += ["published BMP-R full, weak; strong", "ours"]
    rows = []
    for key, part in proofs.groupby(CONFIGURATION, sort=False):
        row = [_label(key)]
        for parameter in names:
            for adversary in ("full", "all"):
                of = part[part["adversary"] == adversary].set_index("seed")[f"{parameter}_proven"]
                row.append(_spread(of.fillna(-np.inf), 2))
        chosen = (table["query"] == "full") & (table["definition"] == "bmp-r")
        for name, value in zip(CONFIGURATION, key, strict=True):
            chosen &= table[name] == value
        cells = table[chosen].set_index("rule").to_dict("index")
        shown = ["; ".join(_interval(cells[rule], source) for rule in RULES if rule in cells) for source in SHOWN]
        rows.append([*row, *shown])
    return [
        "What is proven for each configuration and release (median over seeds, range in brackets), beside BMP-R for "
        "full edges as published and as we estimate it, counted the paper's way. `reproduction/proofs.csv` has all "
        "seeds, guesses and hits, and the query without edges.",
        "",
        *markdown_grid(heads, rows),
    ]


def _interval(row: Mapping[Any, Any], name: str) -> str:
    return "/".join(short(row[f"{name}_{part}"]) for part in ("p5", "p50", "p95"))


def _bound(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "-"


def _spread(values: pd.Series[float], digits: int) -> str:
    middle_value = values.quantile(0.5, interpolation="lower")
    low, middle, high = (f"{each:.{digits}f}" for each in (values.min(), middle_value, values.max()))
    return middle if low == high else f"{middle} [{low}, {high}]"


def _label(key: Any) -> str:
    of = dict(zip(CONFIGURATION, key, strict=True))
    return f"{TITLES[of['dataset']]} {of['train_fraction']:.0%} {of['sampler']} {of['model'].upper()} {of['release']}"
