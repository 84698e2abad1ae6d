"""Exposure of nodes by class, degree or another of their properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from bmpaudit.arrays import Floats
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import (
    BLUE,
    RASTERIZE_ABOVE,
    VERMILLION,
    Width,
    legend_above,
    limits,
    new_figure,
    not_shown,
    note,
    plain,
    spread,
    styled,
    vector,
)

NODE_EXPOSURE = "share of models that name it"
JITTER = 0.32
BOX_HEIGHT = 0.55
WHISKER_REACH = 1.5  # lengths of the box


@dataclass(frozen=True, eq=False)
class BinnedQuartiles:
    """Quartiles of one quantity in bins of another, arrays of shape (B,).

    Attributes:
        x: Median of the other quantity in each bin.
        lower: First quartile.
        median: Second quartile.
        upper: Third quartile.
        mean: Mean.
        num_nodes: How many values are in each bin.
    """

    x: Floats
    lower: Floats
    median: Floats
    upper: Floats
    mean: Floats
    num_nodes: npt.NDArray[np.int64]


@styled
def exposure_by(
    values: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    group_label: str,
    value_label: str = NODE_EXPOSURE,
    categorical: bool | None = None,
    names: Sequence[str] | None = None,
    num_bins: int = 10,
    log_axis: bool = False,
    width: Width = "one",
) -> Figure:
    """Exposure of nodes by class (boxes), or by a number such as degree, homophily or prior (binned means).

    Most nodes are named rarely and a few often, so the mean of a group says more than its median: it is what a group
    contributes to the members named per model. Boxes are Tukey's: they span the quartiles, and whiskers reach the
    furthest node within 1.5 times the length of the box; every node is a point. Bins hold about equally many nodes;
    nodes with the same number are never parted.

    Args:
        values: Exposure of each node, shape (K,); NaN where it is not known.
        groups: What the nodes are grouped by, shape (K,).
        group_label: Label of its axis.
        value_label: Label of the other axis.
        categorical: Whether the groups are classes rather than a number; inferred from their type by default, so set
            it for classes that are numbered.
        names: Names of classes numbered from 0.
        num_bins: Maximum number of bins of a number.
        log_axis: Whether a number is on a logarithmic axis (linear below 1, if it can be 0).
        width: One or two columns.

    Raises:
        InputError: if shapes differ, or nothing is finite.
    """
    shares = vector("values", values)
    given = np.asarray(groups)
    if given.shape != shares.shape:
        raise InputError(f"groups must have shape {shares.shape} as values has, got {given.shape}")
    check_at_least_one(num_bins=num_bins)
    is_number = np.issubdtype(given.dtype, np.number)
    if not is_number and categorical is False:
        raise InputError(f"groups must be numbers unless categorical, got {given.dtype}")
    is_finite = np.isfinite(shares) & (np.isfinite(given) if is_number else True)
    kept, by = shares[is_finite], given[is_finite]
    as_classes = not is_number if categorical is None else categorical
    value_limits = _from_zero(kept)
    if as_classes:
        figure = _boxes(kept, by, names, width)
        axes = figure.axes[0]
        axes.set(xlim=value_limits, xlabel=value_label, ylabel=group_label)
    else:
        figure = _trend(kept, by.astype(np.float64), num_bins, log_axis, width)
        axes = figure.axes[0]
        axes.set(ylim=value_limits, xlabel=group_label, ylabel=value_label)
    if not is_finite.all():
        note(axes, not_shown(is_finite))
    return figure


def _from_zero(values: Floats) -> tuple[float, float]:
    """Ends of an axis of shares, which begins just below 0, also where all of them are 0."""
    low, high = limits(values)
    most = float(values.max())
    if values.min() < 0:
        return low, high
    return (-0.02 * most, 1.04 * most) if most > 0 else (-0.02, 1.0)


def binned_quartiles(values: npt.ArrayLike, x: npt.ArrayLike, num_bins: int = 10) -> BinnedQuartiles:
    """Quartiles of values in at most `num_bins` bins of x with about equally many each.

    >>> bins = binned_quartiles([1.0, 2, 3, 4, 5, 6], [0, 0, 0, 0, 1, 7], num_bins=2)
    >>> bins.num_nodes, bins.median
    (array([4, 2]), array([2.5, 5.5]))
    """
    heights, places = vector("values", values), vector("x", x)
    distinct, count = np.unique(places, return_counts=True)
    if len(distinct) <= num_bins:
        edges = distinct
    else:
        # The share of nodes before each distinct number; a bin begins where this passes a multiple of 1/num_bins.
        before = (np.cumsum(count) - count) / len(places)
        bins = np.floor(before * num_bins + 1e-9)
        edges = distinct[np.flatnonzero(np.diff(bins, prepend=-1))]
    number = np.searchsorted(edges, places, side="right") - 1
    members = [number == b for b in range(len(edges))]
    lower, median, upper = np.array([np.percentile(heights[inside], [25, 50, 75]) for inside in members]).T
    return BinnedQuartiles(
        x=np.array([np.median(places[inside]) for inside in members]),
        lower=lower,
        median=median,
        upper=upper,
        mean=np.array([heights[inside].mean() for inside in members]),
        num_nodes=np.array([np.count_nonzero(inside) for inside in members]),
    )


def _boxes(values: Floats, groups: npt.NDArray[np.generic], names: Sequence[str] | None, width: Width) -> Figure:
    classes = np.unique(groups)
    figure = new_figure(width, 0.24 * len(classes) + 0.5)
    axes = figure.subplots()
    labels = []
    for place, one in enumerate(classes):
        inside = values[groups == one]
        _points(axes, inside, place + JITTER * spread(len(inside)), len(values))
        _box(axes, place, inside)
        name = one if names is None else names[int(one)]
        labels.append(f"{plain(name, most=22)} ({len(inside):,})")
    axes.set_yticks(range(len(classes)), labels)
    axes.set_ylim(len(classes) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    legend_above(figure, axes.lines[:1], ["mean of a class"])
    return figure


def _box(axes: Axes, place: float, values: Floats) -> None:
    lower, median, upper = np.percentile(values, [25, 50, 75])
    reach = WHISKER_REACH * (upper - lower)
    within = values[(values >= lower - reach) & (values <= upper + reach)]
    low, high = within.min(), within.max()
    half = BOX_HEIGHT / 2
    axes.barh(place, upper - lower, BOX_HEIGHT, left=lower, facecolor="none", edgecolor=BLUE, linewidth=0.9, zorder=2)
    axes.hlines([place, place], [low, upper], [lower, high], color=BLUE, linewidth=0.9)
    axes.vlines([low, high], place - half / 2, place + half / 2, color=BLUE, linewidth=0.9, gid="whiskers")
    axes.vlines(median, place - half, place + half, color=BLUE, linewidth=1.8, zorder=3, gid="median")
    axes.plot(values.mean(), place, "D", color=VERMILLION, markersize=4, zorder=4, gid="mean")


def _trend(values: Floats, x: Floats, num_bins: int, log_axis: bool, width: Width) -> Figure:
    bins = binned_quartiles(values, x, num_bins)
    figure = new_figure(width, 2.1 if width == "one" else 2.8)
    axes = figure.subplots()
    if log_axis:
        axes.set_xscale("log") if x.min() > 0 else axes.set_xscale("symlog", linthresh=1)
        axes.set_xticks(_round_numbers(x.max(), with_zero=bool(x.min() <= 0)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        shift = np.log1p(np.array([x.min(), x.max()]))
        margin = 0.04 * np.ptp(shift) or 0.05  # some room also where all are the same
        ends = np.expm1([shift[0] - margin, shift[1] + margin])
        axes.set_xlim(*(ends if x.min() <= 0 else (x.min() * 0.9, ends[1])))
    else:
        axes.set_xlim(*limits(x))
    _points(axes, x, values, len(values))
    band = axes.fill_between(bins.x, bins.lower, bins.upper, color=BLUE, alpha=0.25, linewidth=0, zorder=2)
    (line,) = axes.plot(bins.x, bins.mean, color=VERMILLION, marker="D", zorder=3)
    handles: list[Artist] = [line, band]
    legend_above(figure, handles, ["mean of a bin", "quartiles"])
    return figure


def _round_numbers(most: float, with_zero: bool) -> list[float]:
    """1, 2, 5, 10 and so on; 1, 10, 100 where these would be too many."""
    decades = range(int(np.floor(np.log10(max(most, 1.0)))) + 1)
    steps = (1, 2, 5) if len(decades) <= 3 else (1,)
    numbers = [step * 10.0**decade for decade in decades for step in steps]
    return [0.0] * int(with_zero) + [number for number in numbers if number <= most]


def _points(axes: Axes, x: Floats, y: Floats, number: int) -> None:
    opacity = float(np.clip(300 / number, 0.1, 0.6))
    axes.scatter(x, y, s=3, color="0.4", alpha=opacity, linewidths=0, zorder=1, rasterized=number > RASTERIZE_ABOVE)
