"""The estimated ε of several audits: posteriors, and their differences to the first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.estimation.difference import DifferenceMarginal
from bmpaudit.estimation.posterior import Posterior
from bmpaudit.estimation.prior import upper_end
from bmpaudit.report.figures.style import (
    REFERENCE,
    Width,
    colour,
    dashes,
    legend_above,
    limits,
    new_figure,
    parameter_label,
    plain,
    styled,
)
from bmpaudit.report.words import probability

POINTS = 401
DIFFERENCE_POINTS = 161
PRIOR_POINTS = 4_001
TAIL = 0.002
DASHED = (0, (4, 2))


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
    handles = [
        Line2D([], [], color=colour(number), linestyle=dashes(number), label=plain(label, most=24))
        for label, number in numbers.items()
    ]
    handles.append(
        Line2D([], [], color=REFERENCE, linewidth=0.9, linestyle=DASHED, label="prior, scaled to the upper half")
    )
    legend_above(figure, handles, [str(handle.get_label()) for handle in handles])
    return figure


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
