"""The reliability diagram: does "99 %" mean 99 %?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import REFERENCE, Width, colour, legend_above, log_odds, new_figure, plain, styled
from bmpaudit.report.words import number

if TYPE_CHECKING:
    from bmpaudit.proof import Reliability

TICKS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
SMALLEST, LARGEST = 3.0, 28.0  # areas of points, for few and for many challenges


@styled
def reliability(diagrams: Mapping[str, Reliability], *, width: Width = "one") -> Figure:
    """Share of members among challenges of a stated probability, against that probability.

    Both axes are log-odds, which show the tails; the size of a point grows with the logarithm of its number of
    challenges. A share of 0 or 1 has no log-odds: it is drawn open, at (C + 1/2)/(n + 1) for C members of n challenges.

    Args:
        diagrams: One or several, by the label of the release.
        width: One or two columns.

    Raises:
        InputError: if there is no diagram.
    """
    if not diagrams:
        raise InputError("diagrams must be at least one, got none")
    figure = new_figure(width, 2.6 if width == "one" else 3.4)
    axes = figure.subplots()
    (diagonal,) = axes.plot([0, 1], [0, 1], transform=axes.transAxes, color=REFERENCE, linewidth=0.8, linestyle="--")
    most = max(int(each.num_challenges.max()) for each in diagrams.values())
    handles, ends = [], [-3.0, 3.0]
    for place, (label, diagram) in enumerate(diagrams.items()):
        is_filled = diagram.num_challenges > 0
        size, stated = diagram.num_challenges[is_filled], diagram.stated[is_filled]
        x = log_odds(np.clip(stated, 1e-12, 1 - 1e-12))
        y, is_extreme = observed_log_odds(diagram.observed[is_filled], size)
        area = SMALLEST + (LARGEST - SMALLEST) * np.log(size) / np.log(max(most, 2))
        face = np.where(is_extreme, "none", colour(place))
        axes.plot(x, y, color=colour(place), linewidth=0.7, alpha=0.6)
        handles.append(axes.scatter(x, y, s=area, c=face, edgecolors=colour(place), linewidths=0.9, zorder=3))
        handles[-1].set_label(f"{plain(label)}: off by {number(diagram.expected_calibration_error, 4)} on average")
        ends += [*x, *y]
    limits = (min(ends) - 0.5, max(ends) + 0.5)
    ticks = [tick for tick in TICKS if limits[0] <= log_odds(tick) <= limits[1]]
    for set_ticks in (axes.set_xticks, axes.set_yticks):
        set_ticks(log_odds(ticks), [f"{100 * tick:g}" for tick in ticks])
    axes.set(xlim=limits, ylim=limits, xlabel="stated probability [%]", ylabel="share of members [%]")
    axes.set_box_aspect(1)
    labels = [str(each.get_label()) for each in handles]
    legend_above(figure, [*handles, diagonal], [*labels, "perfect calibration"])
    return figure


def observed_log_odds(observed: Floats, num_challenges: Ints) -> tuple[Floats, Flags]:
    """Log-odds of observed shares, and which of these shares are 0 or 1.

    >>> log_odds, is_extreme = observed_log_odds(np.array([0.5, 1.0]), np.array([10, 9]))
    >>> log_odds.round(3), is_extreme
    (array([0.   , 2.944]), array([False,  True]))
    """
    is_extreme = (observed <= 0) | (observed >= 1)
    smoothed = (observed * num_challenges + 0.5) / (num_challenges + 1)
    return log_odds(np.where(is_extreme, smoothed, observed)), is_extreme
