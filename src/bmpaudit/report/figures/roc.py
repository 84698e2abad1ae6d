"""ROC curves of an attack."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

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
    vector,
)

LOWEST = 1e-5  # rate that the logarithmic axes go down to, at most


@styled
def roc(curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]], *, width: Width = "one") -> Figure:
    """ROC curves on linear and on logarithmic axes.

    The legend has the area under each curve that runs from (0, 0) to (1, 1).

    Args:
        curves: False and true positive rates by label, ascending, each of shape (n,).
        width: One or two columns.

    Raises:
        InputError: if there is no curve, or one is not ascending in [0, 1].
    """
    if not curves:
        raise InputError("curves must be at least one, got none")
    checked = {label: _checked(label, *curve) for label, curve in curves.items()}
    figure = new_figure(width, 1.9 if width == "one" else 3.4)
    linear, logarithmic = figure.subplots(1, 2)
    positive = np.concatenate([rates[rates > 0] for curve in checked.values() for rates in curve])
    lowest = max(10.0 ** np.floor(np.log10(positive.min())), LOWEST) if positive.size else LOWEST
    lowest = min(lowest, 0.1)
    handles = []
    for number, (label, (fpr, tpr)) in enumerate(checked.items()):
        look = {"color": colour(number), "linestyle": dashes(number)}
        (line,) = linear.plot(fpr, tpr, **look)
        logarithmic.plot(fpr, tpr, **look)
        line.set_label(plain(label) + _area(fpr, tpr))
        handles.append(line)
    for axes in (linear, logarithmic):
        diagonal = _diagonal(axes, lowest)
    linear.set(xlim=(0, 1), ylim=(0, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    logarithmic.set_xscale("log", nonpositive="clip")
    logarithmic.set_yscale("log", nonpositive="clip")
    logarithmic.set(xlim=(lowest, 1), ylim=(lowest, 1.2))
    for axes in (linear, logarithmic):
        axes.set_box_aspect(1)
    linear.set_ylabel("true positive rate")
    figure.supxlabel("false positive rate", fontsize=9)
    legend_above(figure, [*handles, diagonal], [*(str(line.get_label()) for line in handles), "guessing"])
    return figure


def _diagonal(axes: Axes, lowest: float) -> Line2D:
    (line,) = axes.plot(
        [0, lowest, 1], [0, lowest, 1], color=REFERENCE, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1, gid="diagonal"
    )
    return line


def _area(fpr: Floats, tpr: Floats) -> str:
    is_whole = fpr[0] == tpr[0] == 0 and fpr[-1] == tpr[-1] == 1
    return f", AUC {np.trapezoid(tpr, fpr):.3f}" if is_whole else ""


def _checked(label: str, fpr: npt.ArrayLike, tpr: npt.ArrayLike) -> tuple[Floats, Floats]:
    x = vector(f"fpr of {label!r}", fpr)
    y = vector(f"tpr of {label!r}", tpr, len(x))
    for name, rates in (("fpr", x), ("tpr", y)):
        if not ((rates >= 0) & (rates <= 1)).all() or (np.diff(rates) < 0).any():
            raise InputError(f"{name} of {label!r} must be ascending in [0, 1]")
    return x, y
