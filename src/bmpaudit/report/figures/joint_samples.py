"""Draws from the joint posterior of (ε_L, ε_R)."""

from __future__ import annotations

import math
from collections.abc import Mapping

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
    EPSILON_LEFT,
    EPSILON_RIGHT,
    RASTERIZE_ABOVE,
    REFERENCE,
    Width,
    colour,
    inches,
    legend_above,
    limits,
    new_figure,
    plain,
    styled,
)

BINS = 40


@styled
def joint_samples(samples: Mapping[str, npt.ArrayLike], *, width: Width = "one") -> Figure:
    """Draws of (ε_L, ε_R): one colour for each label, or for a single one its density with both marginals.

    Args:
        samples: Draws by label, each of shape (n, 2), ε_L first.
        width: One or two columns.

    Raises:
        InputError: if there are no draws, or they have another shape or are not finite.
    """
    clouds = _checked(samples)
    if len(clouds) == 1:
        return _with_marginals(*next(iter(clouds.items())), width)
    return _panels({"": clouds}, width)


@styled
def joint_sample_panels(panels: Mapping[str, Mapping[str, npt.ArrayLike]], *, width: Width = "two") -> Figure:
    """Figure 4 of the paper: a panel for each title, in each a colour for each label; all on the same axes.

    Args:
        panels: By title, what `joint_samples` takes.
        width: One or two columns.

    Raises:
        InputError: as `joint_samples`.
    """
    if not panels:
        raise InputError("panels must be at least one, got none")
    return _panels({title: _checked(samples) for title, samples in panels.items()}, width)


def _panels(panels: Mapping[str, Mapping[str, Floats]], width: Width) -> Figure:
    columns = min(2 if width == "one" else 4, len(panels))
    rows = math.ceil(len(panels) / columns)
    side = min(inches(width) / columns, 3.0)
    figure = new_figure(width, rows * (side + 0.1))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    labels = list(dict.fromkeys(label for samples in panels.values() for label in samples))
    points = np.concatenate([draws for samples in panels.values() for draws in samples.values()])
    for number, (title, samples) in enumerate(panels.items()):
        axes = grid.flat[number]
        axes.set_title(plain(title, most=28))
        _diagonal(axes)
        for label, draws in samples.items():
            _cloud(axes, draws, colour(labels.index(label)))
        axes.set(xlim=limits(points[:, 1]), ylim=limits(points[:, 0]))
        if number + columns >= len(panels):
            axes.set_xlabel(EPSILON_RIGHT)
            axes.tick_params(labelbottom=True)
        if number % columns == 0:
            axes.set_ylabel(EPSILON_LEFT)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    handles: list[Artist] = [
        Line2D([], [], color=colour(number), marker="o", linestyle="", markersize=3.5) for number in range(len(labels))
    ]
    handles.append(Line2D([], [], color=REFERENCE, linewidth=0.8, linestyle=(0, (4, 3))))
    legend_above(figure, handles, [*(plain(label) for label in labels), r"$\varepsilon_L = \varepsilon_R$"])
    return figure


def _with_marginals(label: str, draws: Floats, width: Width) -> Figure:
    figure = new_figure(width, min(inches(width), 4.2))
    grid = figure.subplots(2, 2, sharex="col", sharey="row", width_ratios=[4, 1], height_ratios=[1, 4])
    (top, corner), (axes, side) = grid
    corner.remove()
    left, right = draws.T
    x, y = limits(right), limits(left)
    # About regular hexagons.
    across, up = figure.get_size_inches()
    cells = (BINS, round(BINS / np.sqrt(3) * up / across))
    axes.hexbin(right, left, gridsize=cells, mincnt=1, linewidths=0.1, extent=(*x, *y))
    _diagonal(axes, zorder=3)
    axes.set(xlim=x, ylim=y, xlabel=EPSILON_RIGHT, ylabel=EPSILON_LEFT)
    for panel, values, ends, orientation in ((top, right, x, "vertical"), (side, left, y, "horizontal")):
        panel.hist(values, bins=BINS, range=ends, orientation=orientation, color=BLUE, alpha=0.6)
        panel.tick_params(labelbottom=False, labelleft=False, left=panel is side, bottom=panel is top)
    top.spines["left"].set_visible(False)
    side.spines["bottom"].set_visible(False)
    figure.suptitle(plain(label), fontsize=9)
    return figure


def _cloud(axes: Axes, draws: Floats, shade: str) -> None:
    axes.scatter(
        draws[:, 1],
        draws[:, 0],
        s=2.5,
        color=shade,
        alpha=float(np.clip(300 / len(draws), 0.08, 0.6)),
        linewidths=0,
        rasterized=len(draws) > RASTERIZE_ABOVE,
    )


def _diagonal(axes: Axes, zorder: float = 0.5) -> None:
    axes.axline((0, 0), slope=1, color=REFERENCE, linewidth=0.8, linestyle=(0, (4, 3)), zorder=zorder)


def _checked(samples: Mapping[str, npt.ArrayLike]) -> dict[str, Floats]:
    if not samples:
        raise InputError("samples must be at least one, got none")
    clouds = {label: np.asarray(draws, dtype=np.float64) for label, draws in samples.items()}
    for label, draws in clouds.items():
        if draws.ndim != 2 or draws.shape[1] != 2 or not len(draws):
            raise InputError(f"samples must have shape (n, 2), got {draws.shape} for {label!r}")
        if not np.isfinite(draws).all():
            raise InputError(f"samples must be finite, got others for {label!r}")
    return clouds
