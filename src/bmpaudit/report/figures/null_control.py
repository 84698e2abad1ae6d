"""Would the attack find as much where there is nothing to find?"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import BLUE, FAINT, Width, legend_above, limits, new_figure, styled, vector

STATISTIC = r"mean over nodes of $|A/n_0 + B/n_1 - 1|$"
BINS: dict[Width, int] = {"one": 60, "two": 120}
DOT = 0.09  # inches from one dot of a pile to the next


@styled
def null_control(
    real: float, nulls: npt.ArrayLike, *, statistic_label: str = STATISTIC, width: Width = "one"
) -> Figure:
    """The statistic of the real models beside those with memberships exchanged, each of these a dot.

    Args:
        real: The statistic on the models as they are.
        nulls: The same after each exchange, shape (R,).
        statistic_label: Of the axis.
        width: One or two columns.

    Raises:
        InputError: if a value is not finite.
    """
    exchanged = np.sort(vector("nulls", nulls))
    if not math.isfinite(real) or not np.isfinite(exchanged).all():
        raise InputError("real and nulls must be finite")
    ends = limits([real, *exchanged], share=0.06)
    figure = new_figure(width, 1.0)
    share = (exchanged - ends[0]) / (ends[1] - ends[0])
    bins = (share * BINS[width]).astype(np.int64)
    # Dots of one bin are piled on each other.
    heights = np.arange(len(bins)) - np.searchsorted(bins, bins, side="left") + 0.5
    highest = max(float(heights.max()) + 0.5, 4.0)
    figure.set_figheight(0.45 + min(DOT * highest, 2.5))
    axes = figure.subplots()
    dots = axes.scatter(exchanged, heights, s=14, color=FAINT, linewidths=0, gid="nulls")
    line = axes.axvline(real, color=BLUE, linewidth=1.6)
    axes.set(xlim=ends, ylim=(0, highest), xlabel=statistic_label, yticks=())
    axes.spines["left"].set_visible(False)
    reached = int(np.count_nonzero(exchanged >= real))
    verdict = "above all" if not reached else f"reached by {reached:,}"
    labels = [f"memberships exchanged ({len(exchanged):,} times)", f"models as they are: {verdict}"]
    legend_above(figure, [dots, line], labels)
    return figure
