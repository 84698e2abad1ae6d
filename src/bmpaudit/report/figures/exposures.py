"""Pictures of what is exposed: exposure curves, exposure by group, reliability, ROC, the permutation test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, StrMethodFormatter

from bmpaudit.report.figures.style import (
    BLUE,
    FAINT,
    RASTERIZE_ABOVE,
    REFERENCE,
    VERMILLION,
    Width,
    colour,
    dashes,
    legend_above,
    limits,
    log_odds,
    new_figure,
    not_shown,
    note,
    plain,
    spread,
    styled,
    vector,
)
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.values import Flags, Floats, Ints
from bmpaudit.util.words import confidence, count, number

if TYPE_CHECKING:
    from bmpaudit.proof import ExposureCurve, Reliability


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
        certainty, index = vector("certainty", list(without_model)), vector("number", list(without_model.values()))
        (line,) = axes.plot(log_odds(certainty), index, color=REFERENCE, linestyle=":", marker="x")
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


# Exposure of nodes by class, degree or another of their properties.


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
    index = np.searchsorted(edges, places, side="right") - 1
    members = [index == b for b in range(len(edges))]
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
    return [0.0] * int(with_zero) + [index for index in numbers if index <= most]


def _points(axes: Axes, x: Floats, y: Floats, number: int) -> None:
    opacity = float(np.clip(300 / number, 0.1, 0.6))
    axes.scatter(x, y, s=3, color="0.4", alpha=opacity, linewidths=0, zorder=1, rasterized=number > RASTERIZE_ABOVE)


# The reliability diagram: does "99 %" mean 99 %?


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


# ROC curves of an attack.


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
    for index, (label, (fpr, tpr)) in enumerate(checked.items()):
        look = {"color": colour(index), "linestyle": dashes(index)}
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


# Would the attack find as much where there is nothing to find?


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
