"""A statement of the paper that a table of results makes true or false."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reproduction.experiments import (
    CELLS,
    COUNTINGS,
    DATASETS,
    FRACTIONS,
    KEY,
    SAMPLERS,
    TITLES,
    cell_label,
    marginal_effects,
)

BUT_DEFINITION = [name for name in KEY if name != "definition"]


@dataclass(frozen=True)
class Finding:
    """A statement and whether it holds.

    Attributes:
        statement: What is claimed, with what counts as true.
        holds: Whether it holds.
        evidence: The numbers behind the answer.
    """

    statement: str
    holds: bool
    evidence: str


def means_over_seeds(cells: pd.DataFrame, values: list[str]) -> pd.DataFrame:
    """A row per cell, in the order of `cells`, with the means of some columns."""
    return cells.groupby(list(KEY), sort=False)[values].mean().reset_index()


def by_definition(cells: pd.DataFrame, value: str) -> pd.DataFrame:
    """A row per cell without its definition, and a column of values per definition."""
    return cells.pivot_table(index=BUT_DEFINITION, columns="definition", values=value).reset_index()


# The paper's findings that a table of all 256 cells can answer, published or ours.


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


# Every finding that our results can answer: those of the tables, and those about nodes, joint posteriors, accuracy.


SAME_ACCURACY = 0.01  # attacks whose shares of right decisions differ by no more than this have "the same accuracy"
MUCH_MORE = 2.0
SURELY = 0.95
NUM_SNOWBALL_CELLS = len(CELLS) // len(SAMPLERS)


def all_findings(
    cells: pd.DataFrame, nodes: pd.DataFrame, joint: pd.DataFrame, unflagged: pd.DataFrame
) -> list[Finding]:
    """Every finding that our results can answer; those whose results are missing are left out."""
    paper = cells[cells["counting"] == "paper"]
    is_complete = len(paper.drop_duplicates(list(KEY))) >= len(CELLS)
    parts: tuple[tuple[bool, Callable[[], list[Finding]]], ...] = (
        (is_complete, lambda: table_findings(paper, "mean")),
        (is_complete and "ours" in set(cells["counting"]), lambda: [mp_from_nodes_never_attacked(cells)]),
        (len(_snowball(unflagged)) >= NUM_SNOWBALL_CELLS, lambda: [mp_from_constant_decisions(unflagged)]),
        ("snowball" in _figure_three(nodes), lambda: high_epsilon_small_prior(nodes)),
        (len(joint) > 0 and set(joint["sampler"]) == set(SAMPLERS), lambda: snowball_raises_both(joint)),
        (len(paper) > 0, lambda: [accuracy_hides(paper)]),
    )
    return [finding for is_there, find in parts if is_there for finding in find()]


def mp_from_nodes_never_attacked(cells: pd.DataFrame) -> Finding:
    """How much of MP - BMP-R under snowball sampling comes from nodes on which no attack was possible.

    Args:
        cells: `cell_records`, counted both ways.
    """
    snowball = cells[cells["sampler"] == "snowball"]
    gaps = {counting: _mean_gap(snowball[snowball["counting"] == counting], "p50") for counting in COUNTINGS}
    paper = snowball[snowball["counting"] == "paper"]
    num_never = paper.groupby("dataset")["num_not_auditable"].mean()
    share = 1 - gaps["ours"] / gaps["paper"]
    numbers = ", ".join(f"{TITLES[str(name)]} {number:.0f}" for name, number in num_never.items())
    return Finding(
        "Under snowball sampling most of MP - BMP-R comes from nodes that could not be attacked at all (leaving them "
        "out removes more than half of it)",
        share > 0.5,
        f"mean MP - BMP-R {gaps['paper']:.2f} with them, {gaps['ours']:.2f} without: leaving them out removes "
        f"{share:.0%}; average number of such nodes: {numbers}",
    )


def mp_from_constant_decisions(unflagged: pd.DataFrame) -> Finding:
    """The same for all nodes whose decision never varies.

    Args:
        unflagged: `unflagged_records`.
    """
    snowball = _snowball(unflagged)
    gaps = {name: _mean_gap(snowball, f"p50_{name}") for name in ("paper", "ours", "unflagged")}
    share = 1 - gaps["unflagged"] / gaps["paper"]
    return Finding(
        "Under snowball sampling most of MP - BMP-R comes from nodes whose decision never varies, including those that "
        "could not be attacked (leaving them out removes more than half of it)",
        share > 0.5,
        f"mean MP - BMP-R {gaps['paper']:.2f} with all nodes, {gaps['ours']:.2f} without those never attacked, "
        f"{gaps['unflagged']:.2f} without any whose decision never varies: leaving them out removes {share:.0%}",
    )


def high_epsilon_small_prior(nodes: pd.DataFrame) -> list[Finding]:
    """Figure 3, with and without nodes whose decision never varies: two statements.

    Args:
        nodes: `node_records`; only the rows of Figure 3 (Cora, 25 %, GCN, counted the paper's way) are used.
    """
    shown = _figure_three(nodes)
    snowball = shown["snowball"]
    findings = []
    for name, title in (("all", "all nodes"), ("unflagged", "without nodes whose decision never varies")):
        correlation = float(snowball[f"{name}_spearman"])
        top, usual = float(snowball[f"{name}_top_median_prior"]), float(snowball[f"{name}_median_prior"])
        also = f"; uniform: {shown['uniform'][f'{name}_spearman']:+.2f}" if "uniform" in shown else ""
        findings.append(
            Finding(
                f"Nodes with a high implied ε have small priors ({title}: Spearman correlation below 0, and the median "
                "prior of the top 1 % below that of all)",
                correlation < 0 and top < usual,
                f"Cora 25 % GCN clean full strong, snowball, {int(snowball[f'{name}_num']):,} nodes: correlation "
                f"{correlation:+.2f}, median prior {top:.3f} of the top 1 % against {usual:.3f}{also}",
            )
        )
    return findings


def snowball_raises_both(joint: pd.DataFrame) -> list[Finding]:
    """Figure 4: two statements.

    Args:
        joint: `joint_records`; the paper's way of counting decides, ours is evidence beside it.
    """
    sides = ["epsilon_left_p50", "epsilon_right_p50"]
    evidence = []
    raises, differs = False, False
    for counting, title in (("paper", "counted the paper’s way"), ("ours", "ours")):
        uniform, snowball = (
            joint[(joint["counting"] == counting) & (joint["sampler"] == sampler)]
            .groupby(["query", "rule"])[[*sides, "left_exceeds_right"]]
            .mean()
            for sampler in ("uniform", "snowball")
        )
        if not len(uniform) or not len(snowball):
            continue
        exceeds = snowball["left_exceeds_right"]
        if counting == "paper":
            raises = bool((snowball[sides] > uniform[sides]).all(axis=None))
            differs = bool((np.maximum(exceeds, 1 - exceeds) > SURELY).all())
        means = ", ".join(
            f"{sampler} {'/'.join(f'{frame[side].mean():.1f}' for side in sides)}"
            for sampler, frame in (("uniform", uniform), ("snowball", snowball))
        )
        evidence.append(
            f"{title}: mean ε_L/ε_R {means}, Pr(ε_L > ε_R) under snowball {exceeds.min():.2f} to {exceeds.max():.2f}"
        )
    return [
        Finding(
            "Snowball sampling raises both ε_L and ε_R (Cora 50 %, GCN, clean; all four attacks)",
            raises,
            "; ".join(evidence),
        ),
        Finding(
            f"Under snowball sampling ε_L and ε_R differ (one exceeds the other with probability above {SURELY:g}, in "
            "all four attacks)",
            differs,
            "; ".join(evidence),
        ),
    ]


def accuracy_hides(cells: pd.DataFrame) -> Finding:
    """What the share of right decisions does not show.

    Args:
        cells: `cell_records`, counted the paper's way.
    """
    right = means_over_seeds(cells[cells["definition"] == "bmp-r"], ["p50", "accuracy"])
    accuracy, epsilon = right["accuracy"].to_numpy(), right["p50"].to_numpy()
    is_same = np.abs(accuracy[:, None] - accuracy[None, :]) <= SAME_ACCURACY
    difference = np.where(is_same, np.abs(epsilon[:, None] - epsilon[None, :]), -1.0)
    first, second = np.unravel_index(int(difference.argmax()), difference.shape)
    pairs = np.triu(is_same, 1)
    much = float((difference[pairs] > MUCH_MORE).mean()) if pairs.any() else 0.0
    low, high = sorted((int(first), int(second)), key=lambda row: epsilon[row])
    return Finding(
        f"Attacks of the same accuracy (within {SAME_ACCURACY:.0%}) can differ in ε_R by more than {MUCH_MORE:g}: BMP "
        "shows what global accuracy hides",
        bool(difference.max() > MUCH_MORE),
        f"accuracy {accuracy[low]:.1%} with ε_R {epsilon[low]:.1f} ({cell_label(right.iloc[low].to_dict())}), and "
        f"{accuracy[high]:.1%} with {epsilon[high]:.1f} ({cell_label(right.iloc[high].to_dict())}); {much:.0%} of the "
        f"pairs of the same accuracy differ by more than {MUCH_MORE:g}",
    )


def _snowball(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["sampler"] == "snowball"] if len(table) else table


def _mean_gap(cells: pd.DataFrame, value: str) -> float:
    """Mean of MP - BMP-R over cells that differ in nothing else."""
    wide = by_definition(means_over_seeds(cells, [value]), value)
    return float((wide["mp"] - wide["bmp-r"]).mean())


def _figure_three(nodes: pd.DataFrame) -> dict[str, dict[str, float]]:
    """The rows of Figure 3 by sampler."""
    return {
        str(row["sampler"]): row  # type: ignore[misc]
        for row in nodes.to_dict("records")
        if (row["dataset"], row["train_fraction"], row["model"], row["counting"]) == ("cora", 0.25, "gcn", "paper")
    }
