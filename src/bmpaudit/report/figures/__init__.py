"""Pictures of an audit, for papers: each function takes plain values and returns a `Figure` of one or two columns.

Text from the user (labels, names of classes and columns) is shown as it is: `$` does not start a formula in it. Labels
of axes may be formulas. A figure displays in a notebook without pyplot.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, StrMethodFormatter
from scipy.special import betaincinv, logit

from bmpaudit import attack, estimation, privacy, proof
from bmpaudit.report.figures import style
from bmpaudit.report.figures.style import Width, render, save_figure
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Flags, Floats
from bmpaudit.util.words import confidence, count, interval, number

__all__ = ["Width", "render", "save_figure"]
__all__ += ["exposure", "exposure_by", "joint_samples", "permutation_test", "posteriors", "prior_against_epsilon"]
__all__ += ["regions", "reliability", "roc"]

LOG_FROM = 30.0  # ratio of the largest to the smallest number from which on a logarithmic axis shows more


@style.styled
def exposure(
    curves: Mapping[str, proof.ExposureCurve],
    *,
    without_model: Mapping[float, float] | None = None,
    width: Width = "one",
) -> Figure:
    """Members named correctly from one released model, with limits that allow for more shadow models.

    Certainty is on an axis of log-odds, on which 99 % and 99.9 % are as far apart as 90 % and 99 %. Numbers are on a
    logarithmic axis where they differ by more than a factor of 30. Points that rest on too few models are open. Where
    the sampling alone names any node, how many it names is drawn as a reference.
    """
    figure = style.new_figure(width, 2.1 if width == "one" else 2.8)
    axes = figure.subplots()
    handles = []
    values = np.concatenate([curve.correct.mean for curve in curves.values()])
    positive = values[values > 0]
    is_log = bool(positive.size and positive.max() > LOG_FROM * positive.min())
    bottom = 0.7 * positive.min() if is_log else 0.0  # a logarithmic axis has no place for 0
    for place, (label, curve) in enumerate(curves.items()):
        x = logit(curve.precision)
        handles += axes.plot(x, curve.correct.mean, **style.stroke(place), zorder=3, label=style.plain(label))
        low, high = (np.maximum(limit, bottom) for limit in (curve.correct.low, curve.correct.high))
        axes.fill_between(x, low, high, color=style.colour(place), alpha=0.2, linewidth=0)
        for is_settled, face in ((True, style.colour(place)), (False, "white")):
            chosen = curve.is_settled == is_settled
            axes.plot(
                x[chosen], curve.correct.mean[chosen], "o", color=style.colour(place), markerfacecolor=face, zorder=4
            )
    if without_model and any(without_model.values()):
        x, y = logit(list(without_model)), list(without_model.values())
        handles += axes.plot(x, y, color=style.REFERENCE, linestyle=":", marker="x", label="without a model")
    if is_log:
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(bottom, None)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    else:
        axes.set_ylim(0, max(1.05 * max(float(curve.correct.high.max()) for curve in curves.values()), 1.0))
    every = np.unique(np.concatenate([curve.precision for curve in curves.values()]))
    axes.set_xticks(logit(every), [f"{100 * precision:g}" for precision in every])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="certainty of each name [%]", ylabel="members named per model")
    first = next(iter(curves.values()))
    style.note(axes, f"{count(first.num_models, 'model')}, {confidence(first.level)} confidence")
    style.legend_above(figure, handles)
    return figure


NODE_EXPOSURE = "share of models that name it"
JITTER = 0.32
BOX_HEIGHT = 0.55
WHISKER_REACH = 1.5  # lengths of the box
NUM_BINS = 10  # of a number, at most


@style.styled
def exposure_by(
    values: Floats,
    groups: npt.NDArray[np.generic],
    *,
    group_label: str,
    log_axis: bool = False,
    width: Width = "one",
) -> Figure:
    """Exposure of nodes by class (boxes), or by a number such as degree, homophily or prior (binned means).

    Most nodes are named rarely and a few often, so the mean of a group says more than its median: it is what a group
    contributes to the members named per model. Boxes are Tukey's: they span the quartiles, and whiskers reach the
    furthest node within 1.5 times the length of the box; every node is a point. Bins hold about equally many nodes;
    nodes with the same number are never parted. A logarithmic axis is linear below 1 if the number can be 0.

    Exposures (NaN where it is not known) and groups (names of classes, or numbers) have shape (K,).
    """
    is_number = np.issubdtype(groups.dtype, np.number)
    is_finite = np.isfinite(values) & (np.isfinite(groups) if is_number else True)
    kept, by = values[is_finite], groups[is_finite]
    low, high = style.limits(kept)
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
        style.note_left_out(figure.axes[0], is_finite)
    return figure


def _boxes(values: Floats, groups: npt.NDArray[np.generic], width: Width) -> Figure:
    classes = np.unique(groups)
    figure = style.new_figure(width, 0.24 * len(classes) + 0.5)
    axes = figure.subplots()
    labels = []
    for place, one in enumerate(classes):
        inside = values[groups == one]
        _points(axes, inside, place + JITTER * style.spread(len(inside)), len(values))
        lower, median, upper = np.percentile(inside, [25, 50, 75])
        reach = WHISKER_REACH * (upper - lower)
        within = inside[(inside >= lower - reach) & (inside <= upper + reach)]
        low, high, half = within.min(), within.max(), BOX_HEIGHT / 2
        line: dict[str, Any] = {"color": style.BLUE, "linewidth": 0.9}
        box: dict[str, Any] = {"facecolor": "none", "edgecolor": style.BLUE, "linewidth": 0.9}
        axes.barh(place, upper - lower, BOX_HEIGHT, left=lower, **box, zorder=2)
        axes.hlines([place, place], [low, upper], [lower, high], **line)
        axes.vlines([low, high], place - half / 2, place + half / 2, **line, gid="whiskers")
        axes.vlines(median, place - half, place + half, color=style.BLUE, linewidth=1.8, zorder=3, gid="median")
        axes.plot(inside.mean(), place, "D", color=style.VERMILLION, markersize=4, zorder=4, gid="mean")
        labels.append(f"{style.plain(one, most=22)} ({len(inside):,})")
    axes.set_yticks(range(len(classes)), labels)
    axes.set_ylim(len(classes) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    style.legend_above(figure, axes.lines[:1], ["mean of a class"])
    return figure


def _trend(values: Floats, x: Floats, log_axis: bool, width: Width) -> Figure:
    figure = style.new_figure(width, 2.1 if width == "one" else 2.8)
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
        axes.set_xlim(*style.limits(x))
    _points(axes, x, values, len(values))
    bins = [(x[inside], values[inside]) for inside in _bins(x)]
    middle = [np.median(places) for places, _ in bins]
    lower, upper = np.array([np.percentile(heights, [25, 75]) for _, heights in bins]).T
    band = axes.fill_between(middle, lower, upper, color=style.BLUE, alpha=0.25, linewidth=0, zorder=2)
    (line,) = axes.plot(middle, [heights.mean() for _, heights in bins], color=style.VERMILLION, marker="D", zorder=3)
    style.legend_above(figure, [line, band], ["mean of a bin", "quartiles"])
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
    axes.scatter(
        x, y, s=3, color="0.4", alpha=opacity, linewidths=0, zorder=1, rasterized=number > style.RASTERIZE_ABOVE
    )


CALIBRATION_TICKS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
SMALLEST, LARGEST = 3.0, 28.0  # areas of points, for few and for many challenges


@style.styled
def reliability(diagrams: Mapping[str, proof.Reliability], *, width: Width = "one") -> Figure:
    """Does "99 %" mean 99 %? The share of members among challenges of a stated probability, against it.

    Both axes are log-odds, which show the tails; the size of a point grows with the logarithm of its number of
    challenges. A share of 0 or 1 has no log-odds: it is drawn open, at (C + 1/2)/(n + 1) for C members of n challenges.
    """
    figure = style.new_figure(width, 2.6 if width == "one" else 3.4)
    axes = figure.subplots()
    dashes: dict[str, Any] = {"color": style.REFERENCE, "linewidth": 0.8, "linestyle": "--"}
    diagonal = axes.plot([0, 1], [0, 1], transform=axes.transAxes, **dashes, label="perfect calibration")
    most = max(int(each.num_challenges.max()) for each in diagrams.values())
    handles, ends = [], [-3.0, 3.0]
    for place, (label, diagram) in enumerate(diagrams.items()):
        is_filled = diagram.num_challenges > 0
        size, observed = diagram.num_challenges[is_filled], diagram.observed[is_filled]
        is_extreme = (observed <= 0) | (observed >= 1)
        x = logit(np.clip(diagram.stated[is_filled], 1e-12, 1 - 1e-12))
        y = logit(np.where(is_extreme, (observed * size + 0.5) / (size + 1), observed))
        area = SMALLEST + (LARGEST - SMALLEST) * np.log(size) / np.log(max(most, 2))
        face = np.where(is_extreme, "none", style.colour(place))
        axes.plot(x, y, color=style.colour(place), linewidth=0.7, alpha=0.6)
        text = f"{style.plain(label)}: off by {number(diagram.expected_calibration_error, 4)} on average"
        marks: dict[str, Any] = {"s": area, "c": face, "edgecolors": style.colour(place), "linewidths": 0.9}
        handles.append(axes.scatter(x, y, **marks, zorder=3, label=text))
        ends += [*x, *y]
    low, high = min(ends) - 0.5, max(ends) + 0.5
    ticks = [tick for tick in CALIBRATION_TICKS if low <= logit(tick) <= high]
    for set_ticks in (axes.set_xticks, axes.set_yticks):
        set_ticks(logit(ticks), [f"{100 * tick:g}" for tick in ticks])
    axes.set(xlim=(low, high), ylim=(low, high), xlabel="stated probability [%]", ylabel="share of members [%]")
    axes.set_box_aspect(1)
    style.legend_above(figure, [*handles, *diagonal])
    return figure


LOWEST = 1e-5  # rate that the logarithmic axes go down to, at most


@style.styled
def roc(curves: Mapping[str, tuple[Floats, Floats]], *, width: Width = "one") -> Figure:
    """ROC curves (false and true positive rates, ascending) on linear and on logarithmic axes.

    The legend has the area under each curve that runs from (0, 0) to (1, 1).
    """
    figure = style.new_figure(width, 1.9 if width == "one" else 3.4)
    linear, logarithmic = figure.subplots(1, 2)
    positive = np.concatenate([rates[rates > 0] for curve in curves.values() for rates in curve])
    lowest = min(max(10.0 ** np.floor(np.log10(positive.min())), LOWEST), 0.1) if positive.size else LOWEST
    handles = []
    for index, (label, (fpr, tpr)) in enumerate(curves.items()):
        is_whole = fpr[0] == tpr[0] == 0 and fpr[-1] == tpr[-1] == 1
        area = f", AUC {np.trapezoid(tpr, fpr):.3f}" if is_whole else ""
        handles += linear.plot(fpr, tpr, **style.stroke(index), label=style.plain(label) + area)
        logarithmic.plot(fpr, tpr, **style.stroke(index))
    for axes in (linear, logarithmic):
        ends = [0, lowest, 1]
        diagonal = axes.plot(ends, ends, **style.DIAGONAL, zorder=1, gid="diagonal", label="guessing")
        axes.set_box_aspect(1)
    linear.set(xlim=(0, 1), ylim=(0, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    logarithmic.set_xscale("log", nonpositive="clip")
    logarithmic.set_yscale("log", nonpositive="clip")
    logarithmic.set(xlim=(lowest, 1), ylim=(lowest, 1.2))
    linear.set_ylabel("true positive rate")
    figure.supxlabel("false positive rate", fontsize=9)
    style.legend_above(figure, [*handles, *diagonal])
    return figure


SHUFFLE_BINS: dict[Width, int] = {"one": 12, "two": 24}


@style.styled
def permutation_test(statistic: float, null_statistics: Floats, *, width: Width = "one") -> Figure:
    """The largest statistic of any node: as it is, and a histogram over shuffles of memberships between models."""
    ends = style.limits([statistic, *null_statistics], share=0.06)
    figure = style.new_figure(width, 1.6)
    axes = figure.subplots()
    _, _, bars = axes.hist(null_statistics, SHUFFLE_BINS[width], color=style.FAINT)
    real = axes.axvline(statistic, color=style.BLUE, linewidth=1.6)
    axes.set(xlim=ends, xlabel="largest statistic of any node, $T$", ylabel="shuffles")
    reached = int(np.count_nonzero(np.asarray(null_statistics) >= statistic))
    verdict = "above all" if not reached else f"reached by {reached:,}"
    labels = [f"shuffled memberships ({count(len(null_statistics), 'time')})", f"real memberships: {verdict}"]
    style.legend_above(figure, [bars, real], labels)  # type: ignore[list-item]
    return figure


LEVEL = 0.9  # of the intervals that are shown
POINTS = 801
TAIL = 0.001  # of the probability, on either side, need not be in the picture


@style.styled
def posteriors(
    posteriors: Mapping[str, estimation.Posterior],
    parameter: str | None = None,
    *,
    floor: float | None = None,
    lower_bound: float | None = None,
    width: Width = "one",
) -> Figure:
    """Posterior densities of one parameter, a panel each, with median and 90 % credible interval in the legend.

    The prior, restricted to the support and normalised there, is a dashed line; what the sampling alone gives away
    (`floor`) and what is proven are marked. The parameter may be left out where a posterior has only one.
    """
    if not posteriors:
        raise InputError("posteriors must be at least one, got none")
    for name, value in (("floor", floor), ("lower_bound", lower_bound)):
        if value is not None and not math.isfinite(value):
            raise InputError(f"{name} must be finite, got {name}={value}")
    names = {label: _parameter(label, posterior, parameter) for label, posterior in posteriors.items()}
    tails = [posterior.marginals[names[label]].quantile([TAIL, 1 - TAIL]) for label, posterior in posteriors.items()]
    low, high = style.limits(np.concatenate([*tails, [value for value in (floor, lower_bound) if value is not None]]))
    x = np.linspace(low, high, POINTS)
    is_single = len(posteriors) == 1
    figure = style.new_figure(width, 2.0 if is_single else 0.9 * len(posteriors) + 0.4)
    grid = figure.subplots(len(posteriors), 1, sharex=True, squeeze=False).ravel()
    handles: list[Artist] = []
    has_prior = False
    for place, (axes, (label, posterior)) in enumerate(zip(grid, posteriors.items(), strict=True)):
        name, marginal = names[label], posterior.marginals[names[label]]
        ends = posterior.interval(LEVEL, name)
        text = f"{style.plain(label, most=24)}: {number(marginal.quantile([0.5])[0])} ({interval(ends.low, ends.high)})"
        handles += axes.plot(x, marginal.pdf(x), **style.stroke(place), zorder=3, label=text)
        inside = np.linspace(ends.low, ends.high, POINTS)
        axes.fill_between(inside, marginal.pdf(inside), color=style.colour(place), alpha=0.2, linewidth=0)
        if name in posterior.parameter_names:  # others have a prior of their own
            start = posterior.support_low(name)
            start = start if math.isfinite(start) else low
            axes.plot(
                x, np.where(x >= start, style.prior_density(posterior, start, x), 0.0), **style.PRIOR, gid="prior"
            )
            has_prior = True
    if has_prior:
        handles.append(Line2D([], [], **style.PRIOR, label="prior"))
    for value, text, shade, pattern in (
        (floor, "sampling alone", style.REFERENCE, ":"),
        (lower_bound, "proven lower bound", style.BLACK, "-."),
    ):
        if value is not None:
            lines = [axes.axvline(value, color=shade, linewidth=1.0, linestyle=pattern, zorder=2) for axes in grid]
            lines[-1].set_label(f"{text}: {number(value)}")
            handles.append(lines[-1])
    for axes in grid:
        axes.set(xlim=(low, high), ylim=(0, None))
        axes.set_ylabel("posterior density [1/nat]" if is_single else "density")
    figure.align_ylabels(list(grid))
    grid[-1].set_xlabel(style.parameter_label(posterior, name))
    style.legend_above(figure, handles)
    return figure


def _parameter(label: str, posterior: estimation.Posterior, wanted: str | None) -> str:
    if wanted is None:
        if len(posterior.parameter_names) > 1:
            raise InputError(f"parameter must be one of {', '.join(posterior.marginals)}, got none for {label!r}")
        return posterior.parameter_names[0]
    if wanted not in posterior.marginals:
        raise InputError(f"parameter must be one of {', '.join(posterior.marginals)} for {label!r}, got {wanted!r}")
    return wanted


BINS = 40  # of the density of draws, across


@style.styled
def joint_samples(draws: Floats, title: str, *, width: Width = "one") -> Figure:
    """Draws of (ε_L, ε_R), of shape (n, 2): their density with both marginals."""
    figure = style.new_figure(width, min(style.inches(width), 4.2))
    grid = figure.subplots(2, 2, sharex="col", sharey="row", width_ratios=[4, 1], height_ratios=[1, 4])
    (top, corner), (axes, side) = grid
    corner.remove()
    left, right = draws.T
    x, y = style.limits(right), style.limits(left)
    # About regular hexagons.
    across, up = figure.get_size_inches()
    cells = (BINS, round(BINS / np.sqrt(3) * up / across))
    axes.hexbin(right, left, gridsize=cells, mincnt=1, linewidths=0.1, extent=(*x, *y))
    axes.axline((0, 0), slope=1, **style.DIAGONAL, zorder=3)
    axes.set(xlim=x, ylim=y, xlabel=style.EPSILON_RIGHT, ylabel=style.EPSILON_LEFT)
    for panel, values, ends, orientation in ((top, right, x, "vertical"), (side, left, y, "horizontal")):
        panel.hist(values, bins=BINS, range=ends, orientation=orientation, color=style.BLUE, alpha=0.6)
        panel.tick_params(labelbottom=False, labelleft=False, left=panel is side, bottom=panel is top)
    top.spines["left"].set_visible(False)
    side.spines["bottom"].set_visible(False)
    figure.suptitle(style.plain(title), fontsize=9)
    return figure


FLOOR_POINTS = 400
SAME_PRIOR = 1e-9
APART = 0.02


@style.styled
def prior_against_epsilon(
    prior_prob: npt.ArrayLike,
    median: npt.ArrayLike,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    is_flagged: npt.ArrayLike | None = None,
    *,
    also_without_flagged: bool = False,
    width: Width = "one",
) -> Figure:
    """Figure 3 of the paper: prior probability and implied e_R of each node, with interval and floor.

    The floor log(γ/(1-γ)) is e_R of a model that reveals nothing; no node lies below it. All values have shape (K,):
    γ(1) of each node, median and ends of the credible interval of its e_R, and whether it is to be read with care,
    because the decision about it never varies, for example; a second panel can leave such nodes out.
    """
    prior = style.vector("prior_prob", prior_prob)
    if not ((prior >= 0) & (prior <= 1)).all():
        raise InputError("prior_prob must be in [0, 1]")
    values = [
        style.vector(name, given, len(prior)) for name, given in (("median", median), ("low", low), ("high", high))
    ]
    marked = style.vector("is_flagged", np.zeros(len(prior)) if is_flagged is None else is_flagged, len(prior)) > 0
    table = np.column_stack([prior, *values])
    is_finite = np.isfinite(table).all(axis=1)
    is_same = np.ptp(prior) < SAME_PRIOR
    if is_same:
        table[:, 0] += APART * style.spread(len(prior))
    x_limits = style.limits(table[is_finite, 0])
    rows = 2 if also_without_flagged and width == "one" else 1
    columns = 2 if also_without_flagged and width == "two" else 1
    figure = style.new_figure(width, rows * (2.2 if width == "one" else 2.7))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    floor_x = np.linspace(max(x_limits[0], 1e-4), min(x_limits[1], 1 - 1e-4), FLOOR_POINTS)
    floor_y = logit(floor_x)
    if is_same:
        floor_y[:] = logit(prior[0])
        grid[-1].set_xticks([prior[0]], [f"{prior[0]:.3g}"])
    for place, axes in enumerate(grid):
        _draw_nodes(axes, table[is_finite & ~marked], style.BLUE, "o")
        if place == 0 and marked.any():
            _draw_nodes(axes, table[is_finite & marked], style.VERMILLION, "^")
        axes.plot(floor_x, floor_y, color=style.REFERENCE, linewidth=1.0, gid="floor")
        if is_same:
            style.note(axes, f"all priors are {prior[0]:.3g}; nodes spread sideways")
        if not is_finite.all():
            style.note_left_out(axes, is_finite)
    grid[-1].set(xlim=x_limits, ylim=style.limits(table[is_finite, 1:]))
    for axes in grid[-1:] if rows == 2 else grid:
        axes.set_xlabel(r"prior probability of membership, $\gamma$")
    for axes in grid if rows == 2 else grid[:1]:
        axes.set_ylabel(r"implied $e_R$ [nats]" if width == "one" else style.NODE_EPSILON_RIGHT)
    handles: list[Artist] = [
        Line2D([], [], color=shade, marker=marker, linewidth=0.6, markersize=3, label=label)
        for shade, marker, label in ((style.BLUE, "o", "node with interval"), (style.VERMILLION, "^", "flagged"))
        if shade == style.BLUE or marked.any()
    ]
    handles.append(Line2D([], [], color=style.REFERENCE, linewidth=1.0, label=r"floor $\log\,\gamma/(1-\gamma)$"))
    style.legend_above(figure, handles)
    return figure


def _draw_nodes(axes: Axes, table: Floats, shade: str, marker: str) -> None:
    prior, median, low, high = table.T
    is_many = len(table) > style.RASTERIZE_ABOVE
    opacity = float(np.clip(150 / max(len(table), 1), 0.08, 0.5))
    axes.vlines(prior, low, high, color=shade, linewidth=0.5, alpha=opacity, rasterized=is_many, zorder=1.5)
    axes.scatter(prior, median, s=5, marker=marker, color=shade, linewidths=0, alpha=0.7, rasterized=is_many)


FILL = "#DBE6F7"


@style.styled
def regions(
    regions: Mapping[str, privacy.Region],
    *,
    observed: attack.ErrorCounts | None = None,
    guarantee: privacy.ApproximateMP | None = None,
    width: Width = "two",
) -> Figure:
    """Figure 1 of the paper: a panel for each region R_η(ε_L, ε_R) of Theorem 6.

    Of observed errors on as many nodes as there are regions, median and 90 % credible interval of α ~ Beta(A+1, n0-A+1)
    and of β ~ Beta(B+1, n1-B+1) are marked. What a mechanism guarantees of every node is outlined in each panel.
    """
    if not regions:
        raise InputError("regions must be at least one, got none")
    if observed is not None and observed.num_nodes != len(regions):
        raise InputError(f"observed must have {len(regions)} nodes as there are regions, got {observed.num_nodes}")
    columns = min(2 if width == "one" else 4, len(regions))
    rows = math.ceil(len(regions) / columns)
    # A panel is as wide as its column allows, but a single one need not fill the page.
    side = min(style.inches(width) / columns, 2.6)
    legend = 0.25 if guarantee is not None else 0.0
    figure = style.new_figure(width, rows * (side + 0.2) + 0.1 + legend)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes in grid[len(regions) :]:
        axes.remove()
    for axes, (label, region) in zip(grid, regions.items(), strict=False):
        _draw_region(axes, style.plain(label, most=20), region)
    if observed is not None:
        probabilities = np.array([[0.5], [(1 - LEVEL) / 2], [(1 + LEVEL) / 2]])
        rates = [
            betaincinv(errors + 1, trials - errors + 1, probabilities).T
            for errors, trials in (
                (observed.false_positives, observed.num_out),
                (observed.false_negatives, observed.num_in),
            )
        ]
        marks: dict[str, Any] = {"fmt": "o", "color": style.VERMILLION, "markersize": 3, "elinewidth": 1.0}
        for axes, *shown in zip(grid, *rates, strict=False):
            (alpha, *_), (beta, *_) = shown
            across, up = (np.abs(ends[1:, None] - ends[0]) for ends in shown)
            axes.errorbar([alpha], [beta], xerr=across, yerr=up, **marks, zorder=3, clip_on=False)
    if guarantee is not None:
        alpha, beta = np.vstack([guarantee.corners, guarantee.corners[:1]]).T
        delta = rf", $\delta = {_power_of_ten(guarantee.delta)}$" if guarantee.delta > 0 else ""
        label = rf"guaranteed: MP $\varepsilon = {_number(guarantee.epsilon)}${delta}"
        dots = (0, (1, 1.2))
        for axes in grid[: len(regions)]:
            axes.plot(
                alpha, beta, color=style.GREEN, label=label, linestyle=dots, linewidth=1.4, zorder=2.8, clip_on=False
            )
        figure.legend(handles=grid[0].get_lines()[-1:], loc="outside lower center", frameon=False)
    for index, axes in enumerate(grid[: len(regions)]):
        if index + columns >= len(regions):  # nothing below it
            axes.set_xlabel(r"type-I error rate $\alpha$")
            axes.tick_params(labelbottom=True)
        if index % columns == 0:
            axes.set_ylabel(r"type-II error rate $\beta$")
    return figure


def _draw_region(axes: Axes, label: str, region: privacy.Region) -> None:
    if region.boundary.shape != (5, 2):
        raise InputError(f"each region must be a single one, got {label} with parameters of shape {region.area.shape}")
    alpha, beta = region.boundary.T
    axes.plot([0, 1], [1, 0], **style.DIAGONAL, zorder=2.7)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    axes.spines[:].set(visible=True, color="0.6")
    if region.is_empty:
        axes.text(0.5, 0.5, "empty", ha="center", va="center", backgroundcolor="white")
    else:
        # Above the frame (2.5), part of which some regions have as their edge.
        outline: dict[str, Any] = {"edgecolor": style.BLUE, "linewidth": 1.4, "joinstyle": "round"}
        axes.fill(alpha, beta, facecolor=FILL, **outline, zorder=2.6, clip_on=False)
    parameters = (region.prior_odds, region.epsilon_left, region.epsilon_right)
    odds, left, right = (_number(float(np.asarray(value))) for value in parameters)
    name = rf"$\mathcal{{R}}_{{{odds}}}({left},\,{right})$"
    axes.set_title(f"{label}  {name}\narea {float(region.area):.3g}", linespacing=1.1, pad=4)


def _power_of_ten(value: float) -> str:
    r"""As mathematical text.

    >>> print(_power_of_ten(1e-06), _power_of_ten(0.00025))
    10^{-6} 2.5 \cdot 10^{-4}
    """
    digits, _, power = f"{value:.1e}".partition("e")
    factor = "" if digits == "1.0" else rf"{float(digits):g} \cdot "
    return rf"{factor}10^{{{int(power)}}}"


def _number(value: float) -> str:
    if math.isinf(value):
        return r"\infty" if value > 0 else r"-\infty"
    if 0 < value < 1 and math.isclose(1 / value, round(1 / value)) and 1 / value < 100:
        return f"1/{round(1 / value)}" if value not in (0.5, 0.1) else f"{value:g}"
    return f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"
