"""Parts of the page that go beyond the paper's own tables and figures: other estimators, data, fractions; run times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from bmpaudit.estimation.diagnostics import LARGEST_R_HAT, LEAST_BULK_ESS
from bmpaudit.paper.cell_results import PERCENTILES
from bmpaudit.paper.experiments import COUNTINGS, DATASETS, DEFINITIONS, MODELS, SAMPLERS, cell_label
from bmpaudit.paper.finding import BUT_DEFINITION
from bmpaudit.paper.tables import markdown_grid, short

STUDY_FIGURE = "study-training-fraction"
STAGES = {
    "training": "training",
    "attacks": "attack",
    "proofs and exposure": "proofs",
    "posteriors, paper's way": "posteriors_paper",
    "posteriors, ours": "posteriors_ours",
    "figures and checks": "checks",
}
"""Columns of the table of runs, after `processor_`."""


def mhaar_part(tables: Mapping[str, pd.DataFrame]) -> str:
    """The exact estimator against Algorithm 3."""
    if "mhaar" not in tables:
        return ""
    mhaar = tables["mhaar"]
    difference = (mhaar["mhaar_p50"] - mhaar["exact_p50"]).abs()
    has_converged = (mhaar["r_hat"] <= LARGEST_R_HAT) & (mhaar["bulk_ess"] >= LEAST_BULK_ESS)
    rows = [
        [
            f"{cell_label(row)} {row['definition'].upper()}",
            "/".join(f"{row[f'exact_{part}']:.2f}" for part in PERCENTILES),
            "/".join(f"{row[f'mhaar_{part}']:.2f}" for part in PERCENTILES),
            f"{row['bulk_ess']:.0f}",
            f"{row['r_hat']:.2f}",
        ]
        for row in mhaar.to_dict("records")
    ]
    return "\n".join(
        [
            "## Exact posteriors against Algorithm 3",
            "",
            f"{len(mhaar)} cells were also estimated by MHAAR with the paper's settings (one chain, T = 10,000, half "
            "of it burn-in, M = 50; first seed): the cells of Cora 25 % with GCN and clean outputs, and those that "
            f"disagree. The p50 of MHAAR and the exact p50 differ by {difference.median():.2f} in the median and by at "
            f"most {difference.max():.2f}. By the criteria split R-hat ≤ {LARGEST_R_HAT:g} and bulk ESS ≥ "
            f"{LEAST_BULK_ESS:g}, {has_converged.sum()} of {len(mhaar)} chains converged (median bulk ESS "
            f"{mhaar['bulk_ess'].median():.0f}). A chain starts above everything that the nodes' errors imply and "
            "descends slowly. Where the posterior is narrow, 10,000 iterations end before it arrives, and its interval "
            "is narrow too but misses the posterior.",
            "",
            *markdown_grid(["cell", "exact", "MHAAR", "bulk ESS", "R-hat"], rows),
        ]
    )


def beyond_part(tables: Mapping[str, pd.DataFrame]) -> str:
    """PubMed and MLP."""
    if "beyond" not in tables:
        return ""
    rows = []
    for _, part in tables["beyond"].groupby(BUT_DEFINITION, sort=False):
        values = []
        for definition in DEFINITIONS:
            for counting in COUNTINGS:
                chosen = part[(part["definition"] == definition) & (part["counting"] == counting)]
                values.append("/".join(short(chosen[name].median()) for name in PERCENTILES) if len(chosen) else "-")
        label, num_seeds = cell_label(part.iloc[0].to_dict()), part["seed"].nunique()
        rows.append([label, f"{num_seeds}", *values, f"{part['accuracy'].mean():.1%}"])
    heads = ["cell", "seeds", "BMP-R, paper's way", "BMP-R, ours", "MP, paper's way", "MP, ours", "right decisions"]
    return "\n".join(
        [
            "## Beyond the paper: PubMed, and a model without edges",
            "",
            "`bmpaudit reproduce --beyond` runs the same eight attacks; the values are p5/p50/p95, medians over seeds. "
            "An MLP sees no edges, so it answers the same whether it is queried with all edges or with none. A dash "
            "means that there is no value.",
            "",
            *markdown_grid(heads, rows),
        ]
    )


def study_part(tables: Mapping[str, pd.DataFrame], figures: Sequence[str]) -> str:
    """ε_R against the training fraction."""
    if "study" not in tables:
        return ""
    study = tables["study"]
    columns = {"p50": "ε_R", "p50_unflagged": "of varying decisions", "floor": "floor", "excess": "excess"}
    rows = []
    for fraction, part in study.groupby("train_fraction"):
        values = []
        for sampler in SAMPLERS:
            chosen = part[part["sampler"] == sampler]
            values += [f"{chosen[name].median():.2f}" if len(chosen) else "-" for name in columns]
        rows.append([f"{fraction:.0%}", *values])
    heads = [f"{sampler}: {title}" if title == "ε_R" else title for sampler in SAMPLERS for title in columns.values()]
    medians = study.groupby(["sampler", "train_fraction"])[list(columns)].median()
    sentences = []
    for sampler in study["sampler"].unique():
        part = medians.loc[sampler]
        first, last, varying = part.iloc[0], part.iloc[-1], part["p50_unflagged"]
        sentences.append(
            f"Under {sampler} sampling the floor rises from {first['floor']:.1f} to {last['floor']:.1f}; ε_R of "
            f"varying decisions goes from {varying.iloc[0]:.1f} through a minimum of {varying.min():.1f} at "
            f"{varying.idxmin():.0%} to {varying.iloc[-1]:.1f}."
        )
    picture = [f"![ε_R, floor and excess](reproduction/{STUDY_FIGURE}.png)", ""] if STUDY_FIGURE in figures else []
    return "\n".join(
        [
            "## Study: how ε_R varies with the training fraction",
            "",
            "A question that the paper leaves open. `bmpaudit reproduce --study` samples 10 % to 90 % of the nodes "
            "(Cora, GCN, full edges, clean outputs, strong decisions, 300 shadow models, counted our way). The floor "
            "is the maximum of log η over the nodes that can be attacked (Prop. 1: what the sampler alone gives away), "
            "and the excess is the posterior median of ε_R minus the floor. Far from 50 % the strong decision about "
            "many nodes never varies. Such nodes say nothing about the model but still raise ε, so the table also "
            f"shows ε_R of varying decisions, which leaves them out. Seeds: {study['seed'].nunique()}; values are "
            "medians, and bands reach from the lowest to the highest.",
            "",
            " ".join(sentences),
            "",
            *picture,
            *markdown_grid(["training fraction", *heads], rows),
        ]
    )


def times_part(tables: Mapping[str, pd.DataFrame]) -> str:
    """How long it took."""
    if "runs" not in tables:
        return ""
    runs = tables["runs"]
    paper = runs[runs["dataset"].isin(DATASETS) & runs["model"].isin(MODELS)]
    rows = [_time_row(f"{seed}", part) for seed, part in paper.groupby("seed")]
    if len(rows) > 1:
        rows.append(_time_row("all", paper))
    total = sum(paper[f"processor_{column}"].sum() for column in STAGES.values()) / 60
    lines = [
        "## Run time",
        "",
        "Processor time, because other work ran on the same machine; a set of models whose training was stopped counts "
        f"what was trained after it was resumed. {len(paper)} sets of models took {total:.1f} minutes of one core in "
        "all.",
        "",
        *markdown_grid(["seed", "models", *STAGES, "total"], rows),
    ]
    if "plain_costs" in tables:
        costs = "; ".join(f"{row['piece']} {row['hours']:.1f} h" for row in tables["plain_costs"].to_dict("records"))
        lines += [
            "",
            "The same work for one seed with plain tools, measured in pieces and scaled up "
            f"(`benchmarks/reproduction.py`, one thread), without proofs: {costs}.",
        ]
    return "\n".join(lines)


def _time_row(name: str, part: pd.DataFrame) -> list[str]:
    minutes = [part[f"processor_{column}"].sum() / 60 for column in STAGES.values()]
    return [name, f"{part['num_models'].sum():,}", *(f"{value:.1f} min" for value in [*minutes, sum(minutes)])]
