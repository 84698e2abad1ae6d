"""Prior probability and leakage of each node."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import (
    BLUE,
    NODE_EPSILON_RIGHT,
    RASTERIZE_ABOVE,
    REFERENCE,
    VERMILLION,
    Width,
    legend_above,
    limits,
    new_figure,
    not_shown,
    note,
    spread,
    styled,
    vector,
)

Flagged = Literal["marked", "left-out", "both"]
FLOOR_POINTS = 400
SAME_PRIOR = 1e-9
APART = 0.02


@styled
def prior_against_epsilon(
    prior_prob: npt.ArrayLike,
    median: npt.ArrayLike,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    is_flagged: npt.ArrayLike | None = None,
    *,
    flagged: Flagged = "marked",
    width: Width = "one",
) -> Figure:
    """Figure 3 of the paper: prior probability and implied e_R of each node, with interval and floor.

    The floor log(γ/(1-γ)) is e_R of a model that reveals nothing; no node lies below it.

    Args:
        prior_prob: γ(1) of each node, shape (K,).
        median: Posterior median of e_R, shape (K,).
        low: Lower end of its credible interval.
        high: Upper end.
        is_flagged: Nodes to be read with care, such as those about which the decision never varies.
        flagged: `marked`, `left-out`, or `both` in two panels.
        width: One or two columns.

    Raises:
        InputError: if shapes differ, a prior is no probability, or no node has finite values.
    """
    if flagged not in get_args(Flagged):
        raise InputError(f"flagged must be one of {', '.join(get_args(Flagged))}, got flagged={flagged!r}")
    prior = vector("prior_prob", prior_prob)
    if not ((prior >= 0) & (prior <= 1)).all():
        raise InputError("prior_prob must be in [0, 1]")
    values = [vector(name, given, len(prior)) for name, given in (("median", median), ("low", low), ("high", high))]
    marked = vector("is_flagged", np.zeros(len(prior)) if is_flagged is None else is_flagged, len(prior)) > 0
    table = np.column_stack([prior, *values])
    is_finite = np.isfinite(table).all(axis=1)
    shown = is_finite if flagged != "left-out" else is_finite & ~marked
    is_same = np.ptp(prior) < SAME_PRIOR
    if is_same:
        table[:, 0] += APART * spread(len(prior))
    x_limits = limits(table[shown, 0])
    panels = {"marked": [True], "left-out": [False], "both": [True, False]}[flagged]
    side_by_side = flagged == "both" and width == "two"
    rows = 2 if flagged == "both" and width == "one" else 1
    figure = new_figure(width, rows * (2.2 if width == "one" else 2.7))
    grid = figure.subplots(rows, 2 if side_by_side else 1, squeeze=False, sharex=True, sharey=True).ravel()
    floor_x = np.linspace(max(x_limits[0], 1e-4), min(x_limits[1], 1 - 1e-4), FLOOR_POINTS)
    floor_y = np.log(floor_x / (1 - floor_x))
    if is_same:
        with np.errstate(divide="ignore"):
            floor_y[:] = np.log(prior[0]) - np.log1p(-prior[0])
        grid[-1].set_xticks([prior[0]], [f"{prior[0]:.3g}"])
    for axes, with_flagged in zip(grid, panels, strict=True):
        _draw_nodes(axes, table[is_finite & ~marked], BLUE, "o", "nodes")
        if with_flagged and marked.any():
            _draw_nodes(axes, table[is_finite & marked], VERMILLION, "^", "flagged")
        axes.plot(floor_x, floor_y, color=REFERENCE, linewidth=1.0, gid="floor")
        if is_same:
            note(axes, f"all priors are {prior[0]:.3g}; nodes spread sideways")
        if not is_finite.all():
            note(axes, not_shown(is_finite))
    grid[-1].set(xlim=x_limits, ylim=limits(table[shown, 1:]))
    for axes in grid[-1:] if rows == 2 else grid:
        axes.set_xlabel(r"prior probability of membership, $\gamma$")
    for axes in grid if rows == 2 else grid[:1]:
        axes.set_ylabel(r"implied $e_R$ [nats]" if width == "one" else NODE_EPSILON_RIGHT)
    _legend(figure, has_flagged=bool(panels[0] and marked.any()))
    return figure


def _draw_nodes(axes: Axes, table: Floats, shade: str, marker: str, gid: str) -> None:
    prior, median, low, high = table.T
    is_many = len(table) > RASTERIZE_ABOVE
    opacity = float(np.clip(150 / max(len(table), 1), 0.08, 0.5))
    axes.vlines(prior, low, high, color=shade, linewidth=0.5, alpha=opacity, rasterized=is_many, zorder=1.5)
    axes.scatter(prior, median, s=5, marker=marker, color=shade, linewidths=0, alpha=0.7, rasterized=is_many, gid=gid)


def _legend(figure: Figure, has_flagged: bool) -> None:
    handles: list[Artist] = [Line2D([], [], color=BLUE, marker="o", linewidth=0.6, markersize=3)]
    labels = ["node with interval"]
    if has_flagged:
        handles.append(Line2D([], [], color=VERMILLION, marker="^", linewidth=0.6, markersize=3))
        labels.append("flagged")
    handles.append(Line2D([], [], color=REFERENCE, linewidth=1.0))
    legend_above(figure, handles, [*labels, r"floor $\log\,\gamma/(1-\gamma)$"])
