"""Pictures of what is proven and exposed, from tables of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bmpaudit.privacy import Region
from reproduction.experiments import DATASETS, DEFINITIONS, FACTORS, FRACTIONS, KEY, MODELS, RELEASES, SAMPLERS, TITLES
from reproduction.proof_pages import EXPOSURE_FIGURE, GROWTH_FIGURE, PROVEN_FIGURE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


THIN = "thin: full edges, Gaussian"
PANELS = [(dataset, fraction, sampler) for dataset in DATASETS for fraction in FRACTIONS for sampler in SAMPLERS]


def draw_proven(table: pd.DataFrame) -> Figure:
    """Published, exact and proven ε of all cells; `table` is that of `against_proofs`."""
    from bmpaudit.report.figures.style import BLACK, BLUE, FAINT, GREEN, VERMILLION, legend_above, look, new_figure

    with look():
        figure = new_figure("two", 5.2)
        grid = figure.subplots(len(DEFINITIONS), 1, sharex=True)
        handles: dict[str, Any] = {}
        for axes, definition in zip(grid, DEFINITIONS, strict=True):
            start, ticks = 0, []
            for dataset, fraction, sampler in PANELS:
                chosen = (table["dataset"] == dataset) & (table["train_fraction"] == fraction)
                chosen &= (table["sampler"] == sampler) & (table["definition"] == definition)
                part = table[chosen].sort_values("published_p50", kind="stable")
                if not len(part):
                    continue
                x = start + np.arange(len(part))
                columns = {name: part[name].to_numpy(dtype=np.float64) for name in part if part[name].dtype == float}
                handles["published (p5 to p95)"] = axes.vlines(
                    x - 0.15, columns["published_p5"], columns["published_p95"], color=FAINT, linewidth=1.6
                )
                axes.plot(x - 0.15, columns["published_p50"], "_", color=BLACK, markersize=3)
                handles["ours, exact"] = axes.vlines(
                    x + 0.2, columns["paper_p5"], columns["paper_p95"], color=BLUE, linewidth=0.8
                )
                (handles["proven, the cell's own attack"],) = axes.plot(
                    x, columns["proven_same"], "^", color=VERMILLION, markersize=2.6, markeredgewidth=0
                )
                (handles["proven, all queries"],) = axes.plot(
                    x, columns["proven_all"], "_", color=GREEN, markersize=4, markeredgewidth=1.2
                )
                ticks.append((start + len(part) / 2, f"{TITLES[dataset]}\n{fraction:.0%}\n{sampler}"))
                start += len(part) + 2
                axes.axvline(start - 1.5, color=FAINT, linewidth=0.4)
            axes.set(ylabel=rf"$\varepsilon$ of {definition.upper()}", xlim=(-1.5, start - 1))
            axes.set_xticks([place for place, _ in ticks], [label for _, label in ticks])
            axes.tick_params(axis="x", length=0)
        legend_above(figure, list(handles.values()), list(handles))
        return figure


def draw_exposure_curves(exposures: pd.DataFrame) -> Figure:
    """Share of the members that one released model gives away against the precision, for all configurations."""
    from bmpaudit.report.figures.style import colour, legend_above, look, new_figure

    with look():
        figure = new_figure("two", 4.2)
        grid = figure.subplots(2, len(PANELS) // 2, sharex=True, sharey=True)
        handles: dict[str, Any] = {}
        precisions = sorted(exposures["precision"].unique())
        for axes, (dataset, fraction, sampler) in zip(grid.flat, PANELS, strict=True):
            chosen = (exposures["dataset"] == dataset) & (exposures["train_fraction"] == fraction)
            panel = exposures[chosen & (exposures["sampler"] == sampler)]
            for number, model in enumerate(MODELS):
                for release in RELEASES:
                    for adversary, width in (("all", 1.2), ("full", 0.5)):
                        of = panel[(panel["model"] == model) & (panel["release"] == release)]
                        of = of[of["adversary"] == adversary]
                        if not len(of):
                            continue
                        share = (of["correct_mean"] / of["total"]).groupby(of["precision"]).mean()
                        y = share.reindex(precisions).to_numpy(dtype=np.float64)
                        (line,) = axes.plot(
                            np.arange(len(precisions)),
                            np.where(y > 0, y, np.nan),
                            color=colour(number),
                            linestyle="-" if release == "clean" else "--",
                            linewidth=width,
                        )
                        if adversary == "all":
                            handles[f"{model.upper()} {release}"] = line
                        else:
                            handles.setdefault(THIN, line)
            axes.set(title=f"{TITLES[dataset]} {fraction:.0%} {sampler}", yscale="log", ylim=(1e-4, 1.0))
            axes.set_xticks(np.arange(len(precisions)), [f"{100 * each:g}" for each in precisions], rotation=60)
        for axes in grid[-1]:
            axes.set_xlabel("precision (%)")
        for axes in grid[:, 0]:
            axes.set_ylabel("share of members named")
        thin = handles.pop(THIN, None)  # last in the legend
        handles |= {} if thin is None else {THIN: thin}
        legend_above(figure, list(handles.values()), list(handles))
        return figure


def draw_growth(proofs: pd.DataFrame, exposures: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """What is proven, estimated and exposed against the number of models, for clean outputs."""
    from bmpaudit.report.figures.style import colour, legend_above, look, new_figure

    with look():
        figure = new_figure("two", 2.9)
        grid = figure.subplots(1, 3)
        handles: dict[str, Any] = {}
        shown = (("epsilon_right", "bmp-r", r"$\varepsilon_R$"), ("mp", "mp", r"$\varepsilon$ of MP"))
        for axes, (parameter, definition, title) in zip(grid, shown, strict=False):
            for number, query in enumerate(("full", "none")):
                is_cell = (cells["release"] == "clean") & (cells["rule"] == "strong") & (cells["query"] == query)
                part = cells[is_cell & (cells["definition"] == definition)]
                x = part["num_models"].to_numpy(dtype=np.float64)
                low, middle, high = (part[name].to_numpy(dtype=np.float64) for name in ("p5", "p50", "p95"))
                (handles[f"posterior, {query}"],) = axes.plot(x, middle, color=colour(number), linestyle="--")
                axes.fill_between(x, low, high, color=colour(number), alpha=0.15, linewidth=0)
                of = proofs[(proofs["release"] == "clean") & (proofs["adversary"] == query)]
                (handles[f"proven, {query}"],) = axes.plot(
                    of["num_models"], of[f"{parameter}_proven"], color=colour(number), marker="o"
                )
            of = proofs[(proofs["release"] == "clean") & (proofs["adversary"] == "all")]
            (handles["proven, all queries"],) = axes.plot(
                of["num_models"], of[f"{parameter}_proven"], color=colour(2), marker="s"
            )
            axes.set(xscale="log", xlabel="models", title=title)
        for number, precision in enumerate((0.9, 0.99, 0.999)):
            chosen = (exposures["release"] == "clean") & np.isclose(exposures["precision"], precision)
            for adversary, line in (("all", "-"), ("full", ":")):
                part = exposures[chosen & (exposures["adversary"] == adversary)]
                x = part["num_models"].to_numpy(dtype=np.float64)
                (drawn,) = grid[2].plot(x, part["correct_mean"], color=colour(3 + number), linestyle=line, marker="o")
                if adversary == "all":
                    handles[f"named at {100 * precision:g} %"] = drawn
                    low, high = (part[f"correct_{end}"].to_numpy(dtype=np.float64) for end in ("low", "high"))
                    grid[2].fill_between(x, low, high, color=colour(3 + number), alpha=0.2, linewidth=0)
        top = 2 * float(exposures["correct_high"][np.isclose(exposures["precision"], 0.9)].max())
        grid[2].set(xscale="log", yscale="symlog", ylim=(0, top), xlabel="models", title="members named")
        legend_above(figure, list(handles.values()), list(handles))
        return figure


# The paper's figures and those of our studies, from tables of results.


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
    from reproduction.paper_figures import marginal_effects

    right = cells[(cells["definition"] == "bmp-r") & (cells["counting"] == "paper")]
    means = right.groupby(list(KEY))["mean"].mean().reset_index(name="epsilon_right")
    means = means.assign(dataset=pd.Categorical(means["dataset"], ["cora", "citeseer"]))
    means = means.assign(train_fraction=means["train_fraction"].map({0.25: "25 %", 0.5: "50 %"}))
    for factor, levels in FACTORS.items():
        if factor != "train_fraction":
            means = means.assign(**{factor: pd.Categorical(means[factor], list(levels))})
    return marginal_effects(means, list(FACTORS), by="dataset")


def draw_priors(nodes: pd.DataFrame, sampler: str) -> Figure:
    """Figure 3: priors against implied e_R, with and without flagged nodes."""
    from bmpaudit.report import figures

    part = nodes[nodes["sampler"] == sampler]
    columns = ("prior_prob", "right", "right_low", "right_high", "flagged")
    values = [part[name].to_numpy(dtype=np.float64) for name in columns]
    return figures.prior_against_epsilon(*values, also_without_flagged=True, width="two")


def draw_joint(draws: pd.DataFrame) -> Figure:
    """Figure 4: draws of (ε_L, ε_R), uniform against snowball sampling, for each query and rule."""
    from reproduction.paper_figures import joint_sample_panels

    panels = {
        f"edges {query}, {rule}": {
            str(sampler): part[["epsilon_left", "epsilon_right"]].to_numpy(dtype=np.float64)
            for sampler, part in panel.groupby("sampler", sort=False)
        }
        for (query, rule), panel in draws.groupby(["query", "rule"])
    }
    return joint_sample_panels(panels)


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
