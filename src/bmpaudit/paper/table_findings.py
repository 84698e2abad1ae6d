"""The paper's findings that a table of all 256 cells can answer, published or ours."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from bmpaudit.paper.effects import marginal_effects
from bmpaudit.paper.experiments import DATASETS, FRACTIONS, SAMPLERS, TITLES
from bmpaudit.paper.finding import BUT_DEFINITION, Finding, by_definition, means_over_seeds

ALMOST_ALL = 0.9

Effects = Mapping[str, "pd.Series[float]"]
"""Marginal effects on ε_R by data set."""


def table_findings(cells: pd.DataFrame, value: str = "p50") -> list[Finding]:
    """All findings of this module.

    Args:
        cells: The columns of `KEY` and `value`; several rows per cell (seeds) are averaged.
        value: The column that stands for ε.
    """
    means = means_over_seeds(cells, [value])
    right = means[means["definition"] == "bmp-r"]
    effects = {name: marginal_effects(right[right["dataset"] == name], value) for name in DATASETS}
    return [
        rate_and_noise_dominate(effects),
        same_direction_except_sampler(effects),
        snowball_hurts_cora_only(effects, right, value),
        *uniform_discriminates_more(right, value),
        *mp_above_bmp_r(means, value),
    ]


def rate_and_noise_dominate(effects: Effects) -> Finding:
    """Figure 2, first conclusion."""
    holds, evidence = True, []
    for name, effect in effects.items():
        largest = effect.abs().sort_values(ascending=False, kind="stable").index.tolist()
        holds &= set(largest[:2]) == {"train_fraction", "release"}
        evidence.append(f"{TITLES[name]}: " + ", ".join(f"{factor} {effect[factor]:+.2f}" for factor in largest))
    return Finding(
        "Sampling rate and noise are the dominant factors (the two largest marginal effects on ε_R, on both data sets)",
        holds,
        "; ".join(evidence),
    )


def same_direction_except_sampler(effects: Effects) -> Finding:
    """Figure 2, second conclusion."""
    first, second = (effects[name] for name in ("cora", "citeseer"))
    opposite = [factor for factor in first.index if np.sign(first[factor]) != np.sign(second[factor])]
    pairs = ", ".join(f"{factor} {first[factor]:+.2f}/{second[factor]:+.2f}" for factor in first.index)
    return Finding(
        "All factors except the sampler act in the same direction on both data sets",
        opposite == ["sampler"],
        f"effects on ε_R, Cora/CiteSeer: {pairs}; opposite: {', '.join(opposite) or 'none'}",
    )


def snowball_hurts_cora_only(effects: Effects, right: pd.DataFrame, value: str) -> Finding:
    """Figure 2, third conclusion."""
    parts = []
    for name in DATASETS:
        for fraction in FRACTIONS:
            part = right[(right["dataset"] == name) & (right["train_fraction"] == fraction)]
            parts.append(f"{TITLES[name]} {fraction:.0%} {marginal_effects(part, value)['sampler']:+.2f}")
    cora, citeseer = (float(effects[name]["sampler"]) for name in ("cora", "citeseer"))
    return Finding(
        "Snowball sampling is less private than uniform sampling on Cora, and slightly more private on CiteSeer (its "
        "effect on ε_R is positive on Cora, negative and smaller on CiteSeer)",
        cora > 0 > citeseer and abs(citeseer) < abs(cora),
        f"effect of snowball on ε_R: Cora {cora:+.2f}, CiteSeer {citeseer:+.2f} ({', '.join(parts)})",
    )


def uniform_discriminates_more(right: pd.DataFrame, value: str) -> list[Finding]:
    """What the paper reads from Table II: two statements."""
    table = right[(right["dataset"] == "cora") & (right["train_fraction"] == 0.25)]
    findings = []
    for factor, title in (("query", "the availability of edges"), ("model", "the architecture")):
        gaps = {sampler: _gap(table[table["sampler"] == sampler], factor, value) for sampler in SAMPLERS}
        findings.append(
            Finding(
                f"On Cora at 25 %, {title} matters more under uniform than under snowball sampling (mean |difference| "
                "in ε_R between cells that differ in nothing else)",
                gaps["uniform"] > gaps["snowball"],
                ", ".join(f"{sampler} {gap:.2f}" for sampler, gap in gaps.items()),
            )
        )
    return findings


def mp_above_bmp_r(means: pd.DataFrame, value: str) -> list[Finding]:
    """BMP-R against MP: two statements."""
    wide = by_definition(means, value)
    is_exception = (wide["sampler"] == "uniform") & (wide["train_fraction"] == 0.5)
    is_below = wide["bmp-r"] < wide["mp"]
    elsewhere, there = float(is_below[~is_exception].mean()), float(is_below[is_exception].mean())
    gap = wide.assign(gap=wide["mp"] - wide["bmp-r"]).groupby(["sampler", "train_fraction"])["gap"].mean()
    gaps = ", ".join(
        f"{sampler} {fraction:.0%} {gap[sampler, fraction]:+.2f}" for sampler in SAMPLERS for fraction in FRACTIONS
    )
    return [
        Finding(
            f"BMP-R is below MP almost everywhere (≥ {ALMOST_ALL:.0%} of cells) except under uniform sampling at 50 %",
            elsewhere >= ALMOST_ALL,
            f"BMP-R is below MP in {elsewhere:.0%} of the other cells; mean MP - BMP-R: {gaps}",
        ),
        Finding(
            f"Under uniform sampling at 50 % BMP-R is not below MP (in fewer than {ALMOST_ALL:.0%} of cells)",
            there < ALMOST_ALL,
            f"BMP-R is below MP in {there:.0%} of the cells under uniform sampling at 50 %",
        ),
    ]


def _gap(table: pd.DataFrame, factor: str, value: str) -> float:
    others = [name for name in BUT_DEFINITION if name != factor]
    wide = table.pivot_table(index=others, columns=factor, values=value)
    return float((wide.iloc[:, 0] - wide.iloc[:, 1]).abs().mean())
