"""The page docs/reproduction.md, made from tables of results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

import pandas as pd

from bmpaudit.paper.experiments import CELLS, COUNTINGS, DEFINITIONS, TITLES, cell_label
from bmpaudit.paper.page_extras import beyond_part, mhaar_part, study_part, times_part
from bmpaudit.paper.page_proofs import exposure_part, growth_part, proofs_part, uses_part
from bmpaudit.paper.page_search import search_part
from bmpaudit.paper.published import TABLES, is_swapped
from bmpaudit.paper.tables import SWAPPED_NOTE, markdown_grid, markdown_table, short, table_title

Tables = dict[str, pd.DataFrame]

FIGURES = {
    "figure-1-regions": "Figure 1. The region R_η(ε_L, ε_R) of Theorem 6 for four choices of its parameters.",
    "figure-2-marginal-effects": (
        "Figure 2. Marginal effects on the posterior mean of ε_R. Small dots are cells (means over seeds), large dots "
        "are means over cells."
    ),
    "figure-3-priors-snowball": (
        "Figure 3. Prior and implied e_R of each node for Cora 25 % GCN clean full strong under snowball sampling. "
        "Left: with the nodes whose decision never varies (flagged). Right: without them."
    ),
    "figure-3-priors-uniform": (
        "Figure 3 for uniform sampling, where all priors are equal except for the noise of a frequency over 1,000 "
        "samples. The paper does not say which sampler its figure shows."
    ),
    "figure-4-joint": "Figure 4. Draws of (ε_L, ε_R) for Cora 50 % GCN clean.",
}


def make_page(tables: Tables, figures: Sequence[str]) -> str:
    """The text of the page; parts without results are left out.

    Args:
        tables: By name, as `read_tables` returns them.
        figures: Names of the figures that exist as PNG in the folder `reproduction`.
    """
    present = {name: table for name, table in tables.items() if len(table)}
    parts = {
        "brief": _brief(present),
        "tables": _tables(present),
        "disagreements": _disagreements(present),
        "search": search_part(present),
        "findings": _findings(present),
        "figures": _figures(figures),
        "counting": _counting(present),
        "proofs": proofs_part(present, figures),
        "uses": uses_part(present),
        "exposure": exposure_part(present, figures),
        "growth": growth_part(present, figures),
        "mhaar": mhaar_part(present),
        "beyond": beyond_part(present),
        "study": study_part(present, figures),
        "times": times_part(present),
    }
    template = (files("bmpaudit.paper") / "page_template.md").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"


def _brief(tables: Tables) -> str:
    if "verdicts" not in tables:
        return ""
    verdicts = tables["verdicts"]
    agrees, as_printed = verdicts["agrees"], verdicts["agrees_as_printed"]
    seeds = " or ".join(map(str, sorted(verdicts["num_seeds"].unique())))
    missing = len(CELLS) - len(verdicts)

    def counts(part: pd.DataFrame, column: str) -> list[str]:
        chosen = [part.loc[part["definition"] == definition, column] for definition in DEFINITIONS]
        return [f"{column.sum()} of {len(column)}" for column in chosen]

    rows = []
    for (dataset, fraction), number in TABLES.items():
        part = verdicts[(verdicts["dataset"] == dataset) & (verdicts["train_fraction"] == fraction)]
        title = f"{number}: {TITLES[dataset]} {fraction:.0%}"
        rows.append([title, *counts(part, "agrees")])
        if is_swapped(part).any():
            rows.append([f"{title}, as printed", *counts(part, "agrees_as_printed")])
    distance = (verdicts["median"] - verdicts["published_p50"]).abs()
    span = verdicts["highest"] - verdicts["lowest"]
    return "\n".join(
        [
            "## In brief",
            "",
            f"**{agrees.sum()} of {len(verdicts)} cells agree ({agrees.mean():.1%})** with {seeds} seeds, once two "
            f"columns of Table II that are swapped in print (see below) are swapped back; with the tables as printed, "
            f"**{as_printed.sum()} of {len(verdicts)} ({as_printed.mean():.1%})**"
            + (f"; {missing} cells were not run" if missing else "")
            + ". A cell agrees if and only if the published p50 lies within the range of our seeds' p50, widened on "
            "both sides by 15 % of the published value or 0.3, whichever is larger.",
            "",
            *markdown_grid(["table", "BMP-R", "MP"], rows),
            "",
            f"With the columns swapped back, the median over cells of |our p50 - published p50| is "
            f"{distance.median():.2f}, and 90 % of the cells are within {distance.quantile(0.9):.2f}. The median range "
            f"of our own seeds is {span.median():.2f}.",
        ]
    )


def _tables(tables: Tables) -> str:
    if "verdicts" not in tables:
        return ""
    verdicts = tables["verdicts"]
    parts = [
        "## The tables\n\nEach cell shows our p5/p50/p95 (medians over seeds), the range of our seeds' p50 in "
        "brackets, and the published value in italics. ✓ means that they agree. ✗ means that they do not, followed by "
        "how far the published p50 lies outside the widened range (+ where ours is higher). LaTeX and CSV versions: "
        "`reproduction/table-*.tex` and `reproduction/table-*.csv`."
    ]
    for dataset, fraction in TABLES:
        part = verdicts[(verdicts["dataset"] == dataset) & (verdicts["train_fraction"] == fraction)]
        if len(part):
            note = f"\n\n{SWAPPED_NOTE}" if is_swapped(part).any() else ""
            parts.append(f"### {table_title(dataset, fraction)}\n\n{markdown_table(part, dataset, fraction)}{note}")
    return "\n\n".join(parts)


def _disagreements(tables: Tables) -> str:
    if "disagreements" not in tables:
        return ""
    rows = [
        [
            f"{cell_label(row)} {row['definition'].upper()}",
            short(row["published_p50"]),
            f"{row['median']:.1f} ({row['lowest']:.1f} to {row['highest']:.1f})",
            f"{row['miss']:+.2f}",
            row["reason"],
        ]
        for row in tables["disagreements"].to_dict("records")
    ]
    return "\n".join(
        [
            "For each cell that disagrees, two checks were made with the first seed: Algorithm 3 with the paper's "
            "settings on the same counts (does the estimator make the difference?), and the posterior without the one "
            "node, and without the ten nodes, that imply the largest ε (does the cell depend on them?).",
            "",
            *markdown_grid(["cell", "published p50", "ours (range)", "misses by", "explanation"], rows),
        ]
    )


def _findings(tables: Tables) -> str:
    if "findings" not in tables:
        return ""
    findings = tables["findings"].to_dict("records")
    rows = [[row["statement"], row["published"] or "-", f"**{row['ours']}**", row["evidence"]] for row in findings]
    lines = [
        "## The paper's findings, checked",
        "",
        "Each statement says what counts as true. *Published* is the answer of the published tables themselves where "
        "they can give one (GAT columns swapped back, p50 instead of means); *ours* is the answer of our runs, "
        "averaged over seeds. The factors are `train_fraction` (50 % against 25 %), `release` (noisy against clean "
        "outputs), `sampler` (snowball against uniform), `model` (GAT against GCN), `query` (no edges against full "
        "edges) and `rule` (strong against weak decisions).",
        "",
        *markdown_grid(["statement", "published", "ours", "our evidence"], rows),
    ]
    contradicted = [row for row in findings if row["published"] == "no"]
    if contradicted:
        lines += ["", "Statements that the published tables themselves contradict:", ""]
        lines += [f"- {row['statement']}. {row['published_evidence']}." for row in contradicted]
    failed = [row for row in findings if row["ours"] == "no"]
    if failed:
        said = {"yes": "the published tables say yes", "no": "so do the published tables", "": "they cannot say"}
        lines += ["", "### What comes out no", ""]
        lines += [f"- **{row['statement']}**: no ({said[row['published']]}). {row['evidence']}." for row in failed]
    return "\n".join(lines)


def _figures(figures: Sequence[str]) -> str:
    shown = [f"![{text}](reproduction/{name}.png)\n\n{text}" for name, text in FIGURES.items() if name in figures]
    return "## The figures\n\n" + "\n\n".join(shown) if shown else ""


def _counting(tables: Tables) -> str:
    if "cells" not in tables or set(tables["cells"]["counting"]) != set(COUNTINGS):
        return ""
    rows = []
    for key, part in tables["cells"].groupby(["dataset", "train_fraction", "sampler"], sort=False):
        dataset, fraction, sampler = key
        num_never = part.loc[part["counting"] == "paper", "num_not_auditable"].mean()
        means = part.groupby(["definition", "counting"])["p50"].mean()
        values = [f"{means[definition, counting]:.2f}" for definition in DEFINITIONS for counting in COUNTINGS]
        rows.append([f"{TITLES[str(dataset)]} {fraction:.0%} {sampler}", f"{num_never:.0f}", *values])
    return "\n".join(
        [
            "## Two ways of counting",
            "",
            "Under snowball sampling some nodes are in fewer than three of the 1,000 samples, so no attack on them can "
            "be fitted. The published MP is reproduced only if they are kept and every decision about them is "
            '"non-member" (A = 0, B = n_1). To the estimator, a decision that never varies looks like a strong attack, '
            "although nothing was learned about such a node. *The paper's way* keeps these nodes and takes priors from "
            "the J samples; *ours* leaves them out and takes priors that are exact or estimated from 100,000 draws. "
            "The findings above say how much of MP they account for. Means of p50 over models, attacks and seeds:",
            "",
            *markdown_grid(["", "nodes never attacked", "BMP-R, paper's way", "ours", "MP, paper's way", "ours"], rows),
        ]
    )
