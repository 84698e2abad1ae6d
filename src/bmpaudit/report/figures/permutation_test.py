"""Would the attack find as much where there is nothing to find?"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import BLUE, FAINT, Width, legend_above, limits, new_figure, styled, vector
from bmpaudit.report.words import count

STATISTIC = "AUC of the attack (0.5 is guessing)"
BINS: dict[Width, int] = {"one": 60, "two": 120}
DOT = 0.09  # inches from one dot of a pile to the next


@styled
def permutation_test(
    statistic: float, null_statistics: npt.ArrayLike, *, statistic_label: str = STATISTIC, width: Width = "one"
) -> Figure:
    """The attack's statistic on the real memberships, and a dot for each shuffling of memberships between models.

    Args:
        statistic: The statistic on the real memberships.
        null_statistics: The statistic after each shuffling, shape (R,).
        statistic_label: Label of the axis.
        width: One or two columns.

    Raises:
        InputError: if a value is not finite.
    """
    shuffled = np.sort(vector("null_statistics", null_statistics))
    if not math.isfinite(statistic) or not np.isfinite(shuffled).all():
        raise InputError("statistic and null_statistics must be finite")
    ends = limits([statistic, *shuffled], share=0.06)
    figure = new_figure(width, 1.0)
    share = (shuffled - ends[0]) / (ends[1] - ends[0])
    bins = (share * BINS[width]).astype(np.int64)
    # Dots of one bin are piled on each other.
    heights = np.arange(len(bins)) - np.searchsorted(bins, bins, side="left") + 0.5
    highest = max(float(heights.max()) + 0.5, 4.0)
    figure.set_figheight(0.45 + min(DOT * highest, 2.5))
    axes = figure.subplots()
    dots = axes.scatter(shuffled, heights, s=14, color=FAINT, linewidths=0, gid="shuffled")
    line = axes.axvline(statistic, color=BLUE, linewidth=1.6)
    axes.set(xlim=ends, ylim=(0, highest), xlabel=statistic_label, yticks=())
    axes.spines["left"].set_visible(False)
    reached = int(np.count_nonzero(shuffled >= statistic))
    verdict = "above all" if not reached else f"reached by {reached:,}"
    labels = [f"shuffled memberships ({count(len(shuffled), 'time')})", f"real memberships: {verdict}"]
    legend_above(figure, [dots, line], labels)
    return figure
