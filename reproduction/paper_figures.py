"""The paper's Figures 2 and 4: marginal effects on ε, and joint draws of (ε_L, ε_R) in panels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bmpaudit.report.figures.style import (
    DIAGONAL,
    EPSILON_LEFT,
    EPSILON_RIGHT,
    FAINT,
    RASTERIZE_ABOVE,
    Width,
    colour,
    inches,
    legend_above,
    limits,
    new_figure,
    plain,
    spread,
    styled,
)
from bmpaudit.util.values import Floats
from bmpaudit.util.words import signed

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROW_HEIGHT = 0.165
JITTER = 0.22
Row = tuple[str, Any]  # a factor and one of its levels; None for the heading of the factor


@styled
def marginal_effects(table: pd.DataFrame, factors: Sequence[str], *, by: str, width: Width = "two") -> Figure:
    """Figure 2: ε_R by the level of each factor, all other factors taken together.

    Small dots are single experiments, large ones their mean. Where a factor has two levels, Δ is the difference of
    the two means, second minus first.

    Args:
        table: One row per experiment, with a column `epsilon_right`.
        factors: Columns to compare; levels in the order of a categorical, sorted if numbers, else as they come.
        by: Column that splits the table into panels side by side, such as the data set.
        width: One or two columns.
    """
    rows: list[Row] = [(factor, level) for factor in factors for level in (None, *_levels(table, factor))]
    panels = _levels(table, by)
    figure = new_figure(width, ROW_HEIGHT * len(rows) + 0.65)
    grid = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True).ravel()
    for index, (axes, title) in enumerate(zip(grid, panels, strict=True)):
        axes.set_title(plain(title, most=24))
        _draw_panel(axes, table[table[by] == title], rows, colour(index))
    grid[0].set_yticks(range(len(rows)), [plain(factor if level is None else level, most=22) for factor, level in rows])
    for tick, (_, level) in zip(grid[0].get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if level is None else "normal")
    grid[0].set(xlim=limits(table["epsilon_right"].to_numpy(dtype=np.float64)), ylim=(len(rows) - 0.4, -0.6))
    figure.supxlabel(EPSILON_RIGHT, fontsize=9)
    return figure


def _draw_panel(axes: Axes, table: pd.DataFrame, rows: Sequence[Row], shade: str) -> None:
    for place, (factor, level) in enumerate(rows):
        if level is None:
            means = [table.loc[table[factor] == each, "epsilon_right"].mean() for each in _levels(table, factor)]
            if len(means) == 2:
                text = f"Δ {signed(float(means[1] - means[0]))}"
                axes.annotate(text, (1, place), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=8)
            if place:
                axes.axhline(place - 0.5, color="0.85", linewidth=0.5, zorder=0)
            continue
        found = table.loc[table[factor] == level, "epsilon_right"].to_numpy(dtype=np.float64)
        if not len(found):
            continue
        heights = place + JITTER * spread(len(found))
        axes.scatter(found, heights, s=4, color=FAINT, linewidths=0, alpha=0.8)
        axes.scatter(
            [found.mean()], [place], s=20, color=shade, edgecolors="white", linewidths=0.5, zorder=3, gid="mean"
        )
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color="0.9", linewidth=0.4)
    axes.set_axisbelow(True)


def _levels(table: pd.DataFrame, column: str) -> list[Any]:
    series = table[column]
    present: NDArray[Any] = series.dropna().unique()
    if isinstance(series.dtype, pd.CategoricalDtype):
        return [level for level in series.dtype.categories if level in set(present)]
    return sorted(present) if pd.api.types.is_numeric_dtype(series.dtype) else list(present)


@styled
def joint_sample_panels(panels: Mapping[str, Mapping[str, Floats]], *, width: Width = "two") -> Figure:
    """Figure 4: a panel for each title, in each a colour for each label; all on the same axes.

    Args:
        panels: By title and label, draws of (ε_L, ε_R), each of shape (n, 2).
        width: One or two columns.
    """
    columns = min(2 if width == "one" else 4, len(panels))
    rows = math.ceil(len(panels) / columns)
    side = min(inches(width) / columns, 3.0)
    figure = new_figure(width, rows * (side + 0.1))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    labels = list(dict.fromkeys(label for samples in panels.values() for label in samples))
    points = np.concatenate([draws for samples in panels.values() for draws in samples.values()])
    for index, (title, samples) in enumerate(panels.items()):
        axes = grid.flat[index]
        axes.set_title(plain(title, most=28))
        axes.axline((0, 0), slope=1, **DIAGONAL, zorder=0.5)
        for label, draws in samples.items():
            axes.scatter(
                draws[:, 1],
                draws[:, 0],
                s=2.5,
                color=colour(labels.index(label)),
                alpha=float(np.clip(300 / len(draws), 0.08, 0.6)),
                linewidths=0,
                rasterized=len(draws) > RASTERIZE_ABOVE,
            )
        axes.set(xlim=limits(points[:, 1]), ylim=limits(points[:, 0]))
        if index + columns >= len(panels):
            axes.set_xlabel(EPSILON_RIGHT)
            axes.tick_params(labelbottom=True)
        if index % columns == 0:
            axes.set_ylabel(EPSILON_LEFT)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    handles = [
        Line2D([], [], color=colour(index), marker="o", linestyle="", markersize=3.5, label=plain(label))
        for index, label in enumerate(labels)
    ]
    legend_above(figure, [*handles, Line2D([], [], **DIAGONAL, label=r"$\varepsilon_L = \varepsilon_R$")])
    return figure
