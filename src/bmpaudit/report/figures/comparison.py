"""Several audits side by side: what each exposes, and how that differs from the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import (
    REFERENCE,
    Width,
    colour,
    dashes,
    legend_above,
    new_figure,
    plain,
    styled,
)


@dataclass(frozen=True, eq=False)
class NumberNamed:
    """Numbers of nodes with confidence limits, or differences of them, at each certainty, arrays of shape (P,)."""

    mean: Floats
    low: Floats
    high: Floats


@styled
def comparison(
    certainty: Floats,
    exposures: Mapping[str, NumberNamed],
    differences: Mapping[str, NumberNamed],
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
        left.plot(places, named.mean, color=colour(number), linestyle=dashes(number), zorder=3)
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
        _label_certainty(axes, certainty, places)
    handles = [
        Line2D([], [], color=colour(number), linestyle=dashes(number), label=plain(label, most=24))
        for label, number in numbers.items()
    ]
    legend_above(figure, handles, [str(handle.get_label()) for handle in handles])
    return figure


def _label_certainty(axes: Axes, certainty: Floats, places: Floats) -> None:
    """The certainties are named one beside the other: on any scale of their own most would lie at its end."""
    axes.xaxis.set_major_locator(FixedLocator(list(places)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{100 * value:g}" for value in certainty])
    axes.set_xlabel("certainty [%]")
