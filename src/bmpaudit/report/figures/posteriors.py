"""Posterior densities of ε, beside the prior."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import (
    BLACK,
    BLUE,
    EPSILON,
    FAINT,
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
from bmpaudit.report.words import count, interval, number

if TYPE_CHECKING:
    from bmpaudit.estimation.posterior import Posterior

POINTS = 801
SHUFFLED_POINTS = 4_001  # these posteriors may be narrow beside the real one
TAIL = 0.001  # of the probability, on either side, need not be in the picture
PRIOR_POINTS = 20_001
NEGLIGIBLE = 40.0  # nats
DASHED = (0, (4, 2))


@styled
def posteriors(
    posteriors: Mapping[str, Posterior],
    parameter: str | None = None,
    *,
    level: float = 0.9,
    floor: float | None = None,
    lower_bound: float | None = None,
    show_prior: bool = True,
    panels: bool = False,
    width: Width = "one",
) -> Figure:
    """Posterior densities of one parameter, with median and credible interval in the legend.

    Args:
        posteriors: One or several, by label.
        parameter: `epsilon_right`, `epsilon_left` or `epsilon`; may be left out where a posterior has only one.
        level: Probability of the equal-tailed interval that is shaded.
        floor: What the sampling alone gives away, to be marked.
        lower_bound: Proven lower bound, to be marked.
        show_prior: Whether to draw the prior, restricted to the support and normalised there, as a dashed line.
        panels: Whether each posterior gets a panel of its own; for widths so different that one hides the other.
        width: One or two columns.

    Raises:
        InputError: if there is no posterior, none of such a parameter, or a mark is not finite.
    """
    if not posteriors:
        raise InputError("posteriors must be at least one, got none")
    for name, value in (("floor", floor), ("lower_bound", lower_bound)):
        if value is not None and not math.isfinite(value):
            raise InputError(f"{name} must be finite, got {name}={value}")
    names = {label: _parameter(label, posterior, parameter) for label, posterior in posteriors.items()}
    marks = [value for value in (floor, lower_bound) if value is not None]
    tails = [posterior.marginals[names[label]].quantile([TAIL, 1 - TAIL]) for label, posterior in posteriors.items()]
    low, high = limits(np.concatenate([*tails, marks]))
    rows = len(posteriors) if panels else 1
    figure = new_figure(width, 0.9 * rows + 0.4 if panels else 2.0)
    grid = figure.subplots(rows, 1, sharex=True, squeeze=False).ravel()
    x = np.linspace(low, high, POINTS)
    handles: list[Artist] = []
    priors = [_prior_density(posterior, names[label], x) for label, posterior in posteriors.items()]
    is_shared = panels or all(_same(first, second) for first, second in pairwise(priors))
    for place, (label, posterior) in enumerate(posteriors.items()):
        axes = grid[place if panels else 0]
        line = _draw_density(axes, posterior, names[label], x, level, place)
        middle = float(posterior.marginals[names[label]].quantile([0.5])[0])
        ends = posterior.interval(level, names[label])
        line.set_label(f"{plain(label, most=24)}: {number(middle)} ({interval(ends.low, ends.high)})")
        handles.append(line)
        prior = priors[place]
        if show_prior and prior is not None and (panels or place == 0 or not is_shared):
            shade = REFERENCE if is_shared else colour(place)
            axes.plot(x, prior, color=shade, linewidth=0.9, linestyle=DASHED, label="prior", gid="prior")
    if show_prior and any(prior is not None for prior in priors):
        handles.append(Line2D([], [], color=REFERENCE, linewidth=0.9, linestyle=DASHED, label="prior"))
    handles += _draw_marks(list(grid), floor, lower_bound)
    for axes in grid:
        axes.set(xlim=(low, high), ylim=(0, None))
        axes.set_ylabel("density" if panels else "posterior density [1/nat]")
    figure.align_ylabels(list(grid))
    labels = {parameter_label(posterior, names[label]) for label, posterior in posteriors.items()}
    # ε of one definition and ε_R of another are both "ε".
    grid[-1].set_xlabel(labels.pop() if len(labels) == 1 else EPSILON)
    legend_above(figure, handles, [str(handle.get_label()) for handle in handles])
    return figure


@styled
def shuffled_posteriors(
    real: Posterior, shuffled: Sequence[Posterior], parameter: str | None = None, *, width: Width = "one"
) -> Figure:
    """The posterior beside those that the attack gives after shuffling memberships between models.

    Each is drawn relative to its highest value, because the latter can be very narrow.

    Raises:
        InputError: if there is no posterior to compare with, or one lacks the parameter.
    """
    if not shuffled:
        raise InputError("shuffled must hold at least one posterior, got none")
    everything = [("real", real), *((f"shuffled {place}", each) for place, each in enumerate(shuffled))]
    names = [_parameter(label, posterior, parameter) for label, posterior in everything]
    ends = [p.marginals[name].quantile([TAIL, 1 - TAIL]) for (_, p), name in zip(everything, names, strict=True)]
    low, high = limits(np.concatenate(ends))
    x = np.linspace(low, high, SHUFFLED_POINTS)
    figure = new_figure(width, 2.0)
    axes = figure.subplots()
    for each, name in zip(shuffled, names[1:], strict=True):
        (grey,) = axes.plot(x, _relative(each, name, x), color=FAINT, linewidth=0.7)
    (line,) = axes.plot(x, _relative(real, names[0], x), color=BLUE, zorder=3)
    axes.set(xlim=(low, high), ylim=(0, 1.05), ylabel="posterior density / its maximum")
    axes.set_xlabel(parameter_label(real, names[0]))
    legend_above(figure, [line, grey], ["real memberships", f"shuffled memberships ({count(len(shuffled), 'time')})"])
    return figure


def _relative(posterior: Posterior, name: str, x: Floats) -> Floats:
    density = posterior.marginals[name].pdf(x)
    return density / density.max()


def _parameter(label: str, posterior: Posterior, wanted: str | None) -> str:
    if wanted is None:
        if len(posterior.parameter_names) > 1:
            raise InputError(f"parameter must be one of {', '.join(posterior.marginals)}, got none for {label!r}")
        return posterior.parameter_names[0]
    if wanted not in posterior.marginals:
        raise InputError(f"parameter must be one of {', '.join(posterior.marginals)} for {label!r}, got {wanted!r}")
    return wanted


def _draw_density(axes: Axes, posterior: Posterior, name: str, x: Floats, level: float, place: int) -> Line2D:
    marginal = posterior.marginals[name]
    ends = posterior.interval(level, name)
    (line,) = axes.plot(x, marginal.pdf(x), color=colour(place), linestyle=dashes(place), zorder=3)
    inside = np.linspace(ends.low, ends.high, POINTS)
    axes.fill_between(inside, marginal.pdf(inside), color=colour(place), alpha=0.2, linewidth=0)
    return line


def _draw_marks(grid: Sequence[Axes], floor: float | None, lower_bound: float | None) -> list[Artist]:
    handles: list[Artist] = []
    for value, text, shade, pattern in (
        (floor, "sampling alone", REFERENCE, ":"),
        (lower_bound, "proven lower bound", BLACK, "-."),
    ):
        if value is not None:
            for axes in grid:
                line = axes.axvline(value, color=shade, linewidth=1.0, linestyle=pattern, zorder=2)
            line.set_label(f"{text}: {number(value)}")
            handles.append(line)
    return handles


def _prior_density(posterior: Posterior, name: str, x: Floats) -> Floats | None:
    """The prior on the support, normalised; None for parameters whose prior is not that of ε."""
    if name not in posterior.parameter_names:
        return None
    low = posterior.support_low(name)
    if not math.isfinite(low):
        low = float(x[0])
    high, highest = low + 1.0, float(np.max(posterior.prior(low + np.geomspace(1e-3, 1e3, 400))))
    while float(posterior.prior(np.array([high]))[0]) > highest - NEGLIGIBLE and high < low + 1e6:
        high = low + 1.5 * (high - low)
    grid = np.linspace(low, high, PRIOR_POINTS)
    # A hair inside: a prior may begin where the support does.
    grid[0] = grid[0] + 1e-9 * (high - low)
    mass = float(np.trapezoid(np.exp(posterior.prior(grid) - highest), grid))
    density: Floats = np.exp(posterior.prior(np.maximum(x, grid[0])) - highest) / mass
    return np.where(x >= low, density, 0.0)


def _same(first: Floats | None, second: Floats | None) -> bool:
    if first is None or second is None:
        return first is second
    return bool(np.allclose(first, second, atol=1e-9))
