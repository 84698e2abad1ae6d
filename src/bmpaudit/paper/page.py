"""The page docs/reproduction.md, made from tables of results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.resources import files

import pandas as pd

from bmpaudit.paper.experiments import CELLS, COUNTINGS, KEY, MEASURES
from bmpaudit.paper.published import TABLES
from bmpaudit.paper.tables import markdown_table, short, table_title

Tables = dict[str, pd.DataFrame]

FIGURES = {
    "figure-1-regions": "Figure 1. The region R_η(ε_L, ε_R) of Theorem 6 for four choices.",
    "figure-2-marginal-effects": (
        "Figure 2. Marginal effects on the posterior mean of ε_R: small dots are cells (means over seeds), large ones "
        "means over cells."
    ),
    "figure-3-priors-snowball": (
        "Figure 3. Prior and implied e_R of each node; Cora 25 % GCN clean full strong, snowball sampling. Left with "
        "the nodes whose decision never varies (flagged), right without."
    ),
    "figure-3-priors-random": (
        "Figure 3 for random sampling, where all priors are the same but for the noise of a frequency over 1,000 "
        "samples. The paper does not say which sampling its figure shows."
    ),
    "figure-4-joint": "Figure 4. Draws of (ε_L, ε_R); Cora 50 % GCN clean.",
}
STUDY_FIGURE = "study-training-fraction"
PERCENTILES = ("p5", "p50", "p95")


def make_page(tables: Tables, figures: Sequence[str]) -> str:
    """The text of the page; parts without results are left out.

    Args:
        tables: By name, as `read_tables` gives them.
        figures: Names of the figures that are there, as PNG in the folder `reproduction`.
    """
    present = {name: table for name, table in tables.items() if len(table)}
    parts = {
        "brief": _brief(present),
        "tables": _tables(present),
        "disagreements": _disagreements(present),
        "findings": _findings(present),
        "figures": _figures(figures),
        "counting": _counting(present),
        "mhaar": _mhaar(present),
        "beyond": _beyond(present),
        "study": _study(present, figures),
        "times": _times(present),
    }
    template = (files("bmpaudit.paper") / "page_template.md").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"


def _brief(tables: Tables) -> str:
    if "verdicts" not in tables:
        return ""
    verdicts = _verdicts(tables)
    agrees = verdicts["agrees"]
    seeds = " or ".join(map(str, sorted(verdicts["num_seeds"].unique())))
    missing = len(CELLS) - len(verdicts)
    rows = []
    for (dataset, fraction), number in TABLES.items():
        counts = []
        for measure in MEASURES:
            part = (
                (verdicts["dataset"] == dataset)
                & (verdicts["train_fraction"] == fraction)
                & (verdicts["measure"] == measure)
            )
            counts.append(f"{(agrees & part).sum()} of {part.sum()}")
        rows.append([f"{number}: {_title(dataset)} {fraction:.0%}", *counts])
    distance = (verdicts["median"] - verdicts["published_p50"]).abs()
    span = verdicts["highest"] - verdicts["lowest"]
    return "\n".join(
        [
            "## In brief",
            "",
            f"**{agrees.sum()} of {len(verdicts)} cells agree ({agrees.mean():.1%})**, with {seeds} seeds"
            + (f"; {missing} cells were not run" if missing else "")
            + ". A cell agrees iff the published p50 lies within the spread of our seeds' p50, widened on both sides "
            "by 15 % of the published value or 0.3, whichever is larger.",
            "",
            *_grid(["table", "BMP-R", "MP"], rows),
            "",
            f"Median over cells of |our p50 - published p50|: {distance.median():.2f}; 90 % of the cells are within "
            f"{distance.quantile(0.9):.2f}. Our own seeds span {span.median():.2f} in the median.",
        ]
    )


def _tables(tables: Tables) -> str:
    if "verdicts" not in tables:
        return ""
    verdicts = _verdicts(tables)
    parts = [
        "## The tables\n\nIn each cell: ours as p5/p50/p95 (medians over seeds), the span of the seeds' p50 in "
        "brackets, the published value in italics; ✓ where they agree, ✗ where not, with how far the published p50 "
        "lies outside the widened span (+: ours is higher). As LaTeX and CSV: `reproduction/table-*.tex`, "
        "`reproduction/table-*.csv`."
    ]
    for dataset, fraction in TABLES:
        if ((verdicts["dataset"] == dataset) & (verdicts["train_fraction"] == fraction)).any():
            note = (
                "\n\nGAT *random*: published columns exchanged back." if (dataset, fraction) == ("cora", 0.25) else ""
            )
            parts.append(f"### {table_title(dataset, fraction)}\n\n{markdown_table(verdicts, dataset, fraction)}{note}")
    return "\n\n".join(parts)


def _disagreements(tables: Tables) -> str:
    if "disagreements" not in tables:
        return ""
    rows = [
        [
            f"{_cell(row)} {row['measure'].upper()}",
            short(row["published_p50"]),
            f"{row['median']:.1f} ({row['lowest']:.1f} to {row['highest']:.1f})",
            f"{row['miss']:+.2f}",
            row["reason"],
        ]
        for row in tables["disagreements"].to_dict("records")
    ]
    return "\n".join(
        [
            "Looked into for each cell that disagrees, with the first seed: Algorithm 3 with the paper's settings on "
            "the same counts (does the estimator make the difference?), and the posterior without the one node, and "
            "without the ten nodes, that imply most (does the cell hang on them?).",
            "",
            *_grid(["cell", "published p50", "ours (span)", "misses by", "what was found"], rows),
        ]
    )


def _findings(tables: Tables) -> str:
    if "findings" not in tables:
        return ""
    found = tables["findings"].to_dict("records")
    rows = [[row["statement"], row["published"] or "-", f"**{row['ours']}**", row["evidence"]] for row in found]
    lines = [
        "## The paper's findings, checked",
        "",
        "Each statement says what counts as true. *Published* is the answer of the published tables themselves (GAT "
        "columns exchanged back, p50 in place of means) where they can give one; *ours* that of our runs, all seeds "
        "together.",
        "",
        *_grid(["statement", "published", "ours", "our evidence"], rows),
    ]
    contradicted = [row for row in found if row["published"] == "no"]
    if contradicted:
        lines += ["", "Where the published tables themselves say no:", ""]
        lines += [f"- {row['statement']}. {row['published_evidence']}." for row in contradicted]
    return "\n".join(lines)


def _figures(figures: Sequence[str]) -> str:
    shown = [f"![{told}](reproduction/{name}.png)\n\n{told}" for name, told in FIGURES.items() if name in figures]
    return "## The figures\n\n" + "\n\n".join(shown) if shown else ""


def _counting(tables: Tables) -> str:
    if "cells" not in tables or set(tables["cells"]["counting"]) != set(COUNTINGS):
        return ""
    rows = []
    for key, part in tables["cells"].groupby(["dataset", "train_fraction", "sampling"]):
        dataset, fraction, sampling = key
        never = part.loc[part["counting"] == "paper", "num_not_auditable"].mean()
        means = part.groupby(["measure", "counting"])["p50"].mean()
        values = [f"{means[measure, counting]:.2f}" for measure in MEASURES for counting in COUNTINGS]
        rows.append([f"{_title(str(dataset))} {fraction:.0%} {sampling}", f"{never:.0f}", *values])
    return "\n".join(
        [
            "## Two ways of counting",
            "",
            "Under snowball sampling some nodes are in fewer than three of the 1,000 samples: no attack on them can "
            "be fitted. The published MP comes out only if they are kept and every decision about them is "
            '"non-member" (A = 0, B = n_1). To the estimator a decision that never varies looks like a strong attack, '
            "though nothing was found out about such a node. *The paper's way* keeps them, with priors from the J "
            "samples; *ours* leaves them out and takes exact priors, or those over 100,000 draws. How much of MP they "
            "make up is among the findings above. Means of p50 over models, attacks and seeds:",
            "",
            *_grid(["", "nodes never attacked", "BMP-R, paper's way", "ours", "MP, paper's way", "ours"], rows),
        ]
    )


def _mhaar(tables: Tables) -> str:
    if "mhaar" not in tables:
        return ""
    mhaar = tables["mhaar"]
    difference = (mhaar["mhaar_p50"] - mhaar["exact_p50"]).abs()
    converged = (mhaar["r_hat"] <= 1.01) & (mhaar["bulk_ess"] >= 400)
    rows = [
        [
            f"{_cell(row)} {row['measure'].upper()}",
            "/".join(f"{row[f'exact_{part}']:.2f}" for part in PERCENTILES),
            "/".join(f"{row[f'mhaar_{part}']:.2f}" for part in PERCENTILES),
            f"{row['bulk_ess']:.0f}",
            f"{row['r_hat']:.2f}",
        ]
        for row in mhaar.to_dict("records")
    ]
    return "\n".join(
        [
            "## Exact against Algorithm 3",
            "",
            f"{len(mhaar)} cells were also estimated by MHAAR with the paper's settings (one chain, T = 10,000, "
            "half of it burn-in, M = 50; first seed): those of Cora 25 % with GCN and clean outputs, and those "
            f"that disagree. The p50 of MHAAR and the exact one differ by {difference.median():.2f} in the median, "
            f"{difference.max():.2f} at most. By split R-hat ≤ 1.01 and bulk ESS ≥ 400, {converged.sum()} of "
            f"{len(mhaar)} converged (median bulk ESS {mhaar['bulk_ess'].median():.0f}). A chain starts beyond "
            "what every node's errors imply and comes down slowly: where the posterior is narrow, 10,000 "
            "iterations end before it arrives, with an interval that is narrow too and misses the posterior.",
            "",
            *_grid(["cell", "exact", "MHAAR", "bulk ESS", "R-hat"], rows),
        ]
    )


def _beyond(tables: Tables) -> str:
    if "beyond" not in tables:
        return ""
    rows = []
    keys = ["dataset", "train_fraction", "sampling", "model", "edges", "output", "decision"]
    for _, part in tables["beyond"].groupby(keys, sort=False):
        values = []
        for measure in MEASURES:
            for counting in COUNTINGS:
                found = part[(part["measure"] == measure) & (part["counting"] == counting)]
                values.append("/".join(short(found[name].median()) for name in PERCENTILES) if len(found) else "-")
        seeds = f"{part['seed'].nunique()}"
        rows.append([_cell(part.iloc[0].to_dict()), seeds, *values, f"{part['accuracy'].mean():.1%}"])
    heads = ["cell", "seeds", "BMP-R, paper's way", "BMP-R, ours", "MP, paper's way", "MP, ours", "right decisions"]
    return "\n".join(
        [
            "## Beyond the paper: PubMed, and a model without edges",
            "",
            "`bmpaudit reproduce --beyond`: the same eight attacks; p5/p50/p95, medians over seeds. An MLP sees no "
            "edges: asked with all edges or with none, it says the same. A dash stands where there is no value.",
            "",
            *_grid(heads, rows),
        ]
    )


def _study(tables: Tables, figures: Sequence[str]) -> str:
    if "study" not in tables:
        return ""
    study = tables["study"]
    names = ("p50", "p50_unflagged", "floor", "excess")
    rows = []
    for fraction, part in study.groupby("train_fraction"):
        values = []
        for sampling in ("random", "snowball"):
            found = part[part["sampling"] == sampling]
            values += [f"{found[name].median():.2f}" if len(found) else "-" for name in names]
        rows.append([f"{fraction:.0%}", *values])
    heads = ["training fraction", "random: ε_R", "of varying decisions", "floor", "excess"]
    heads += ["snowball: ε_R", "of varying decisions", "floor", "excess"]
    medians = study.groupby(["sampling", "train_fraction"])[list(names)].median()
    told = []
    for sampling in study["sampling"].unique():
        part = medians.loc[sampling]
        first, last = part.iloc[0], part.iloc[-1]
        told.append(
            f"Under {sampling} sampling the floor goes from {first['floor']:.1f} to {last['floor']:.1f}, ε_R of "
            f"varying decisions from {first['p50_unflagged']:.1f} over {part['p50_unflagged'].min():.1f} at "
            f"{part['p50_unflagged'].idxmin():.0%} to {last['p50_unflagged']:.1f}."
        )
    picture = [f"![ε_R, floor and excess](reproduction/{STUDY_FIGURE}.png)", ""] if STUDY_FIGURE in figures else []
    return "\n".join(
        [
            "## Study: how ε_R moves with the training fraction",
            "",
            "A question that the paper leaves open: 10 % to 90 % of the nodes, Cora, GCN, full edges, clean outputs, "
            "strong decisions, 300 shadow models, counted our way; `bmpaudit reproduce --study`. The floor is max log "
            "η over the nodes that can be attacked (Prop. 1: what the sampler alone gives away), the excess is the "
            "posterior median of ε_R minus the floor. Far from 50 % the strong decision about many nodes never "
            "varies; such nodes tell nothing of the model, yet weigh on ε. Hence ε_R of varying decisions, without "
            f"them, beside it. Seeds: {study['seed'].nunique()}; medians, and bands from the lowest to the highest.",
            "",
            " ".join(told),
            "",
            *picture,
            *_grid(heads, rows),
        ]
    )


def _times(tables: Tables) -> str:
    if "runs" not in tables:
        return ""
    runs = tables["runs"]
    paper = runs[runs["dataset"].isin(["cora", "citeseer"]) & runs["model"].isin(["gcn", "gat"])]
    stages = {
        "training": "seconds_training",
        "attacks": "seconds_attack",
        "posteriors, paper's way": "seconds_posteriors_paper",
        "posteriors, ours": "seconds_posteriors_ours",
    }
    rows = [_time_row(f"{seed}", part, list(stages.values())) for seed, part in paper.groupby("seed")]
    if len(rows) > 1:
        keys = ["dataset", "train_fraction", "sampling", "model"]
        fastest = paper.groupby(keys)[["num_models", *stages.values()]].min().reset_index()
        rows.append(_time_row("fastest of each set", fastest, list(stages.values())))
    lines = [
        "## Run time",
        "",
        "On two cores that other work was using at the same time, hence the differences between seeds; the last row "
        "takes for each set of models the fastest seed.",
        "",
        *_grid(["seed", "models", *stages, "paper's way in all"], rows),
    ]
    if "plain_costs" in tables:
        told = "; ".join(f"{row['piece']} {row['hours']:.1f} h" for row in tables["plain_costs"].to_dict("records"))
        lines += [
            "",
            "The same work of one seed in the plain way, measured in pieces and scaled up "
            f"(`benchmarks/reproduction.py`, one thread): {told}.",
        ]
    return "\n".join(lines)


def _time_row(name: str, part: pd.DataFrame, columns: list[str]) -> list[str]:
    minutes = [part[column].sum() / 60 for column in columns]
    all_but_ours = sum(minutes[:-1])
    return [name, f"{part['num_models'].sum():,}", *(f"{value:.1f} min" for value in [*minutes, all_but_ours])]


def _grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return lines + ["| " + " | ".join(value.replace("|", r"\|") for value in row) + " |" for row in rows]


def _verdicts(tables: Tables) -> pd.DataFrame:
    verdicts = tables["verdicts"]
    return verdicts.assign(agrees=verdicts["agrees"].astype(str) == "True")  # a file has words


def _cell(row: dict[str, object] | dict[object, object]) -> str:
    values = {str(name): row[name] for name in row}  # type: ignore[index]
    parts = [str(values[name]) for name in KEY[4:7]]
    return (
        f"{_title(str(values['dataset']))} {values['train_fraction']:.0%} {values['sampling']} "
        f"{str(values['model']).upper()} {' '.join(parts)}"
    )


def _title(name: str) -> str:
    return {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}.get(name, name)
