"""Which defence? Accuracy against what is exposed and what is proven, and the points that no other beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import FAINT, REFERENCE, Width, colour, legend_above, new_figure, plain, styled

FEW = 10.0  # nodes; up to here the axis is linear, beyond it logarithmic
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class FrontierPoint:
    """A point of the picture.

    Attributes:
        number: What it is called, if it is on a front.
        group: What it is coloured by, such as its release.
        accuracy: Mean, lower and upper limit, as shares.
        exposed: Number of nodes named: mean, lower and upper limit.
        proven: What ε_R is proven to be at least; None if nothing is.
        on_exposure_front: Whether no other point beats it by what is exposed.
        on_proof_front: Whether no other point beats it by what is proven.
    """

    number: int
    group: str
    accuracy: tuple[float, float, float]
    exposed: tuple[float, float, float]
    proven: float | None
    on_exposure_front: bool
    on_proof_front: bool


@styled
def frontier(points: Sequence[FrontierPoint], *, width: Width = "two") -> Figure:
    """Accuracy against nodes named with 90 % certainty, and against what is proven of ε_R; good is up and left.

    Args:
        points: The points; those of one group share a colour.
        width: One or two columns.

    Raises:
        InputError: if there are none.
    """
    if not points:
        raise InputError("points must be at least one whose accuracy is known, got none")
    groups = list(dict.fromkeys(point.group for point in points))
    figure = new_figure(width, 2.6)
    left, right = figure.subplots(1, 2, sharey=True)
    known = [point.proven for point in points if point.proven is not None]
    # Points of which nothing is proven stand apart, at the left edge.
    nothing = min([0.0, *known]) - 0.12 * max(np.ptp([0.0, *known]), 1.0)
    for place, group in enumerate(groups):
        mine = [point for point in points if point.group == group]
        accuracy = 100 * np.array([point.accuracy for point in mine])
        exposed = np.array([point.exposed for point in mine])
        proven = np.array([nothing if point.proven is None else point.proven for point in mine])
        style = {"color": colour(place), "marker": MARKERS[place % len(MARKERS)], "linestyle": "none"}
        left.errorbar(
            exposed[:, 0], accuracy[:, 0], _ends(accuracy), _ends(exposed), elinewidth=0.6, alpha=0.9, **style
        )
        right.errorbar(proven, accuracy[:, 0], _ends(accuracy), elinewidth=0.6, alpha=0.9, **style)
    _front(left, [(point.exposed[0], point) for point in points if point.on_exposure_front])
    where = [(nothing if point.proven is None else point.proven, point) for point in points if point.on_proof_front]
    _front(right, where)
    left.set_xscale("symlog", linthresh=FEW, linscale=0.5)
    left.set(
        xlim=(-0.08 * FEW, None), xlabel="training nodes named with 90 % certainty", ylabel="held-out accuracy [%]"
    )
    right.set(xlabel=r"$\varepsilon_R$ proven to be at least")
    if any(point.proven is None for point in points):
        right.axvline(nothing / 2 if not known else (nothing + min([0.0, *known])) / 2, color=FAINT, linewidth=0.6)
        ticks = [tick for tick in right.get_xticks() if tick >= min([0.0, *known])]
        right.set_xticks([nothing, *ticks], ["nothing", *(f"{tick:g}" for tick in ticks)])
    handles = [
        Line2D([], [], color=colour(place), marker=MARKERS[place % len(MARKERS)], linestyle="none")
        for place in range(len(groups))
    ]
    handles.append(Line2D([], [], color=REFERENCE, linewidth=0.8))
    legend_above(figure, handles, [*(plain(group, most=24) for group in groups), "not beaten by any other"])
    return figure


def _ends(values: np.ndarray) -> np.ndarray:
    """Lengths of the error bars below and above."""
    return np.maximum(np.stack([values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]]), 0)


def _front(axes: Axes, front: Sequence[tuple[float, FrontierPoint]]) -> None:
    """A line through the points of a front, as steps: between two of them nothing better is known."""
    ordered = sorted(front, key=lambda each: (each[0], each[1].accuracy[0]))
    across = [where for where, _ in ordered]
    up = [100 * point.accuracy[0] for _, point in ordered]
    axes.step(across, up, where="post", color=REFERENCE, linewidth=0.8, zorder=1)
    for place, (where, height, (_, point)) in enumerate(zip(across, up, ordered, strict=True)):
        # Above and below in turn: points of a front often lie close together.
        shift = (-2, 4) if place % 2 == 0 else (2, -9)
        axes.annotate(str(point.number), (where, height), xytext=shift, textcoords="offset points", fontsize=7)
