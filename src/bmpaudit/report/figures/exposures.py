"""Pictures of what is exposed: exposure curves, exposure by group, reliability, ROC, the permutation test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter
from scipy.special import logit

from bmpaudit.report.figures.style import (
    BLUE,
    DIAGONAL,
    FAINT,
    RASTERIZE_ABOVE,
    REFERENCE,
    VERMILLION,
    Width,
    colour,
    legend_above,
    limits,
    new_figure,
    not_shown,
    note,
    plain,
    spread,
    stroke,
    styled,
    vector,
)
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Flags, Floats
from bmpaudit.util.words import confidence, count, number

if TYPE_CHECKING:
    from bmpaudit.proof import ExposureCurve, Reliability


LOG_FROM = 30.0  # ratio of the largest to the smallest number from which on a logarithmic axis shows more


@styled
def exposure(
    curves: Mapping[str, ExposureCurve],
    *,
    without_model: Mapping[float, float] | None = None,
    width: Width = "one",
) -> Figure:
    """Members named correctly from one released model, with limits that allow for more shadow models.

    Certainty is on an axis of log-odds, on which 99 % and 99.9 % are as far apart as 90 % and 99 %. Numbers are on a
    logarithmic axis where they differ by more than a factor of 30. Points that rest on too few models are open.

    Args:
        curves: One or several, by the label of the release.
        without_model: By certainty, how many nodes the sampling alone names, to be drawn as a reference where it is
            any at all.
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
    positive = values[values > 0]
    is_log = bool(positive.size and positive.max() > LOG_FROM * positive.min())
    bottom = 0.7 * positive.min() if is_log else 0.0  # a logarithmic axis has no place for 0
    for place, (label, curve) in enumerate(curves.items()):
        x = logit(curve.precision)
        handles += axes.plot(x, curve.correct.mean, **stroke(place), zorder=3, label=plain(label))
        low, high = (np.maximum(limit, bottom) for limit in (curve.reach.low, curve.reach.high))
        axes.fill_between(x, low, high, color=colour(place), alpha=0.2, linewidth=0)
        for is_settled, face in ((True, colour(place)), (False, "white")):
            chosen = curve.is_settled == is_settled
            axes.plot(x[chosen], curve.correct.mean[chosen], "o", color=colour(place), markerfacecolor=face, zorder=4)
    if without_model and any(without_model.values()):
        x, y = logit(list(without_model)), vector("number", list(without_model.values()))
        handles += axes.plot(x, y, color=REFERENCE, linestyle=":", marker="x", label="without a model")
    if is_log:
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(bottom, None)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    else:
        axes.set_ylim(0, max(1.05 * max(float(curve.reach.high.max()) for curve in curves.values()), 1.0))
    every = np.unique(np.concatenate([curve.precision for curve in curves.values()]))
    axes.set_xticks(logit(every), [f"{100 * precision:g}" for precision in every])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="certainty of each name [%]", ylabel="members named per model")
    first = next(iter(curves.values()))
    note(axes, f"{count(first.num_models, 'model')}, {confidence(first.level)} confidence")
    legend_above(figure, handles)
    return figure


NODE_EXPOSURE = "share of models that name it"
JITTER = 0.32
BOX_HEIGHT = 0.55
WHISKER_REACH = 1.5  # lengths of the box
NUM_BINS = 10  # of a number, at most


@styled
def exposure_by(
    values: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    group_label: str,
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
        groups: Names of classes, or numbers, shape (K,).
        group_label: Label of its axis.
        log_axis: Whether a number is on a logarithmic axis (linear below 1, if it can be 0).
        width: One or two columns.

    Raises:
        InputError: if shapes differ, or nothing is finite.
    """
    shares = vector("values", values)
    given = np.asarray(groups)
    if given.shape != shares.shape:
        raise InputError(f"groups must have shape {shares.shape} as values has, got {given.shape}")
    is_number = np.issubdtype(given.dtype, np.number)
    is_finite = np.isfinite(shares) & (np.isfinite(given) if is_number else True)
    kept, by = shares[is_finite], given[is_finite]
    low, high = limits(kept)
    if kept.min() >= 0:  # an axis of shares begins just below 0, also where all of them are 0
        most = float(kept.max())
        low, high = (-0.02 * most, 1.04 * most) if most > 0 else (-0.02, 1.0)
    if is_number:
        figure = _trend(kept, by.astype(np.float64), log_axis, width)
        figure.axes[0].set(ylim=(low, high), xlabel=group_label, ylabel=NODE_EXPOSURE)
    else:
        figure = _boxes(kept, by, width)
        figure.axes[0].set(xlim=(low, high), xlabel=NODE_EXPOSURE, ylabel=group_label)
    if not is_finite.all():
        note(figure.axes[0], not_shown(is_finite))
    return figure


def _boxes(values: Floats, groups: npt.NDArray[np.generic], width: Width) -> Figure:
    classes = np.unique(groups)
    figure = new_figure(width, 0.24 * len(classes) + 0.5)
    axes = figure.subplots()
    labels = []
    for place, one in enumerate(classes):
        inside = values[groups == one]
        _points(axes, inside, place + JITTER * spread(len(inside)), len(values))
        _box(axes, place, inside)
        labels.append(f"{plain(one, most=22)} ({len(inside):,})")
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


def _trend(values: Floats, x: Floats, log_axis: bool, width: Width) -> Figure:
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
    bins = [(x[inside], values[inside]) for inside in _bins(x)]
    middle = [np.median(places) for places, _ in bins]
    lower, upper = np.array([np.percentile(heights, [25, 75]) for _, heights in bins]).T
    band = axes.fill_between(middle, lower, upper, color=BLUE, alpha=0.25, linewidth=0, zorder=2)
    (line,) = axes.plot(middle, [heights.mean() for _, heights in bins], color=VERMILLION, marker="D", zorder=3)
    legend_above(figure, [line, band], ["mean of a bin", "quartiles"])
    return figure


def _bins(x: Floats, num_bins: int = NUM_BINS) -> list[Flags]:
    """Which numbers are in each of at most `num_bins` bins with about equally many each; equal ones stay together.

    >>> [np.flatnonzero(inside).tolist() for inside in _bins(np.array([0.0, 0, 0, 0, 1, 7]), 2)]
    [[0, 1, 2, 3], [4, 5]]
    """
    starts, sizes = np.unique(x, return_counts=True)
    if len(starts) > num_bins:
        # The share of nodes before each distinct number; a bin begins where this passes a multiple of 1/num_bins.
        before = (np.cumsum(sizes) - sizes) / len(x)
        starts = starts[np.flatnonzero(np.diff(np.floor(before * num_bins + 1e-9), prepend=-1))]
    index = np.searchsorted(starts, x, side="right") - 1
    return [index == b for b in range(len(starts))]


def _round_numbers(most: float, with_zero: bool) -> list[float]:
    """1, 2, 5, 10 and so on; 1, 10, 100 where these would be too many."""
    decades = range(int(np.floor(np.log10(max(most, 1.0)))) + 1)
    steps = (1, 2, 5) if len(decades) <= 3 else (1,)
    numbers = [step * 10.0**decade for decade in decades for step in steps]
    return [0.0] * int(with_zero) + [index for index in numbers if index <= most]


def _points(axes: Axes, x: Floats, y: Floats, number: int) -> None:
    opacity = float(np.clip(300 / number, 0.1, 0.6))
    axes.scatter(x, y, s=3, color="0.4", alpha=opacity, linewidths=0, zorder=1, rasterized=number > RASTERIZE_ABOVE)


TICKS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
SMALLEST, LARGEST = 3.0, 28.0  # areas of points, for few and for many challenges


@styled
def reliability(diagrams: Mapping[str, Reliability], *, width: Width = "one") -> Figure:
    """Does "99 %" mean 99 %? The share of members among challenges of a stated probability, against it.

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
    diagonal.set_label("perfect calibration")
    most = max(int(each.num_challenges.max()) for each in diagrams.values())
    handles, ends = [], [-3.0, 3.0]
    for place, (label, diagram) in enumerate(diagrams.items()):
        is_filled = diagram.num_challenges > 0
        size, observed = diagram.num_challenges[is_filled], diagram.observed[is_filled]
        is_extreme = (observed <= 0) | (observed >= 1)
        x = logit(np.clip(diagram.stated[is_filled], 1e-12, 1 - 1e-12))
        y = logit(np.where(is_extreme, (observed * size + 0.5) / (size + 1), observed))
        area = SMALLEST + (LARGEST - SMALLEST) * np.log(size) / np.log(max(most, 2))
        face = np.where(is_extreme, "none", colour(place))
        axes.plot(x, y, color=colour(place), linewidth=0.7, alpha=0.6)
        handles.append(axes.scatter(x, y, s=area, c=face, edgecolors=colour(place), linewidths=0.9, zorder=3))
        handles[-1].set_label(f"{plain(label)}: off by {number(diagram.expected_calibration_error, 4)} on average")
        ends += [*x, *y]
    low, high = min(ends) - 0.5, max(ends) + 0.5
    ticks = [tick for tick in TICKS if low <= logit(tick) <= high]
    for set_ticks in (axes.set_xticks, axes.set_yticks):
        set_ticks(logit(ticks), [f"{100 * tick:g}" for tick in ticks])
    axes.set(xlim=(low, high), ylim=(low, high), xlabel="stated probability [%]", ylabel="share of members [%]")
    axes.set_box_aspect(1)
    legend_above(figure, [*handles, diagonal])
    return figure


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
    checked = {label: _rates(label, *curve) for label, curve in curves.items()}
    figure = new_figure(width, 1.9 if width == "one" else 3.4)
    linear, logarithmic = figure.subplots(1, 2)
    positive = np.concatenate([rates[rates > 0] for curve in checked.values() for rates in curve])
    lowest = max(10.0 ** np.floor(np.log10(positive.min())), LOWEST) if positive.size else LOWEST
    lowest = min(lowest, 0.1)
    handles = []
    for index, (label, (fpr, tpr)) in enumerate(checked.items()):
        is_whole = fpr[0] == tpr[0] == 0 and fpr[-1] == tpr[-1] == 1
        area = f", AUC {np.trapezoid(tpr, fpr):.3f}" if is_whole else ""
        handles += linear.plot(fpr, tpr, **stroke(index), label=plain(label) + area)
        logarithmic.plot(fpr, tpr, **stroke(index))
    for axes in (linear, logarithmic):
        diagonal = axes.plot([0, lowest, 1], [0, lowest, 1], **DIAGONAL, zorder=1, gid="diagonal", label="guessing")
        axes.set_box_aspect(1)
    linear.set(xlim=(0, 1), ylim=(0, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    logarithmic.set_xscale("log", nonpositive="clip")
    logarithmic.set_yscale("log", nonpositive="clip")
    logarithmic.set(xlim=(lowest, 1), ylim=(lowest, 1.2))
    linear.set_ylabel("true positive rate")
    figure.supxlabel("false positive rate", fontsize=9)
    legend_above(figure, [*handles, *diagonal])
    return figure


def _rates(label: str, fpr: npt.ArrayLike, tpr: npt.ArrayLike) -> tuple[Floats, Floats]:
    x = vector(f"fpr of {label!r}", fpr)
    y = vector(f"tpr of {label!r}", tpr, len(x))
    for name, rates in (("fpr", x), ("tpr", y)):
        if not ((rates >= 0) & (rates <= 1)).all() or (np.diff(rates) < 0).any():
            raise InputError(f"{name} of {label!r} must be ascending in [0, 1]")
    return x, y


BINS: dict[Width, int] = {"one": 60, "two": 120}
DOT = 0.09  # inches from one dot of a pile to the next


@styled
def permutation_test(statistic: float, null_statistics: npt.ArrayLike, *, width: Width = "one") -> Figure:
    """The attack's AUC on the real memberships, and a dot for each shuffling of memberships between models.

    Args:
        statistic: The statistic on the real memberships.
        null_statistics: The statistic after each shuffling, shape (R,).
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
    axes.set(xlim=ends, ylim=(0, highest), xlabel="AUC of the attack (0.5 is guessing)", yticks=())
    axes.spines["left"].set_visible(False)
    reached = int(np.count_nonzero(shuffled >= statistic))
    verdict = "above all" if not reached else f"reached by {reached:,}"
    labels = [f"shuffled memberships ({count(len(shuffled), 'time')})", f"real memberships: {verdict}"]
    legend_above(figure, [dots, line], labels)
    return figure
