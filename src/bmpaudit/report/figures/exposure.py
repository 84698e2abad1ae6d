"""The exposure curve: how many nodes of one released model can be named, against how sure the adversary wants to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import (
    REFERENCE,
    Width,
    colour,
    dashes,
    legend_above,
    log_odds,
    new_figure,
    note,
    plain,
    styled,
    vector,
)
from bmpaudit.report.words import confidence, count

if TYPE_CHECKING:
    from bmpaudit.proof import ExposureCurve

LOG_FROM = 30.0  # ratio of the largest to the smallest number from which on a logarithmic axis shows more
BAND = 0.2


@styled
def exposure(
    curves: Mapping[str, ExposureCurve],
    *,
    without_model: Mapping[float, float] | None = None,
    value_label: str = "members named per model",
    width: Width = "one",
) -> Figure:
    """Nodes named correctly from one released model, with limits that allow for more shadow models.

    Certainty is on an axis of log-odds, on which 99 % and 99.9 % are as far apart as 90 % and 99 %. Numbers are on a
    logarithmic axis where they differ by more than a factor of 30. Points that rest on too few models are open.

    Args:
        curves: One or several, by the label of the release.
        without_model: By certainty, how many nodes the sampling alone names, to be drawn as a reference where it is
            any at all.
        value_label: Label of the vertical axis.
        width: One or two columns.

    Raises:
        InputError: if there is no curve.
    """
    if not curves:
        raise InputError("curves must be at least one, got none")
    figure = new_figure(width, 2.1 if width == "one" else 2.8)
    axes = figure.subplots()
    handles = []
    values = np.concatenate([curve.correct.mean for curve in curves.values()])
    is_log = _needs_log_axis(values)
    bottom = 0.7 * values[values > 0].min() if is_log else 0.0  # a logarithmic axis has no place for 0
    for place, (label, curve) in enumerate(curves.items()):
        x, look = log_odds(curve.precision), {"color": colour(place), "linestyle": dashes(place)}
        (line,) = axes.plot(x, curve.correct.mean, **look, zorder=3)
        low, high = (np.maximum(limit, bottom) for limit in (curve.reach.low, curve.reach.high))
        axes.fill_between(x, low, high, color=colour(place), alpha=BAND, linewidth=0)
        for is_settled, face in ((True, colour(place)), (False, "white")):
            chosen = curve.is_settled == is_settled
            axes.plot(x[chosen], curve.correct.mean[chosen], "o", color=colour(place), markerfacecolor=face, zorder=4)
        line.set_label(plain(label))
        handles.append(line)
    if without_model and any(without_model.values()):
        certainty, number = vector("certainty", list(without_model)), vector("number", list(without_model.values()))
        (line,) = axes.plot(log_odds(certainty), number, color=REFERENCE, linestyle=":", marker="x")
        line.set_label("without a model")
        handles.append(line)
    if is_log:
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(bottom, None)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    else:
        axes.set_ylim(0, max(1.05 * max(float(curve.reach.high.max()) for curve in curves.values()), 1.0))
    every = np.unique(np.concatenate([curve.precision for curve in curves.values()]))
    axes.set_xticks(log_odds(every), [f"{100 * precision:g}" for precision in every])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="certainty of each name [%]", ylabel=value_label)
    first = next(iter(curves.values()))
    note(axes, f"{count(first.num_models, 'model')}, {confidence(first.level)} confidence")
    legend_above(figure, handles, [str(line.get_label()) for line in handles])
    return figure


def _needs_log_axis(values: Floats) -> bool:
    positive = values[values > 0]
    return bool(positive.size and positive.max() > LOG_FROM * positive.min())
