"""Which choice of an experiment moves ε, and by how much?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import (
    BLUE,
    EPSILON_LEFT,
    EPSILON_RIGHT,
    FAINT,
    Width,
    colour,
    limits,
    new_figure,
    plain,
    spread,
    styled,
)
from bmpaudit.report.words import signed

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

ROW_HEIGHT = 0.165
JITTER = 0.22
LABELS = {"epsilon_left": EPSILON_LEFT, "epsilon_right": EPSILON_RIGHT}


@dataclass(frozen=True)
class _Row:
    """A line of the picture: the heading of a factor (level None), or one of its levels."""

    factor: str
    level: Any = None


@styled
def marginal_effects(
    table: pd.DataFrame,
    factors: Sequence[str],
    value: str = "epsilon_right",
    *,
    by: str | None = None,
    value_label: str | None = None,
    width: Width = "one",
) -> Figure:
    """Figure 2 of the paper: ε by the level of each factor, all other factors taken together.

    Small dots are single experiments, large ones their mean. Where a factor has two levels, Δ is the difference of
    the two means, second minus first.

    Args:
        table: One row per experiment.
        factors: Columns to compare; levels in the order of a categorical, sorted if numbers, else as they come.
        value: Column of the value to compare.
        by: Column that splits the table into panels side by side, such as the data set.
        value_label: Label of the axis.
        width: One or two columns.

    Raises:
        InputError: if a column is missing, there is no row, or a value is not finite.
    """
    columns = [*factors, value, *([] if by is None else [by])]
    missing = [name for name in columns if name not in table.columns]
    if missing or not factors:
        raise InputError(f"table must have columns {', '.join(columns)}, got {', '.join(map(str, table.columns))}")
    values = table[value].to_numpy(dtype=np.float64)
    if not len(table) or not np.isfinite(values).all():
        raise InputError(f"{value} must be finite in every row, and there must be one")
    rows = [
        row for factor in factors for row in (_Row(factor), *(_Row(factor, level) for level in _levels(table, factor)))
    ]
    panels = [(None, table)] if by is None else [(level, table[table[by] == level]) for level in _levels(table, by)]
    figure = new_figure(width, ROW_HEIGHT * len(rows) + (0.45 if by is None else 0.65))
    grid = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True).ravel()
    for number, (axes, (title, part)) in enumerate(zip(grid, panels, strict=True)):
        if title is not None:
            axes.set_title(plain(title, most=24))
        _draw_panel(axes, part, rows, value, colour(number) if by is not None else BLUE)
    grid[0].set_yticks(
        range(len(rows)), [plain(row.factor if row.level is None else row.level, most=22) for row in rows]
    )
    for tick, row in zip(grid[0].get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if row.level is None else "normal")
    grid[0].set(xlim=limits(values), ylim=(len(rows) - 0.4, -0.6))
    figure.supxlabel(value_label or LABELS.get(value, plain(value)), fontsize=9)
    return figure


def _draw_panel(axes: Axes, table: pd.DataFrame, rows: Sequence[_Row], value: str, shade: str) -> None:
    for place, row in enumerate(rows):
        if row.level is None:
            _annotate_difference(axes, table, row.factor, value, place)
            if place:
                axes.axhline(place - 0.5, color="0.85", linewidth=0.5, zorder=0)
            continue
        found = table.loc[table[row.factor] == row.level, value].to_numpy(dtype=np.float64)
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


def _annotate_difference(axes: Axes, table: pd.DataFrame, factor: str, value: str, place: int) -> None:
    means = [table.loc[table[factor] == level, value].mean() for level in _levels(table, factor)]
    if len(means) == 2:
        text = f"Δ {signed(float(means[1] - means[0]))}"
        axes.annotate(text, (1, place), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=8)


def _levels(table: pd.DataFrame, column: str) -> list[Any]:
    import pandas as pd

    series = table[column]
    present: NDArray[Any] = series.dropna().unique()
    if isinstance(series.dtype, pd.CategoricalDtype):
        return [level for level in series.dtype.categories if level in set(present)]
    return sorted(present) if pd.api.types.is_numeric_dtype(series.dtype) else list(present)
