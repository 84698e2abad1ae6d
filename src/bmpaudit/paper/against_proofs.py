"""Published and estimated intervals against what is proven, and what they say about exposure."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bmpaudit.arrays import Floats
from bmpaudit.paper.cell_results import rank_correlation
from bmpaudit.paper.effects import FACTORS
from bmpaudit.paper.experiments import DEFINITIONS, KEY, RULES
from bmpaudit.paper.published import published_table

PARAMETERS = {"bmp-r": "epsilon_right", "mp": "mp"}
PROVERS = {"same": "its own query and attack", "all": "all queries, Student"}
"""Who proves: the adversary of the cell itself, or the strongest one against the same release."""
INTERVALS = {"published": "published", "paper": "ours, counted the paper's way", "ours": "ours, counted our way"}
CONFIGURATION = [name for name in KEY if name not in ("query", "rule", "definition")]
"""The columns that name what was proven, but for the adversary."""
AT = 0.99


def against_proofs(cells: pd.DataFrame, unflagged: pd.DataFrame, proofs: pd.DataFrame) -> pd.DataFrame:
    """A row per cell: the upper ends of its intervals beside what is proven.

    Proven values are medians over seeds, the lower one of an even number: with two or three independent seeds, it
    exceeds the truth only if two bounds do, with a probability of at most 0.8 %, where a single bound has 5 %.

    Args:
        cells: `cell_records`.
        unflagged: `unflagged_records`, of the first seed.
        proofs: `proof_records`.

    Returns:
        The columns of `KEY`; `published_p5`, `published_p50`, `published_p95`, and the same of `paper` and `ours`
        (medians over seeds); `proven_same` and `proven_all`, -∞ where nothing is proven; `below_published_same` and so
        on: whether the end lies below what is proven; `p50_unflagged`, and `is_driven`: whether decisions that never
        vary drive the cell, that is, without them its p50 falls below what p5 was with them.
    """
    table = published_table().rename(columns={name: f"published_{name}" for name in ("p5", "p50", "p95")})
    for counting in ("paper", "ours"):
        own = cells[cells["counting"] == counting].groupby(list(KEY))[["p5", "p50", "p95"]].median().reset_index()
        table = table.merge(own.rename(columns={name: f"{counting}_{name}" for name in ("p5", "p50", "p95")}))
    medians = _proven_medians(proofs)
    for prover in PROVERS:
        adversary = table["query"] if prover == "same" else pd.Series("all", index=table.index)
        keyed = table[[*CONFIGURATION, "definition"]].assign(adversary=adversary).merge(medians, how="left")
        table[f"proven_{prover}"] = keyed["proven"].fillna(-np.inf).to_numpy()
    ends = {
        "published": highest_meant(table["published_p95"].to_numpy(dtype=np.float64)),
        "paper": table["paper_p95"].to_numpy(dtype=np.float64),
        "ours": table["ours_p95"].to_numpy(dtype=np.float64),
    }
    for name, end in ends.items():
        for prover in PROVERS:
            table[f"below_{name}_{prover}"] = end < table[f"proven_{prover}"]
    without = unflagged[unflagged["seed"] == 0][[*KEY, "p50_unflagged"]]
    first = cells[(cells["counting"] == "paper") & (cells["seed"] == 0)][[*KEY, "p5"]]
    table = table.merge(without, how="left").merge(first, how="left")
    return table.assign(is_driven=table["p50_unflagged"].isna() | (table["p50_unflagged"] < table["p5"])).drop(
        columns="p5"
    )


def highest_meant(printed: Floats) -> Floats:
    """The largest number that is printed so with two digits.

    >>> highest_meant(np.array([0.86, 2.4, 11.0])).round(3).tolist()
    [0.865, 2.45, 11.5]
    """
    half = np.where(printed < 1, 0.005, np.where(printed < 10, 0.05, 0.5))
    result: Floats = printed + half
    return result


def directions(cells: pd.DataFrame, exposures: pd.DataFrame) -> pd.DataFrame:
    """Do estimates and exposure rise and fall together?

    For each factor, pairs of cells that differ in nothing else are compared: does p50, counted the paper's way, go the
    way of the share of members that the cell's own adversary names at 99 %?

    Returns:
        A row per factor, definition and rule: `num_pairs`, `num_agreeing`; and, with factor `all`, the number of
        cells as `num_pairs` and the rank correlation over all of them as `correlation`.
    """
    named = exposures[np.isclose(exposures["precision"], AT)].assign(
        share=lambda table: table["correct_mean"] / table["total"]
    )
    shares = named.groupby([*CONFIGURATION, "adversary"])["share"].mean().reset_index()
    middle = cells[cells["counting"] == "paper"].groupby(list(KEY))["p50"].mean().reset_index()
    both = middle.merge(shares.rename(columns={"adversary": "query"}))
    rows = []
    for definition in DEFINITIONS:
        for rule in RULES:
            part = both[(both["definition"] == definition) & (both["rule"] == rule)]
            for factor in (name for name in FACTORS if name != "rule"):
                others = [name for name in (*CONFIGURATION, "query") if name != factor]
                sides = [part[part[factor] == level] for level in FACTORS[factor]]
                pairs = sides[0].merge(sides[1], on=others, suffixes=("_first", "_second"))
                moves = [np.sign(pairs[f"{name}_second"] - pairs[f"{name}_first"]) for name in ("p50", "share")]
                agreeing = int((moves[0] == moves[1]).sum())
                rows.append([factor, definition, rule, len(pairs), agreeing, np.nan])
            correlation = rank_correlation(*(part[name].to_numpy(dtype=np.float64) for name in ("p50", "share")))
            rows.append(["all", definition, rule, len(part), np.nan, correlation])
    return pd.DataFrame(rows, columns=["factor", "definition", "rule", "num_pairs", "num_agreeing", "correlation"])


def _proven_medians(proofs: pd.DataFrame) -> pd.DataFrame:
    parts = []
    for definition, parameter in PARAMETERS.items():
        values = proofs.assign(proven=proofs[f"{parameter}_proven"].fillna(-np.inf), definition=definition)
        grouped = values.groupby([*CONFIGURATION, "definition", "adversary"])["proven"]
        parts.append(grouped.quantile(0.5, interpolation="lower").reset_index())
    return pd.concat(parts, ignore_index=True)
