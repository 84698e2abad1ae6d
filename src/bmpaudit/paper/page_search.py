"""The part of the page about other ways of snowball sampling that were tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import cast

import pandas as pd

from bmpaudit.paper.experiments import CELLS, CONFIGURATIONS, TITLES
from bmpaudit.paper.tables import markdown_grid
from bmpaudit.paper.verdict import is_within_reach
from bmpaudit.report.words import listed

BASE, OURS = "stop", "any order and walked edges"
"""The rule that the others change, and the one that the tables use."""
NUM_SEEDS = 3
CELLS_EACH = len(CELLS) // len(CONFIGURATIONS)
CONFIGURATION = ["dataset", "train_fraction", "model"]
CELL = [*CONFIGURATION, "query", "release", "rule", "definition"]
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
    for group, part in variants.groupby(["snowball", *CONFIGURATION], sort=False):
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
