"""Pictures of several audits: exposure and ε side by side, and the front of a sweep."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bmpaudit.estimation.posterior import DifferenceMarginal, Posterior
from bmpaudit.proof import Band
from bmpaudit.report.figures import style
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats
from bmpaudit.util.words import probability

POINTS = 401
DIFFERENCE_POINTS = 161
TAIL = 0.002


@style.styled
def compared_posteriors(
    posteriors: Mapping[str, Posterior], differences: Mapping[str, DifferenceMarginal], parameter: str
) -> Figure:
    """Posteriors of a parameter of several audits, and their differences to the first one, by label."""
    axis_label = style.parameter_label(next(iter(posteriors.values())), parameter)
    figure = style.new_figure("two", 2.1)
    left, right = figure.subplots(1, 2)
    ends = [posterior.quantile([TAIL, 1 - TAIL], parameter) for posterior in posteriors.values()]
    low, high = style.limits(np.concatenate(ends))
    x = np.linspace(low, high, POINTS)
    highest = 0.0
    for number, posterior in enumerate(posteriors.values()):
        density = posterior.marginal(parameter).pdf(x)
        highest = max(highest, float(density.max()))
        left.plot(x, density, **style.stroke(number), zorder=3)
        left.fill_between(x, density, color=style.colour(number), alpha=0.12, linewidth=0)
        # The prior above the posterior's median, scaled to the mass there: if they agree, it is the prior's.
        median = float(posterior.quantile(0.5, parameter))
        prior = np.where(x >= median, 0.5 * style.prior_density(posterior, median, x), np.nan)
        left.plot(x, prior, **style.PRIOR, zorder=4)
    # A prior may be much higher than the posterior where it ends.
    left.set(xlim=(low, high), ylim=(0, 1.05 * highest), xlabel=axis_label, ylabel="posterior density [1/nat]")
    ends = [each.quantile([TAIL, 1 - TAIL]) for each in differences.values()]
    low, high = style.limits(np.concatenate([*ends, [0.0]]))
    x = np.union1d(np.linspace(low, high, DIFFERENCE_POINTS), [0.0])
    lines = []
    for label, each in differences.items():
        density, number = each.pdf(x), list(posteriors).index(label)
        text = f"above 0 with probability {probability(each.probability_above())}"
        lines += right.plot(x, density, **style.stroke(number), zorder=3, label=text, gid="difference")
        right.fill_between(x, density, where=x >= 0, color=style.colour(number), alpha=0.2, linewidth=0)
    right.axvline(0, color=style.REFERENCE, linewidth=0.8, linestyle=":")
    top = right.get_ylim()[1]
    right.set(xlim=(low, high), ylim=(0, top * (1 + 0.1 * len(differences))), ylabel="density [1/nat]")
    right.set_xlabel(f"{axis_label.removesuffix(' [nats]')} minus that of the first [nats]")
    right.legend(handles=lines, loc="best", fontsize=7, borderaxespad=0.0)
    prior_line = Line2D([], [], **style.PRIOR, label="prior, scaled to the upper half")
    style.legend_above(figure, [*_lines(posteriors), prior_line])
    return figure


def _lines(labels: Iterable[str]) -> list[Line2D]:
    """A line for each label of a legend."""
    shown = [style.plain(label, most=24) for label in labels]
    return [Line2D([], [], **style.stroke(number), label=label) for number, label in enumerate(shown)]


@style.styled
def comparison(certainty: Floats, exposures: Mapping[str, Band], differences: Mapping[str, Band], nodes: str) -> Figure:
    """Nodes (which ones says `nodes`) named per model by several audits with bands, and differences from the first."""
    places = np.arange(len(certainty), dtype=np.float64)
    numbers = {label: number for number, label in enumerate(exposures)}
    figure = style.new_figure("two", 2.2)
    left, right = figure.subplots(1, 2)
    for label, named in exposures.items():
        number = numbers[label]
        left.plot(places, named.mean, **style.stroke(number), zorder=3)
        left.fill_between(places, named.low, named.high, color=style.colour(number), alpha=0.2, linewidth=0)
    left.set(ylim=(0, None), ylabel=f"{nodes} named")
    # Side by side, so that no interval hides another.
    offsets = 0.4 * (np.arange(len(differences)) - (len(differences) - 1) / 2) / max(len(differences), 2)
    for offset, (label, named) in zip(offsets, differences.items(), strict=True):
        ends = np.stack([named.mean - named.low, named.high - named.mean])
        shade = style.colour(numbers[label])
        right.errorbar(places + offset, named.mean, ends, fmt="o", color=shade, capsize=2, linewidth=0.9)
    right.axhline(0, color=style.REFERENCE, linewidth=0.8, linestyle=":")
    right.set_ylabel(f"difference from {style.plain(next(iter(exposures)), most=20)}")
    for axes in (left, right):
        # The certainties stand side by side: on any scale of their own most would lie at its end.
        axes.set_xticks(places, [f"{100 * value:g}" for value in certainty])
        axes.set_xlabel("certainty [%]")
    style.legend_above(figure, _lines(exposures))
    return figure


FEW = 10.0  # nodes; up to here the axis is linear, beyond it logarithmic
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@style.styled
def frontier(table: pd.DataFrame) -> Figure:
    """Accuracy against nodes named with 90 % certainty, and against what is proven of ε_R; good is up and left.

    Only the former makes a front: that less is proven is no sign of less leakage. A bound at its ceiling is hollow.
    Points, which are rows of a sweep's table (docs/defences.md), share a colour if they are of one release.
    """
    points = table.dropna(subset=["accuracy", "named_90"])
    if points.empty:
        raise InputError("points must be at least one whose accuracy is known, got none")
    figure = style.new_figure("two", 2.6)
    left, right = figure.subplots(1, 2, sharey=True)
    known = [0.0, *points["proven_right"].dropna()]
    # Points of which nothing is proven stand apart, at the left edge.
    nothing = min(known) - 0.12 * max(np.ptp(known), 1.0)
    points = points.assign(proven=points["proven_right"].astype(np.float64).fillna(nothing))
    handles = []
    for place, (release, mine) in enumerate(points.groupby("release", sort=False)):
        accuracy, exposed = 100 * _with_limits(mine, "accuracy"), _with_limits(mine, "named_90")
        marks: dict[str, Any] = {"color": style.colour(place), "linestyle": "none"}
        marks["marker"] = MARKERS[place % len(MARKERS)]
        handles.append(Line2D([], [], **marks, label=style.plain(release, most=24)))
        marks |= {"elinewidth": 0.6, "alpha": 0.9}
        left.errorbar(exposed[:, 0], accuracy[:, 0], _ends(accuracy), _ends(exposed), **marks)
        for is_ceiling, fill in ((False, style.colour(place)), (True, "white")):
            chosen = (mine["is_ceiling_right"] == is_ceiling).to_numpy()
            bounds, limits = mine["proven"].to_numpy()[chosen], accuracy[chosen]
            right.errorbar(bounds, limits[:, 0], _ends(limits), **marks, markerfacecolor=fill)
    _front(left, points[points["on_front"]], "named_90")
    left.set_xscale("symlog", linthresh=FEW, linscale=0.5)
    left.set(xlim=(-0.08 * FEW, None), xlabel="training nodes named with 90 % certainty")
    left.set_ylabel("held-out accuracy [%]")
    right.set(xlabel=r"$\varepsilon_R$ proven to be at least")
    if points["proven_right"].isna().any():
        right.axvline((nothing + min(known)) / 2, color=style.FAINT, linewidth=0.6)
        ticks = [tick for tick in right.get_xticks() if tick >= min(known)]
        right.set_xticks([nothing, *ticks], ["nothing", *(f"{tick:g}" for tick in ticks)])
    front = Line2D([], [], color=style.REFERENCE, linewidth=0.8, label="not beaten by any other")
    hollow: dict[str, Any] = {"color": style.REFERENCE, "markerfacecolor": "white", "linestyle": "none"}
    ceiling = Line2D([], [], marker="o", **hollow, label="every guess right")
    style.legend_above(figure, [*handles, front, *([ceiling] if points["is_ceiling_right"].any() else [])])
    return figure


def _with_limits(points: pd.DataFrame, name: str) -> Floats:
    """Mean, lower and upper limit of each point."""
    return points[[name, f"{name}_low", f"{name}_high"]].to_numpy(dtype=np.float64)


def _ends(values: Floats) -> Floats:
    """Lengths of the error bars below and above."""
    return np.maximum(np.stack([values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]]), 0)


def _front(axes: Axes, front: pd.DataFrame, across: str) -> None:
    """A line through the points of a front, as steps: between two of them nothing better is known."""
    ordered = front.sort_values([across, "accuracy"])
    places = list(zip(ordered[across], 100 * ordered["accuracy"], strict=True))
    axes.step(*np.reshape(places, (-1, 2)).T, where="post", color=style.REFERENCE, linewidth=0.8, zorder=1)
    for turn, (number, place) in enumerate(zip(ordered["point"], places, strict=True)):
        # Above and below in turn: points of a front often lie close together.
        shift = (-2, 4) if turn % 2 == 0 else (2, -9)
        axes.annotate(str(number), place, xytext=shift, textcoords="offset points", fontsize=7)
