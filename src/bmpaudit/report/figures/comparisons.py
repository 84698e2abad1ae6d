"""Pictures of several audits: exposure and ε side by side, and the front of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bmpaudit.estimation.posterior import DifferenceMarginal, Posterior
from bmpaudit.proof import Band
from bmpaudit.report.figures.style import (
    FAINT,
    PRIOR,
    REFERENCE,
    Width,
    colour,
    legend_above,
    limits,
    new_figure,
    parameter_label,
    plain,
    prior_density,
    stroke,
    styled,
)
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats
from bmpaudit.util.words import probability

POINTS = 401
DIFFERENCE_POINTS = 161
TAIL = 0.002


@styled
def compared_posteriors(
    posteriors: Mapping[str, Posterior],
    differences: Mapping[str, DifferenceMarginal],
    parameter: str,
    *,
    width: Width = "two",
) -> Figure:
    """Posteriors of several audits, and their difference to the first one.

    Args:
        posteriors: Posteriors by label, in order.
        differences: Differences from the first, by the labels of the others.
        parameter: Parameter of the posteriors to draw.
        width: One or two columns.

    Raises:
        InputError: if there are fewer than two posteriors.
    """
    if len(posteriors) < 2:
        raise InputError(f"posteriors must be at least two, got {len(posteriors)}")
    axis_label = parameter_label(next(iter(posteriors.values())), parameter)
    numbers = {label: number for number, label in enumerate(posteriors)}
    figure = new_figure(width, 2.1)
    left, right = figure.subplots(1, 2)
    _draw_posteriors(left, posteriors, parameter, axis_label)
    _draw_differences(right, differences, axis_label, numbers)
    legend_above(figure, [*_lines(posteriors), Line2D([], [], **PRIOR, label="prior, scaled to the upper half")])
    return figure


def _lines(labels: Iterable[str]) -> list[Line2D]:
    """A line for each label of a legend."""
    return [Line2D([], [], **stroke(number), label=plain(label, most=24)) for number, label in enumerate(labels)]


def _draw_posteriors(axes: Axes, posteriors: Mapping[str, Posterior], parameter: str, axis_label: str) -> None:
    ends = [posterior.quantile([TAIL, 1 - TAIL], parameter) for posterior in posteriors.values()]
    low, high = limits(np.concatenate(ends))
    x = np.linspace(low, high, POINTS)
    highest = 0.0
    for number, posterior in enumerate(posteriors.values()):
        density = posterior.marginal(parameter).pdf(x)
        highest = max(highest, float(density.max()))
        axes.plot(x, density, **stroke(number), zorder=3)
        axes.fill_between(x, density, color=colour(number), alpha=0.12, linewidth=0)
        # The prior above the posterior's median, scaled to the mass there: if they agree, it is the prior's.
        median = float(posterior.quantile(0.5, parameter))
        prior = np.where(x >= median, 0.5 * prior_density(posterior, median, x), np.nan)
        axes.plot(x, prior, **PRIOR, zorder=4)
    # A prior may be much higher than the posterior where it ends.
    axes.set(xlim=(low, high), ylim=(0, 1.05 * highest), ylabel="posterior density [1/nat]")
    axes.set_xlabel(axis_label)


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
        lines += axes.plot(x, density, **stroke(number), zorder=3, label=text, gid="difference")
        axes.fill_between(x, density, where=x >= 0, color=colour(number), alpha=0.2, linewidth=0)
    axes.axvline(0, color=REFERENCE, linewidth=0.8, linestyle=":")
    top = axes.get_ylim()[1]
    axes.set(xlim=(low, high), ylim=(0, top * (1 + 0.1 * len(differences))), ylabel="density [1/nat]")
    axes.set_xlabel(f"{axis_label.removesuffix(' [nats]')} minus that of the first [nats]")
    axes.legend(handles=lines, loc="best", fontsize=7, borderaxespad=0.0)


@styled
def comparison(
    certainty: Floats,
    exposures: Mapping[str, Band],
    differences: Mapping[str, Band],
    *,
    nodes: str = "training nodes",
    width: Width = "two",
) -> Figure:
    """Exposure curves of several audits with bands, and differences from the first with intervals.

    Args:
        certainty: Posterior probabilities from which on a node is named, ascending, shape (P,).
        exposures: Nodes named correctly per released model, by label, in order.
        differences: Differences from the first, by the labels of the others.
        nodes: What nodes these are, in words.
        width: One or two columns.

    Raises:
        InputError: if there are fewer than two audits.
    """
    if len(exposures) < 2:
        raise InputError(f"exposures must be at least two, got {len(exposures)}")
    places = np.arange(len(certainty), dtype=np.float64)
    numbers = {label: number for number, label in enumerate(exposures)}
    figure = new_figure(width, 2.2)
    left, right = figure.subplots(1, 2)
    for label, named in exposures.items():
        number = numbers[label]
        left.plot(places, named.mean, **stroke(number), zorder=3)
        left.fill_between(places, named.low, named.high, color=colour(number), alpha=0.2, linewidth=0)
    left.set(ylim=(0, None), ylabel=f"{nodes} named")
    # Side by side, so that no interval hides another.
    offsets = 0.4 * (np.arange(len(differences)) - (len(differences) - 1) / 2) / max(len(differences), 2)
    for offset, (label, named) in zip(offsets, differences.items(), strict=True):
        ends = np.stack([named.mean - named.low, named.high - named.mean])
        shade = colour(numbers[label])
        right.errorbar(places + offset, named.mean, ends, fmt="o", color=shade, capsize=2, linewidth=0.9)
    right.axhline(0, color=REFERENCE, linewidth=0.8, linestyle=":")
    right.set_ylabel(f"difference from {plain(next(iter(exposures)), most=20)}")
    for axes in (left, right):
        # The certainties stand side by side: on any scale of their own most would lie at its end.
        axes.set_xticks(places, [f"{100 * value:g}" for value in certainty])
        axes.set_xlabel("certainty [%]")
    legend_above(figure, _lines(exposures))
    return figure


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
    known = [0.0, *(point.proven for point in points if point.proven is not None)]
    # Points of which nothing is proven stand apart, at the left edge.
    nothing = min(known) - 0.12 * max(np.ptp(known), 1.0)
    handles = []
    for place, group in enumerate(groups):
        mine = [point for point in points if point.group == group]
        accuracy = 100 * np.array([point.accuracy for point in mine])
        exposed = np.array([point.exposed for point in mine])
        proven = np.array([nothing if point.proven is None else point.proven for point in mine])
        marks: dict[str, Any] = {"color": colour(place), "marker": MARKERS[place % len(MARKERS)], "linestyle": "none"}
        handles.append(Line2D([], [], **marks, label=plain(group, most=24)))
        marks |= {"elinewidth": 0.6, "alpha": 0.9}
        left.errorbar(exposed[:, 0], accuracy[:, 0], _ends(accuracy), _ends(exposed), **marks)
        right.errorbar(proven, accuracy[:, 0], _ends(accuracy), **marks)
    _front(left, [(point.exposed[0], point) for point in points if point.on_exposure_front])
    where = [(nothing if point.proven is None else point.proven, point) for point in points if point.on_proof_front]
    _front(right, where)
    left.set_xscale("symlog", linthresh=FEW, linscale=0.5)
    left.set(
        xlim=(-0.08 * FEW, None), xlabel="training nodes named with 90 % certainty", ylabel="held-out accuracy [%]"
    )
    right.set(xlabel=r"$\varepsilon_R$ proven to be at least")
    if any(point.proven is None for point in points):
        right.axvline((nothing + min(known)) / 2, color=FAINT, linewidth=0.6)
        ticks = [tick for tick in right.get_xticks() if tick >= min(known)]
        right.set_xticks([nothing, *ticks], ["nothing", *(f"{tick:g}" for tick in ticks)])
    front = Line2D([], [], color=REFERENCE, linewidth=0.8, label="not beaten by any other")
    legend_above(figure, [*handles, front])
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
