"""Several audits side by side."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.estimation.difference import DifferenceMarginal
from bmpaudit.estimation.posterior import Posterior
from bmpaudit.estimation.prior import upper_end
from bmpaudit.report.figures.style import (
    FAINT,
    REFERENCE,
    Width,
    colour,
    dashes,
    legend_above,
    limits,
    look,
    new_figure,
    parameter_label,
    plain,
    styled,
)
from bmpaudit.report.words import probability

Panel = Literal["posteriors", "differences", "nodes"]
PANELS: tuple[Panel, ...] = ("posteriors", "differences", "nodes")

POINTS = 401
DIFFERENCE_POINTS = 161
PRIOR_POINTS = 4_001
TAIL = 0.002
DASHED = (0, (4, 2))
RASTERIZE_ABOVE = 500  # points of a scatter; as vectors they would make up most of a page
NODE_LABELS = {"e_R": "$e_R$", "e_L": "$e_L$"}


@dataclass(frozen=True, eq=False)
class ComparedNodes:
    """The nodes of two audits, arrays of shape (K,).

    Attributes:
        first: Their e in the first audit.
        second: In the other.
        is_constant: Where one of the attacks decided the same for every model.
    """

    first: Floats
    second: Floats
    is_constant: npt.NDArray[np.bool_]


@styled
def comparison(
    posteriors: Mapping[str, Posterior],
    differences: Mapping[str, DifferenceMarginal],
    nodes: Mapping[str, ComparedNodes],
    parameter: str,
    *,
    node_symbol: str = "e_R",
    panels: Sequence[Panel] = PANELS,
    width: Width = "two",
) -> Figure:
    """Posteriors of several audits, their difference to the first one, and the nodes of each against the first's.

    Args:
        posteriors: Posteriors by label, in order.
        differences: Differences from the first, by the labels of the others.
        nodes: Nodes of those audits that share them with the first, by label.
        parameter: Parameter of the posteriors to draw.
        node_symbol: Symbol of the nodes' values.
        panels: Panels to draw, from left to right; `nodes` is left out if there are none.
        width: One or two columns.

    Raises:
        InputError: if there are fewer than two posteriors, or nothing to draw.
    """
    if len(posteriors) < 2:
        raise InputError(f"posteriors must be at least two, got {len(posteriors)}")
    chosen = [panel for panel in panels if panel != "nodes" or nodes]
    if not chosen:
        raise InputError("there is no panel to draw")
    axis_label = parameter_label(next(iter(posteriors.values())), parameter)
    numbers = {label: number for number, label in enumerate(posteriors)}
    figure = new_figure(width, 2.1 if width == "two" else 2.4)
    grid = figure.subplots(1, len(chosen), squeeze=False)[0]
    for axes, panel in zip(grid, chosen, strict=True):
        if panel == "posteriors":
            _draw_posteriors(axes, posteriors, parameter, axis_label)
        elif panel == "differences":
            _draw_differences(axes, differences, axis_label, numbers)
        else:
            _draw_nodes(axes, nodes, next(iter(posteriors)), node_symbol, numbers)
    handles: list[Artist] = []
    for label, number in numbers.items():
        if "posteriors" in chosen or number:
            line = Line2D([], [], color=colour(number), linestyle=dashes(number), label=plain(label, most=24))
            if chosen == ["nodes"]:
                line = Line2D([], [], color=colour(number), linestyle="", marker="o", label=plain(label, most=24))
            handles.append(line)
    if "posteriors" in chosen:
        handles.append(
            Line2D([], [], color=REFERENCE, linewidth=0.9, linestyle=DASHED, label="prior, scaled to the upper half")
        )
    if "nodes" in chosen and any(each.is_constant.any() for each in nodes.values()):
        handles.append(
            Line2D([], [], color=FAINT, linestyle="", marker="o", fillstyle="none", label="constant decision")
        )
    legend_above(figure, handles, [str(handle.get_label()) for handle in handles])
    return figure


def to_svg(figure: Figure) -> bytes:
    """The figure as SVG, text as outlines; the same figure gives the same bytes."""
    written = io.BytesIO()
    with look(), matplotlib.rc_context({"svg.hashsalt": "bmpaudit", "svg.fonttype": "path"}):
        figure.savefig(written, format="svg", metadata={"Date": None}, transparent=True)
    return written.getvalue()


def _draw_posteriors(axes: Axes, posteriors: Mapping[str, Posterior], parameter: str, axis_label: str) -> None:
    ends = [posterior.quantile([TAIL, 1 - TAIL], parameter) for posterior in posteriors.values()]
    low, high = limits(np.concatenate(ends))
    x = np.linspace(low, high, POINTS)
    highest = 0.0
    for number, posterior in enumerate(posteriors.values()):
        density = posterior.marginal(parameter).pdf(x)
        highest = max(highest, float(density.max()))
        axes.plot(x, density, color=colour(number), linestyle=dashes(number), zorder=3)
        axes.fill_between(x, density, color=colour(number), alpha=0.12, linewidth=0)
        axes.plot(x, _prior(posterior, parameter, x), color=REFERENCE, linewidth=0.9, linestyle=DASHED, zorder=4)
    # A prior may be much higher than the posterior where it ends.
    axes.set(xlim=(low, high), ylim=(0, 1.05 * highest), ylabel="posterior density [1/nat]")
    axes.set_xlabel(axis_label)


def _prior(posterior: Posterior, parameter: str, x: Floats) -> Floats:
    """The prior above the posterior's median, scaled to the mass there: if they agree, it is the prior's."""
    low = float(posterior.quantile(0.5, parameter))
    grid = np.linspace(low, upper_end(posterior.prior, low), PRIOR_POINTS)[1:]
    log_density = posterior.prior(grid)
    mass = float(np.trapezoid(np.exp(log_density - log_density.max()), grid))
    inside: Floats = 0.5 * np.exp(posterior.prior(np.maximum(x, grid[0])) - log_density.max()) / mass
    return np.where(x >= low, inside, np.nan)


def _draw_differences(
    axes: Axes, differences: Mapping[str, DifferenceMarginal], axis_label: str, numbers: Mapping[str, int]
) -> None:
    ends = [each.quantile([TAIL, 1 - TAIL]) for each in differences.values()]
    low, high = limits(np.concatenate([*ends, [0.0]]))
    x = np.union1d(np.linspace(low, high, DIFFERENCE_POINTS), [0.0])
    lines = []
    for label, each in differences.items():
        density, number = each.pdf(x), numbers[label]
        text = f"above 0 with probability {probability(each.probability_above())}"
        lines += axes.plot(
            x, density, color=colour(number), linestyle=dashes(number), zorder=3, label=text, gid="difference"
        )
        axes.fill_between(x, density, where=x >= 0, color=colour(number), alpha=0.2, linewidth=0)
    axes.axvline(0, color=REFERENCE, linewidth=0.8, linestyle=":")
    top = axes.get_ylim()[1]
    axes.set(xlim=(low, high), ylim=(0, top * (1 + 0.1 * len(differences))), ylabel="density [1/nat]")
    axes.set_xlabel(f"{axis_label.removesuffix(' [nats]')} minus that of the first [nats]")
    axes.legend(handles=lines, loc="best", fontsize=7, borderaxespad=0.0)


def _draw_nodes(
    axes: Axes, nodes: Mapping[str, ComparedNodes], first: str, symbol: str, numbers: Mapping[str, int]
) -> None:
    shown = [np.concatenate([each.first, each.second]) for each in nodes.values()]
    low, high = limits(np.concatenate(shown))
    for label, each in nodes.items():
        shade, is_many = colour(numbers[label]), len(each.first) > RASTERIZE_ABOVE
        for is_here, face, edge, order in (
            (each.is_constant, "none", FAINT, 1),
            (~each.is_constant, shade, "none", 2),
        ):
            axes.scatter(
                each.first[is_here],
                each.second[is_here],
                s=5,
                facecolor=face,
                edgecolor=edge,
                linewidth=0.5,
                alpha=0.6,
                zorder=order,
                rasterized=is_many,
            )
    axes.plot([low, high], [low, high], color=REFERENCE, linewidth=0.8, linestyle=":", zorder=3)
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    short = symbol[:3]
    text = NODE_LABELS.get(short, plain(symbol)) + symbol[3:]
    axes.set_xlabel(f"{text} in {plain(first, most=16)}")
    axes.set_ylabel(f"{text} in {'the other' if len(nodes) > 1 else plain(next(iter(nodes)), most=16)}")
