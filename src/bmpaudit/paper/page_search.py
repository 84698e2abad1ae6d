"""The part of the page about other ways of snowball sampling that were tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import cast

import pandas as pd

from bmpaudit.paper.experiments import CELLS, CONFIGURATIONS, KEY, TITLES
from bmpaudit.paper.published import published_table
from bmpaudit.paper.tables import markdown_grid
from bmpaudit.paper.verdict import is_within_reach
from bmpaudit.report.words import listed

OURS = "stop"
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
    "stop": "as above: a sample whose queue runs dry stays small",
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
    variants, cells = tables["variants"], _snowball_cells(tables["cells"])
    counts = _counts(variants[variants["seed"] == 0])
    columns = list(dict.fromkeys(key for of in counts.values() for key in of))
    heads = [f"{TITLES[dataset]} {fraction:.0%} {model.upper()}" for dataset, fraction, model in columns]
    rows = []
    for name in [name for name in WORDS if name in counts]:
        of = counts[name]
        gained = sum(within - counts[OURS][key][0] for key, (within, _) in of.items())
        shown = [f"{of[key][0]} of {of[key][1]}" if key in of else _nothing(name, key) for key in columns]
        rows.append([WORDS[name], *shown, "" if name == OURS else f"{gained:+d}"])
    return "\n".join(
        [
            "Other ways of snowball sampling were tried on the snowball cells of the configurations below, with one "
            "seed (`benchmarks/snowball_variants.py`; a cell is within reach if our p50 differs from the published one "
            "by at most 15 % or 0.3). An equals sign: changes nothing there; a dash: was not run. A variant would be "
            "kept if it gained cells over all tables together, more than our own seeds differ by; under uniform "
            "sampling nothing changes.",
            "",
            *markdown_grid(["", *heads, "cells gained"], rows),
            "",
            _noise(cells) + _other_seeds(variants) + _agreement(variants, cells),
            "",
            _conclusion(variants, cells),
            "",
            _worst_cell(variants, cells),
        ]
    )


def _counts(variants: pd.DataFrame) -> dict[str, Counts]:
    """By variant."""
    counts: dict[str, Counts] = {}
    for group, part in variants.groupby(["snowball", *CONFIGURATION], sort=False):
        name, dataset, fraction, model = cast("tuple[str, str, float, str]", group)
        counts.setdefault(name, {})[dataset, fraction, model] = (int(part["is_within"].sum()), len(part))
    return counts


def _nothing(name: str, key: Key) -> str:
    return "=" if name in CITESEER_ONLY and key[0] == "cora" else "-"


def _snowball_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """The snowball cells of the tables, seed by seed: our rule with the package's own samples."""
    published = published_table()[[*KEY, "p50"]].rename(columns={"p50": "published_p50"})
    chosen = _select(cells, sampler="snowball", counting="paper").merge(published, on=list(KEY))
    return chosen.assign(is_within=is_within_reach(chosen["p50"], chosen["published_p50"]))


def _noise(cells: pd.DataFrame) -> str:
    """How far our own seeds differ."""
    within = cells.groupby("seed")["is_within"].sum()
    undecided = int((cells.groupby(CELL)["is_within"].nunique() > 1).sum())
    return (
        f"Seeds alone make a difference. With those of the tables, {within.min()} to {within.max()} of "
        f"{len(cells) // len(within)} snowball cells are within reach, and {undecided} cells with some seeds only."
    )


def _other_seeds(variants: pd.DataFrame) -> str:
    """Variants that were run again, beside their first seed on the same configurations."""
    by_seed = {seed: _counts(part) for seed, part in variants.groupby("seed")}
    names = [name for name in WORDS if any(name in of for seed, of in by_seed.items() if seed != 0)]
    told = []
    for name in names:
        seeds = [of[name] for of in by_seed.values() if name in of]
        shared = [key for key in seeds[0] if all(key in of for of in seeds)]
        totals = [str(sum(of[key][0] for key in shared)) for of in seeds]
        told.append(f"*{name}* {listed(totals)} of {sum(seeds[0][key][1] for key in shared)}")
    return f" Run with several seeds: {'; '.join(told)}." if told else ""


def _agreement(variants: pd.DataFrame, cells: pd.DataFrame) -> str:
    """Cells that agree by the measure of the tables, for variants that were run with as many seeds."""

    def agreeing(table: pd.DataFrame) -> int:
        cell = table.groupby(CELL)
        published = cell["published_p50"].first()
        nearest = published.clip(cell["p50"].min(), cell["p50"].max())
        return int(is_within_reach(nearest, published).sum())

    num_seeds, told = cells["seed"].nunique(), []
    for name in [name for name in WORDS if name != OURS]:
        tried = _select(variants, snowball=name)
        if tried["seed"].nunique() == num_seeds > 1 and len(tried) == len(cells):
            told.append(f"{agreeing(tried)} with *{name}*")
    if not told:
        return ""
    return (
        f" By the measure of the tables, the widened range of {num_seeds} seeds, {agreeing(cells)} snowball cells "
        f"agree with our rule, and {listed(told)}."
    )


def _conclusion(variants: pd.DataFrame, cells: pd.DataFrame) -> str:
    """Which variants do better than our rule, whatever the seeds, and which were not run everywhere."""
    runs = pd.concat({"tables": cells, "benchmark": _select(variants, snowball=OURS)}, names=["source"])
    within = runs.pivot_table(index=CONFIGURATION, columns=["source", "seed"], values="is_within", aggfunc="sum")

    def ours(configurations: Iterable[Key]) -> list[int]:
        """Cells within reach with each seed of our rule; runs that lack a configuration do not count."""
        complete = within.reindex(list(configurations)).dropna(axis="columns")
        return sorted(complete.sum().astype(int))

    better, lucky, behind, partly, not_run = [], [], [], [], []
    gains: dict[str, float] = {}
    by_seed = [_counts(part) for _, part in variants.groupby("seed")]
    for name in [name for name in WORDS if name != OURS]:
        tried = [of[name] for of in by_seed if name in of]
        if not tried:
            not_run.append(f"*{name}*")
            continue
        totals = [sum(within for within, _ in of.values()) for of in tried if len(of) == len(tried[0])]
        against = ours(tried[0])
        told = f"*{name}* ({listed([str(total) for total in totals])}, ours {against[0]} to {against[-1]})"
        missing = [key for key in ALL if key not in tried[0] and _nothing(name, key) == "-"]
        if missing and totals[0] + CELLS_EACH * len(missing) <= max(ours([*tried[0], *missing]), default=0):
            behind.append(f"*{name}*")
        elif missing:
            partly.append(told)
        elif min(totals) <= against[-1]:
            gains[told] = fmean(totals) - fmean(against)
        elif len(totals) > 1:
            better.append(told)
        else:
            lucky.append(told)
    sentences = []
    if better:
        sentences.append(f"More cells within reach with every seed than with any of our rule: {listed(better)}.")
    else:
        closest = f", the closest being {max(gains, key=gains.__getitem__)}" if gains else ""
        sentences.append(
            "No variant that was run everywhere brings more cells within reach, with each of several seeds, than our "
            f"rule with any{closest}: the search ends here, and the settings stay as they are."
        )
    if lucky:
        sentences.append(f"With one seed only, too few to tell: {listed(lucky)}.")
    if behind:
        sentences.append(
            "So far behind that the remaining configurations could not make up for it, and not run there: "
            f"{listed(behind)}."
        )
    if partly:
        sentences.append(f"Not run everywhere, for want of time: {listed(partly)}.")
    if not_run:
        sentences.append(f"Not run at all: {listed(not_run)}.")
    return " ".join(sentences)


def _worst_cell(variants: pd.DataFrame, cells: pd.DataFrame) -> str:
    """The cell that misses most, under each variant and for each seed of the tables."""
    tried = _select(variants, **WORST, seed=0)
    if not len(tried):
        return ""
    values = ", ".join(f"{row['snowball']} {row['p50']:.1f}" for row in tried.to_dict("records"))
    ours = _select(cells, **WORST)["p50"]
    return (
        "The cell that misses most, CiteSeer 50 % snowball GCN none noisy weak BMP-R (published "
        f"{tried['published_p50'].iloc[0]:g}): {values}. The benchmark draws samples of its own: *{OURS}* is the rule "
        f"of the tables, with which their seeds give {ours.min():.1f} to {ours.max():.1f}."
    )


def _select(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    for name, value in values.items():
        table = table[table[name] == value]
    return table
