"""Parts of the page that go beyond the paper's own tables and figures: other estimators, data, fractions; run times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import cast

import pandas as pd

from bmpaudit.estimation.mhaar import LARGEST_R_HAT, LEAST_BULK_ESS
from bmpaudit.util.words import listed
from reproduction.experiments import (
    CELLS,
    CONFIGURATIONS,
    COUNTINGS,
    DATASETS,
    DEFINITIONS,
    MODELS,
    SAMPLERS,
    TABLES,
    TITLES,
    cell_label,
    is_swapped,
    render_page,
)
from reproduction.findings import BUT_DEFINITION
from reproduction.proof_pages import (
    SWAPPED_NOTE,
    exposure_part,
    growth_part,
    markdown_grid,
    markdown_table,
    proofs_part,
    short,
    table_title,
    uses_part,
)
from reproduction.records import is_within_reach
from reproduction.run import PERCENTILES

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
            "`python -m reproduction --beyond` runs the same eight attacks; the values are p5/p50/p95, medians over "
            "seeds. An MLP sees no edges, so it answers the same whether it is queried with all edges or with none. A "
            "dash means that there is no value.",
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
            "A question that the paper leaves open. `python -m reproduction --study` samples 10 % to 90 % of the nodes "
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
            f"(`benchmarks/plain_reproduction.py`, one thread), without proofs: {costs}.",
        ]
    return "\n".join(lines)


def _time_row(name: str, part: pd.DataFrame) -> list[str]:
    minutes = [part[f"processor_{column}"].sum() / 60 for column in STAGES.values()]
    return [name, f"{part['num_models'].sum():,}", *(f"{value:.1f} min" for value in [*minutes, sum(minutes)])]


# The part of the page about other ways of snowball sampling that were tried.


BASE, OURS = "stop", "any order and walked edges"
"""The rule that the others change, and the one that the tables use."""
NUM_SEEDS = 3
CELLS_EACH = len(CELLS) // len(CONFIGURATIONS)
SEARCHED = ["dataset", "train_fraction", "model"]
CELL = [*SEARCHED, "query", "release", "rule", "definition"]
WORST = {
    "dataset": "citeseer",
    "train_fraction": 0.5,
    "model": "gcn",
    "query": "none",
    "release": "noisy",
    "rule": "weak",
    "definition": "bmp-r",
}
WORDS = {
    "stop": "first in, first out; a sample whose queue runs dry stays small",
    "resume": "when the queue runs dry, every node with a neighbour outside joins it again",
    "restart": "when the queue runs dry, sampling goes on from a node drawn outside of the sample",
    "fill": "when the queue runs dry, the sample is filled up with nodes drawn outside of it",
    "redraw": "a sample whose queue runs dry is thrown away and drawn again",
    "any order": "the next node is drawn from the queue at random",
    "any node": "the next node is drawn from the whole sample at random, again and again",
    "last first": "the next node is the last of the queue",
    "new neighbours": "a node draws up to 5 of its neighbours outside of the sample",
    "whole sample": "up to 5 of the neighbours of the whole sample join it at a time",
    "connected seed": "a node without neighbours is never the seed",
    "seed per class": "sampling starts from one node of each class",
    "without isolated nodes": "nodes without neighbours are removed from the graph",
    "without featureless nodes": "nodes without features are removed from the graph",
    "largest component": "all but the largest component is removed from the graph",
    "walked edges": "only edges that the sampling walked along are trained on",
    "any order and walked edges": "the next node is drawn from the queue at random, and only edges walked along are "
    "trained on",
}
CITESEER_ONLY = ("connected seed", "without isolated nodes", "without featureless nodes")
"""Variants about nodes that Cora does not have."""

Key = tuple[str, float, str]
Counts = dict[Key, tuple[int, int]]
"""By configuration: cells within reach, and all."""

ALL: list[Key] = [
    (each.dataset, each.train_fraction, each.model) for each in CONFIGURATIONS if each.sampler == "snowball"
]


def search_part(tables: Mapping[str, pd.DataFrame]) -> str:
    """How many cells each variant brings within reach, configuration by configuration, and what follows."""
    if "variants" not in tables:
        return ""
    variants = tables["variants"]
    counts = _counts(variants[variants["seed"] == 0])
    columns = list(dict.fromkeys(key for of in counts.values() for key in of))
    heads = [f"{TITLES[dataset]} {fraction:.0%} {model.upper()}" for dataset, fraction, model in columns]
    rows = []
    for name in [name for name in WORDS if name in counts]:
        of = counts[name]
        gained = sum(within - counts[BASE][key][0] for key, (within, _) in of.items())
        shown = [f"{of[key][0]} of {of[key][1]}" if key in of else _nothing(name, key) for key in columns]
        rows.append([WORDS[name], *shown, "" if name == BASE else f"{gained:+d}"])
    parts = [
        "Ways of snowball sampling that were tried on the snowball cells, each a change of the first in one respect, "
        "the last in two, with one seed (`benchmarks/snowball_variants.py`; a cell is within reach if our p50 differs "
        "from the published one by at most 15 % or 0.3). An equals sign: changes nothing there; a dash: was not run.",
        "\n".join(markdown_grid(["", *heads, "cells gained"], rows)),
        _several_seeds(variants) + _agreement(variants, tables["cells"]),
        _undecided(variants),
        _worst_cell(variants, tables["cells"]),
    ]
    return "\n\n".join(part for part in parts if part)


def _counts(variants: pd.DataFrame) -> dict[str, Counts]:
    """By variant."""
    counts: dict[str, Counts] = {}
    for group, part in variants.groupby(["snowball", *SEARCHED], sort=False):
        name, dataset, fraction, model = cast("tuple[str, str, float, str]", group)
        counts.setdefault(name, {})[dataset, fraction, model] = (int(part["is_within"].sum()), len(part))
    return counts


def _nothing(name: str, key: Key) -> str:
    return "=" if name in CITESEER_ONLY and key[0] == "cora" else "-"


def _missing(name: str, counts: Counts) -> list[Key]:
    """Configurations that a variant was not run on and would change."""
    return [key for key in ALL if key not in counts and _nothing(name, key) == "-"]


def _within(counts: Counts, keys: Iterable[Key]) -> int:
    return sum(counts[key][0] for key in keys)


def _complete_seeds(variants: pd.DataFrame, name: str) -> dict[int, Counts]:
    """The seeds with which a variant was run everywhere."""
    of_seed = {seed: _counts(part).get(name, {}) for seed, part in variants.groupby("seed")}
    return {cast(int, seed): counts for seed, counts in of_seed.items() if counts and not _missing(name, counts)}


def _several_seeds(variants: pd.DataFrame) -> str:
    """How far seeds differ, of variants that were run everywhere with several."""
    told = []
    for name in WORDS:
        seeds = list(_complete_seeds(variants, name).values())
        if len(seeds) > 1:
            num_cells = sum(number for _, number in seeds[0].values())
            totals = listed([str(_within(counts, counts)) for counts in seeds])
            told.append(f"*{name}* {totals} of {num_cells}")
    return f"Seeds alone make a difference. Cells within reach with each: {'; '.join(told)}." if told else ""


def _agreement(variants: pd.DataFrame, cells: pd.DataFrame) -> str:
    """The measure of the tables, for the rules that were run everywhere with several seeds, and what it decides."""
    of_tables = _select(cells, sampler="snowball", counting="paper")[[*CELL, "seed", "p50"]]
    published = variants.groupby(CELL)["published_p50"].first()
    agreeing, told = {}, []
    for name in WORDS:
        runs = [_select(variants, snowball=name, seed=seed) for seed in _complete_seeds(variants, name)]
        if name == OURS:
            runs += [of_tables[of_tables["seed"] == seed] for seed in of_tables["seed"].unique()]
        if len(runs) >= NUM_SEEDS and len(runs[0]) == len(published):
            agreeing[name] = counts = _num_agreeing(runs, published)
            told.append(f"*{name}* {fmean(counts):.1f} ({min(counts)} to {max(counts)}; {len(runs)} seeds)")
    if OURS not in agreeing or len(agreeing) == 1:
        return ""
    others = max(fmean(counts) for name, counts in agreeing.items() if name != OURS)
    decided = "So it is the rule of the tables." if fmean(agreeing[OURS]) > others else "That is no clear difference."
    return (
        f" How many of {len(published)} snowball cells agree by the measure of the tables, the widened range of "
        f"{NUM_SEEDS} seeds, as means over all choices of {NUM_SEEDS} with the lowest and the highest: "
        f"{'; '.join(told)}. The seeds of the tables are among those of *{OURS}*, and were run after it had come out "
        f"best. {decided}"
    )


def _num_agreeing(runs: Sequence[pd.DataFrame], published: pd.Series[float]) -> list[int]:
    """Cells that agree with each choice of three runs."""
    p50 = pd.concat([run.set_index(CELL)["p50"] for run in runs], axis=1, keys=range(len(runs)))
    published = published.reindex(p50.index)
    chosen = (p50[list(choice)] for choice in combinations(range(len(runs)), NUM_SEEDS))
    return [
        int(is_within_reach(published.clip(each.min(axis=1), each.max(axis=1)), published).sum()) for each in chosen
    ]


def _undecided(variants: pd.DataFrame) -> str:
    """Variants that might do better: run with one seed only, or not everywhere."""
    counts = _counts(variants[variants["seed"] == 0])
    ours = counts.get(OURS, {})
    ahead, behind, partly = [], [], []
    for name, of in counts.items():
        missing = _missing(name, of)
        shared = [key for key in of if key in ours]
        lead = _within(ours, shared) - _within(of, shared)
        told = f"*{name}* ({_within(of, shared)}, *{OURS}* {_within(ours, shared)})"
        if not missing:
            if lead < 0 and len(_complete_seeds(variants, name)) == 1:
                ahead.append(told)
        # What is missing can bring at most all cells of these configurations, of which ours has some.
        elif sum(CELLS_EACH - ours[key][0] for key in missing if key in ours) <= lead:
            behind.append(f"*{name}*")
        elif shared:
            partly.append(told)
    sentences = []
    if ahead:
        sentences.append(f"Ahead with the one seed that was run, too few to tell: {listed(ahead)}.")
    if behind:
        sentences.append(f"So far behind that the configurations left could not make up for it: {listed(behind)}.")
    if partly:
        sentences.append(f"Not run everywhere; cells within reach where they were: {listed(partly)}.")
    return " ".join(sentences)


def _worst_cell(variants: pd.DataFrame, cells: pd.DataFrame) -> str:
    """The cell that misses most, under each variant and for each seed of the tables."""
    tried = _select(variants, **WORST, seed=0)
    if not len(tried):
        return ""
    values = ", ".join(f"{row['snowball']} {row['p50']:.1f}" for row in tried.to_dict("records"))
    ours = _select(cells, **WORST, sampler="snowball", counting="paper")["p50"]
    return (
        "The cell that misses most, CiteSeer 50 % snowball GCN none noisy weak BMP-R (published "
        f"{tried['published_p50'].iloc[0]:g}): {values}. The benchmark draws samples of its own; the seeds of the "
        f"tables give {ours.min():.1f} to {ours.max():.1f}."
    )


def _select(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    for name, value in values.items():
        table = table[table[name] == value]
    return table


# The page docs/reproduction.md, made from tables of results.


Tables = Mapping[str, pd.DataFrame]

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
    return render_page("reproduction.md", parts)


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
