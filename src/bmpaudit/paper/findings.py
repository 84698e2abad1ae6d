"""What the paper says it found, as statements that a table of results makes true or false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bmpaudit.paper.effects import marginal_effects
from bmpaudit.paper.experiments import KEY

SAME_ACCURACY = 0.01  # attacks whose shares of right decisions differ by at most this are "as good as each other"
MUCH_MORE = 2.0
ALMOST_ALL = 0.9
SURELY = 0.95
SNOWBALL_CELLS = 128
BUT_MEASURE = [name for name in KEY if name != "measure"]


@dataclass(frozen=True)
class Finding:
    """A statement and what became of it.

    Attributes:
        statement: What is claimed, with what counts as true.
        holds: Whether it does.
        evidence: The numbers behind the answer.
    """

    statement: str
    holds: bool
    evidence: str


def table_findings(cells: pd.DataFrame, value: str = "p50") -> list[Finding]:
    """Findings that a table of all 256 cells answers, published or ours.

    Args:
        cells: `KEY` and `value`, several rows a cell (seeds) allowed; means are taken over all.
        value: The column that stands for ε.
    """
    means = _means(cells, [value])
    right = means[means["measure"] == "bmp-r"]
    effects = {name: marginal_effects(right[right["dataset"] == name], value) for name in ("cora", "citeseer")}
    return [
        rate_and_noise_dominate(effects),
        same_direction_but_for_sampling(effects),
        snowball_hurts_cora_only(effects, right, value),
        *random_discriminates_more(right, value),
        *mp_above_bmp_r(means, value),
    ]


def rate_and_noise_dominate(effects: dict[str, pd.Series[float]]) -> Finding:
    """Figure 2, first conclusion."""
    holds, told = True, []
    for name, effect in effects.items():
        largest = effect.abs().sort_values(ascending=False, kind="stable").index.tolist()
        holds &= set(largest[:2]) == {"train_fraction", "output"}
        told.append(f"{_title(name)}: " + ", ".join(f"{factor} {effect[factor]:+.2f}" for factor in largest))
    return Finding(
        "Sampling rate and noise are the dominant factors (the two largest marginal effects on ε_R, on both data sets)",
        holds,
        "; ".join(told),
    )


def same_direction_but_for_sampling(effects: dict[str, pd.Series[float]]) -> Finding:
    """Figure 2, second conclusion."""
    first, second = (effects[name] for name in ("cora", "citeseer"))
    opposite = [factor for factor in first.index if np.sign(first[factor]) != np.sign(second[factor])]
    told = ", ".join(f"{factor} {first[factor]:+.2f}/{second[factor]:+.2f}" for factor in first.index)
    return Finding(
        "All factors act in the same direction on both data sets except the sampling type",
        opposite == ["sampling"],
        f"effects on ε_R, Cora/CiteSeer: {told}; opposite: {', '.join(opposite) or 'none'}",
    )


def snowball_hurts_cora_only(effects: dict[str, pd.Series[float]], right: pd.DataFrame, value: str) -> Finding:
    """Figure 2, third conclusion."""
    parts = []
    for name in ("cora", "citeseer"):
        for fraction in (0.25, 0.5):
            part = right[(right["dataset"] == name) & (right["train_fraction"] == fraction)]
            parts.append(f"{_title(name)} {fraction:.0%} {marginal_effects(part, value)['sampling']:+.2f}")
    cora, citeseer = (float(effects[name]["sampling"]) for name in ("cora", "citeseer"))
    return Finding(
        "Snowball sampling is less private than random on Cora, and slightly more private on CiteSeer (its effect on "
        "ε_R is positive on Cora, negative and smaller on CiteSeer)",
        cora > 0 > citeseer and abs(citeseer) < abs(cora),
        f"effect of snowball on ε_R: Cora {cora:+.2f}, CiteSeer {citeseer:+.2f} ({', '.join(parts)})",
    )


def random_discriminates_more(right: pd.DataFrame, value: str) -> list[Finding]:
    """What the paper sees in Table II: two statements."""
    table = right[(right["dataset"] == "cora") & (right["train_fraction"] == 0.25)]
    findings = []
    for factor, told in (("edges", "edge availability"), ("model", "the architecture")):
        gaps = {
            sampling: _gap(table[table["sampling"] == sampling], factor, value) for sampling in ("random", "snowball")
        }
        findings.append(
            Finding(
                f"On Cora at 25 %, {told} matters more under random than under snowball sampling (mean |difference| of "
                "ε_R between cells that differ in nothing else)",
                gaps["random"] > gaps["snowball"],
                f"random {gaps['random']:.2f}, snowball {gaps['snowball']:.2f}",
            )
        )
    return findings


def mp_above_bmp_r(means: pd.DataFrame, value: str) -> list[Finding]:
    """BMP-R against MP: two statements."""
    wide = means.pivot_table(index=BUT_MEASURE, columns="measure", values=value).reset_index()
    is_exception = (wide["sampling"] == "random") & (wide["train_fraction"] == 0.5)
    below = wide["bmp-r"] < wide["mp"]
    elsewhere, there = float(below[~is_exception].mean()), float(below[is_exception].mean())
    gap = wide["mp"] - wide["bmp-r"]
    parts = {
        f"{sampling} {fraction:.0%}": gap[(wide["sampling"] == sampling) & (wide["train_fraction"] == fraction)].mean()
        for sampling in ("random", "snowball")
        for fraction in (0.25, 0.5)
    }
    told = ", ".join(f"{name} {value:+.2f}" for name, value in parts.items())
    return [
        Finding(
            f"BMP-R lies below MP almost everywhere (≥ {ALMOST_ALL:.0%} of cells) but under random sampling at 50 %",
            elsewhere >= ALMOST_ALL,
            f"BMP-R is below MP in {elsewhere:.0%} of the cells elsewhere; mean MP - BMP-R: {told}",
        ),
        Finding(
            f"Under random sampling at 50 % BMP-R does not lie below MP (in fewer than {ALMOST_ALL:.0%} of cells)",
            there < ALMOST_ALL,
            f"BMP-R is below MP in {there:.0%} of the cells at random 50 %",
        ),
    ]


def mp_from_nodes_never_attacked(cells: pd.DataFrame) -> Finding:
    """How much of MP - BMP-R under snowball comes from nodes on which no attack was possible.

    Args:
        cells: With the column `counting`, both ways.
    """
    snowball = cells[cells["sampling"] == "snowball"]
    gaps = {way: _mean_gap(snowball[snowball["counting"] == way], "p50") for way in ("paper", "ours")}
    paper = snowball[snowball["counting"] == "paper"]
    never = paper.groupby("dataset")["num_not_auditable"].mean()
    share = 1 - gaps["ours"] / gaps["paper"]
    counted = ", ".join(f"{_title(str(name))} {number:.0f}" for name, number in never.items())
    return Finding(
        "Under snowball sampling most of MP - BMP-R comes from nodes that could not be attacked at all (more than half "
        "of it goes when they are left out)",
        share > 0.5,
        f"mean MP - BMP-R {gaps['paper']:.2f} with them, {gaps['ours']:.2f} without: {share:.0%} of it goes; such "
        f"nodes, on average: {counted}",
    )


def mp_from_constant_decisions(unflagged: pd.DataFrame) -> Finding:
    """The same for all nodes whose decision never varies.

    Args:
        unflagged: `unflagged_records`.
    """
    gaps = {way: _mean_gap(unflagged, f"p50_{way}") for way in ("paper", "ours", "unflagged")}
    share = 1 - gaps["unflagged"] / gaps["paper"]
    return Finding(
        "Under snowball sampling most of MP - BMP-R comes from nodes whose decision never varies, those that could not "
        "be attacked among them (more than half of it goes when they are left out)",
        share > 0.5,
        f"mean MP - BMP-R {gaps['paper']:.2f} with all nodes, {gaps['ours']:.2f} without those never attacked, "
        f"{gaps['unflagged']:.2f} without any whose decision never varies: {share:.0%} of it goes",
    )


def _mean_gap(cells: pd.DataFrame, value: str) -> float:
    """Mean of MP - BMP-R over cells that differ in nothing else."""
    wide = _means(cells, [value]).pivot_table(index=BUT_MEASURE, columns="measure", values=value)
    return float((wide["mp"] - wide["bmp-r"]).mean())


def high_epsilon_small_prior(nodes: pd.DataFrame) -> list[Finding]:
    """Figure 3, with and without nodes whose decision never varies: two statements.

    Args:
        nodes: `node_records`, of which the rows of Figure 3 (Cora, 25 %, GCN, snowball, the paper's counting) count.
    """
    shown = {
        str(row["sampling"]): row
        for row in nodes.to_dict("records")
        if (row["dataset"], row["train_fraction"], row["model"], row["counting"]) == ("cora", 0.25, "gcn", "paper")
    }
    snowball = shown["snowball"]
    findings = []
    for name, told in (("all", "all nodes"), ("unflagged", "without nodes whose decision never varies")):
        rank = float(snowball[f"{name}_spearman"])
        top, usual = float(snowball[f"{name}_top_median_prior"]), float(snowball[f"{name}_median_prior"])
        also = f"; random: {shown['random'][f'{name}_spearman']:+.2f}" if "random" in shown else ""
        findings.append(
            Finding(
                f"Nodes of high implied ε have small priors ({told}: Spearman correlation below 0, and the median "
                "prior of the top 1 % below that of all)",
                rank < 0 and top < usual,
                f"Cora 25 % GCN clean full strong, snowball, {int(snowball[f'{name}_num']):,} nodes: correlation "
                f"{rank:+.2f}, median prior {top:.3f} of the top 1 % against {usual:.3f}{also}",
            )
        )
    return findings


def snowball_raises_both(joint: pd.DataFrame) -> list[Finding]:
    """Figure 4: two statements.

    Args:
        joint: `joint_records`, of which the paper's counting decides; ours is told beside.
    """
    index = ["edges", "decision"]

    def medians(counting: str, sampling: str) -> pd.DataFrame:
        chosen = joint[(joint["counting"] == counting) & (joint["sampling"] == sampling)]
        return chosen.groupby(index)[["epsilon_left_p50", "epsilon_right_p50", "left_exceeds_right"]].mean()

    told = []
    holds: dict[str, bool] = {}
    differs: dict[str, bool] = {}
    for counting in ("paper", "ours"):
        random, snowball = medians(counting, "random"), medians(counting, "snowball")
        if not len(random) or not len(snowball):
            continue
        rise = snowball - random
        holds[counting] = bool((rise[["epsilon_left_p50", "epsilon_right_p50"]] > 0).all(axis=None))
        sure = np.maximum(snowball["left_exceeds_right"], 1 - snowball["left_exceeds_right"])
        differs[counting] = bool((sure > SURELY).all())
        mean = {name: frame.mean() for name, frame in (("random", random), ("snowball", snowball))}
        told.append(
            f"{'counted the paper’s way' if counting == 'paper' else 'ours'}: mean ε_L/ε_R random "
            f"{mean['random'].iloc[0]:.1f}/{mean['random'].iloc[1]:.1f}, snowball "
            f"{mean['snowball'].iloc[0]:.1f}/{mean['snowball'].iloc[1]:.1f}, Pr(ε_L > ε_R) under snowball "
            f"{snowball['left_exceeds_right'].min():.2f} to {snowball['left_exceeds_right'].max():.2f}"
        )
    evidence = "; ".join(told)
    return [
        Finding(
            "Snowball sampling raises both ε_L and ε_R (Cora 50 %, GCN, clean; all four attacks)",
            holds["paper"],
            evidence,
        ),
        Finding(
            f"Under snowball sampling ε_L and ε_R differ (one exceeds the other with probability above {SURELY:g}, in "
            "all four attacks)",
            differs["paper"],
            evidence,
        ),
    ]


def accuracy_hides(cells: pd.DataFrame) -> Finding:
    """What the share of right decisions does not show.

    Args:
        cells: With `accuracy`, the paper's counting.
    """
    right = _means(cells[cells["measure"] == "bmp-r"], ["p50", "accuracy"])
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
        f"accuracy {accuracy[low]:.1%} with ε_R {epsilon[low]:.1f} ({_told(right.iloc[low])}), and "
        f"{accuracy[high]:.1%} with {epsilon[high]:.1f} ({_told(right.iloc[high])}); {much:.0%} of the pairs of the "
        f"same accuracy differ by more than {MUCH_MORE:g}",
    )


def all_findings(
    cells: pd.DataFrame, nodes: pd.DataFrame, joint: pd.DataFrame, unflagged: pd.DataFrame
) -> list[Finding]:
    """Every finding that our results can answer; those whose part is not there yet are left out."""
    paper = cells[cells["counting"] == "paper"]
    made: list[Finding] = []
    parts: tuple[tuple[bool, Callable[[], list[Finding]]], ...] = (
        (_is_complete(paper), lambda: table_findings(paper, "mean")),
        (_is_complete(paper) and "ours" in set(cells["counting"]), lambda: [mp_from_nodes_never_attacked(cells)]),
        (len(unflagged) >= SNOWBALL_CELLS, lambda: [mp_from_constant_decisions(unflagged)]),
        (_has_figure_three(nodes), lambda: high_epsilon_small_prior(nodes)),
        (len(joint) > 0 and set(joint["sampling"]) == {"random", "snowball"}, lambda: snowball_raises_both(joint)),
        (len(paper) > 0, lambda: [accuracy_hides(paper)]),
    )
    for is_there, make in parts:
        if is_there:
            made += make()
    return made


def _means(cells: pd.DataFrame, values: list[str]) -> pd.DataFrame:
    """Over seeds."""
    return cells.groupby(list(KEY))[values].mean().reset_index()


def _is_complete(cells: pd.DataFrame) -> bool:
    return len(cells.drop_duplicates(list(KEY))) >= 256


def _has_figure_three(nodes: pd.DataFrame) -> bool:
    return len(nodes) > 0 and bool(
        ((nodes["dataset"] == "cora") & (nodes["train_fraction"] == 0.25) & (nodes["sampling"] == "snowball")).any()
    )


def _gap(table: pd.DataFrame, factor: str, value: str) -> float:
    others = [name for name in BUT_MEASURE if name != factor]
    wide = table.pivot_table(index=others, columns=factor, values=value)
    return float((wide.iloc[:, 0] - wide.iloc[:, 1]).abs().mean())


def _title(name: str) -> str:
    return {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}.get(name, name)


def _told(row: pd.Series[float]) -> str:
    return (
        f"{_title(str(row['dataset']))} {row['train_fraction']:.0%} {row['sampling']} {str(row['model']).upper()} "
        f"{row['edges']} {row['output']} {row['decision']}"
    )
