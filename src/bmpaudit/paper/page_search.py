"""The part of the page about other ways of snowball sampling that were tried."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from bmpaudit.paper.experiments import CONFIGURATIONS, TITLES
from bmpaudit.paper.tables import markdown_grid

OURS = "stop"
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
    "new neighbours": "a node draws up to 5 of its neighbours outside of the sample",
    "any order": "the next node is drawn from the queue at random",
    "resume": "when the queue runs dry, every node with a neighbour outside joins it again",
    "connected seed": "a node without neighbours is never the seed",
    "without isolated nodes": "nodes without neighbours are removed from the graph",
    "without featureless nodes": "nodes without features are removed from the graph",
    "largest component": "all but the largest component is removed from the graph",
    "walked edges": "only edges that the sampling walked along are trained on",
}


def search_part(tables: Mapping[str, pd.DataFrame]) -> str:
    """How many cells each variant brings within reach, configuration by configuration."""
    if "variants" not in tables:
        return ""
    variants = tables["variants"]
    keys = ["dataset", "train_fraction", "model"]
    columns = list(variants[keys].drop_duplicates().itertuples(index=False, name=None))
    within = {
        (str(name), *key): (int(part["is_within"].sum()), len(part))
        for name, of in variants.groupby("snowball", sort=False)
        for key, part in of.groupby(keys, sort=False)
    }
    rows = []
    for name in variants["snowball"].unique():
        counts = [within.get((name, *key)) for key in columns]
        gained = sum(count[0] - within[OURS, *key][0] for count, key in zip(counts, columns, strict=True) if count)
        shown = ["-" if count is None else f"{count[0]} of {count[1]}" for count in counts]
        rows.append([WORDS[name], *shown, "" if name == OURS else f"{gained:+d}"])
    heads = [f"{TITLES[dataset]} {fraction:.0%} {model.upper()}" for dataset, fraction, model in columns]
    return "\n".join(
        [
            "Other ways of snowball sampling were tried on the snowball cells of the configurations below, with one "
            "seed (`benchmarks/snowball_variants.py`; a cell is within reach if our p50 differs from the published one "
            "by at most 15 % or 0.3). A dash: changes nothing there, or was not run. A variant would be kept if "
            "it gained cells over all tables together.",
            "",
            *markdown_grid(["", *heads, "cells gained"], rows),
            "",
            *_where_it_ended(variants, len(columns)),
            _worst_cell(variants, tables["cells"]),
        ]
    )


def _where_it_ended(variants: pd.DataFrame, num_configurations: int) -> list[str]:
    """What was not run; nothing if all was."""
    of_all = sum(each.sampler == "snowball" for each in CONFIGURATIONS)
    not_run = [words for name, words in WORDS.items() if name not in set(variants["snowball"])]
    if num_configurations == of_all and not not_run:
        return []
    listed = f" Not run at all: {'; '.join(not_run)}." if not_run else ""
    return [
        f"The search ended after {num_configurations} of {of_all} snowball configurations, too few to adopt a variant: "
        f"the settings stay as they are.{listed}",
        "",
    ]


def _worst_cell(variants: pd.DataFrame, cells: pd.DataFrame) -> str:
    """The cell that misses most, under each variant and for each seed of the tables."""
    tried = _select(variants, **WORST)
    if not len(tried):
        return ""
    values = ", ".join(f"{row['snowball']} {row['p50']:.1f}" for row in tried.to_dict("records"))
    ours = _select(cells, **WORST, sampler="snowball", counting="paper")["p50"]
    return (
        "The cell that misses most, CiteSeer 50 % snowball GCN none noisy weak BMP-R (published "
        f"{tried['published_p50'].iloc[0]:g}): {values}. The benchmark draws samples of its own: *{OURS}* is the rule "
        f"of the tables, with which their seeds give {ours.min():.1f} to {ours.max():.1f}."
    )


def _select(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    for name, value in values.items():
        table = table[table[name] == value]
    return table
