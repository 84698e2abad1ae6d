"""The paper's figures and those of our studies, from tables of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bmpaudit.paper.effects import FACTORS
from bmpaudit.paper.experiments import KEY
from bmpaudit.paper.page_proofs import EXPOSURE_FIGURE, GROWTH_FIGURE, PROVEN_FIGURE
from bmpaudit.paper.proof_figures import draw_exposure_curves, draw_growth, draw_proven
from bmpaudit.privacy import Region

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REGIONS = {
    "R_1(0.5, 0.5)": Region(1.0, 0.5, 0.5),
    "R_4(0.5, 2)": Region(4.0, 0.5, 2.0),
    "R_1/4(2, ∞)": Region(0.25, 2.0, np.inf),
    "R_4(∞, 2)": Region(4.0, np.inf, 2.0),
}
"""Figure 1."""


def draw_regions() -> Figure:
    """Figure 1: the region of Theorem 6 for four choices."""
    from bmpaudit.report import figures

    return figures.regions(REGIONS)


def draw_marginal_effects(cells: pd.DataFrame) -> Figure:
    """Figure 2: marginal effects on the posterior mean of ε_R (BMP-R, counted the paper's way, means over seeds)."""
    from bmpaudit.report import figures

    right = cells[(cells["definition"] == "bmp-r") & (cells["counting"] == "paper")]
    means = right.groupby(list(KEY))["mean"].mean().reset_index(name="epsilon_right")
    means = means.assign(dataset=pd.Categorical(means["dataset"], ["cora", "citeseer"]))
    means = means.assign(train_fraction=means["train_fraction"].map({0.25: "25 %", 0.5: "50 %"}))
    for factor, levels in FACTORS.items():
        if factor != "train_fraction":
            means = means.assign(**{factor: pd.Categorical(means[factor], list(levels))})
    return figures.marginal_effects(means, list(FACTORS), "epsilon_right", by="dataset", width="two")


def draw_priors(nodes: pd.DataFrame, sampler: str) -> Figure:
    """Figure 3: priors against implied e_R, with and without flagged nodes."""
    from bmpaudit.report import figures

    part = nodes[nodes["sampler"] == sampler]
    columns = ("prior_prob", "right", "right_low", "right_high", "flagged")
    values = [part[name].to_numpy(dtype=np.float64) for name in columns]
    return figures.prior_against_epsilon(*values, flagged="both", width="two")


def draw_joint(draws: pd.DataFrame) -> Figure:
    """Figure 4: draws of (ε_L, ε_R), uniform against snowball sampling, for each query and rule."""
    from bmpaudit.report import figures

    panels = {
        f"edges {query}, {rule}": {
            str(sampler): part[["epsilon_left", "epsilon_right"]].to_numpy(dtype=np.float64)
            for sampler, part in panel.groupby("sampler", sort=False)
        }
        for (query, rule), panel in draws.groupby(["query", "rule"])
    }
    return figures.joint_sample_panels(panels, width="two")


def draw_study(study: pd.DataFrame) -> Figure:
    """ε_R, its floor and the excess over it, against the training fraction."""
    from bmpaudit.report.figures.style import colour, legend_above, look, new_figure

    with look():
        figure = new_figure("two", 2.6)
        grid = figure.subplots(1, 3, sharex=True)
        handles, labels = [], []
        for number, (sampler, part) in enumerate(study.groupby("sampler", sort=False)):
            by = part.groupby("train_fraction")
            for axes, value in zip(grid, ("p50", "floor", "excess"), strict=True):
                middle, low, high = by[value].median(), by[value].min(), by[value].max()
                x = middle.index.to_numpy(dtype=np.float64)
                (line,) = axes.plot(x, middle.to_numpy(), marker="o", markersize=3, color=colour(number))
                axes.fill_between(x, low.to_numpy(), high.to_numpy(), color=colour(number), alpha=0.2, linewidth=0)
            handles.append(line)
            labels.append(str(sampler))
            varying = by["p50_unflagged"].median()
            (dashed,) = grid[0].plot(x, varying.to_numpy(), color=colour(number), linestyle="--", linewidth=0.8)
        handles.append(dashed)
        labels.append("dashed: without nodes whose decision never varies")
        titles = (r"$\varepsilon_R$ (median)", r"floor $\max\,\log\,\eta$", r"excess over the floor")
        for axes, title in zip(grid, titles, strict=True):
            axes.set(title=title, xlabel="training fraction")
        grid[0].set_ylabel("nats")
        legend_above(figure, handles, labels)
        return figure


def write_figures(folder: Path, tables: dict[str, pd.DataFrame]) -> list[str]:
    """Draws the figures that the tables allow, as PNG and PDF; returns their names.

    Args:
        folder: Where to write them.
        tables: `cells`, `nodes_shown`, `joint_draws`, `study`, and those of proofs and exposure; empty or missing ones
            are skipped.
    """
    from bmpaudit.report.figures import save_figure

    def there(name: str) -> bool:
        return len(tables.get(name, ())) > 0

    drawn = {"figure-1-regions": draw_regions()}
    if there("cells") and {"cora", "citeseer"} <= set(tables["cells"]["dataset"]):
        drawn["figure-2-marginal-effects"] = draw_marginal_effects(tables["cells"])
    if there("nodes_shown"):
        for sampler in tables["nodes_shown"]["sampler"].unique():
            drawn[f"figure-3-priors-{sampler}"] = draw_priors(tables["nodes_shown"], sampler)
    if there("joint_draws"):
        drawn["figure-4-joint"] = draw_joint(tables["joint_draws"])
    if there("study"):
        drawn["study-training-fraction"] = draw_study(tables["study"])
    if there("against_proofs"):
        drawn[PROVEN_FIGURE] = draw_proven(tables["against_proofs"])
    if there("exposures"):
        drawn[EXPOSURE_FIGURE] = draw_exposure_curves(tables["exposures"])
    if there("growth_proofs"):
        drawn[GROWTH_FIGURE] = draw_growth(*(tables[f"growth_{name}"] for name in ("proofs", "exposures", "cells")))
    for name, figure in drawn.items():
        save_figure(figure, folder / name)
    return list(drawn)
