"""Pictures of estimates: posteriors, joint draws, ε against priors, regions of error rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.special import betaincinv, logit

from bmpaudit.report.figures.style import (
    BLACK,
    BLUE,
    DIAGONAL,
    EPSILON_LEFT,
    EPSILON_RIGHT,
    GREEN,
    NODE_EPSILON_RIGHT,
    PRIOR,
    RASTERIZE_ABOVE,
    REFERENCE,
    VERMILLION,
    Width,
    colour,
    inches,
    legend_above,
    limits,
    new_figure,
    not_shown,
    note,
    parameter_label,
    plain,
    prior_density,
    spread,
    stroke,
    styled,
    vector,
)
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats
from bmpaudit.util.words import interval, number

if TYPE_CHECKING:
    from bmpaudit.attack.counts import ErrorCounts
    from bmpaudit.estimation.posterior import Posterior
    from bmpaudit.privacy import ApproximateMP, Region


LEVEL = 0.9  # of the intervals that are shown
POINTS = 801
TAIL = 0.001  # of the probability, on either side, need not be in the picture


@styled
def posteriors(
    posteriors: Mapping[str, Posterior],
    parameter: str | None = None,
    *,
    floor: float | None = None,
    lower_bound: float | None = None,
    width: Width = "one",
) -> Figure:
    """Posterior densities of one parameter, a panel each, with median and 90 % credible interval in the legend.

    The prior, restricted to the support and normalised there, is a dashed line.

    Args:
        posteriors: One or several, by label.
        parameter: `epsilon_right`, `epsilon_left` or `epsilon`; may be left out where a posterior has only one.
        floor: What the sampling alone gives away, to be marked.
        lower_bound: Proven lower bound, to be marked.
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
    tails = [posterior.marginals[names[label]].quantile([TAIL, 1 - TAIL]) for label, posterior in posteriors.items()]
    low, high = limits(np.concatenate([*tails, [value for value in (floor, lower_bound) if value is not None]]))
    x = np.linspace(low, high, POINTS)
    is_single = len(posteriors) == 1
    figure = new_figure(width, 2.0 if is_single else 0.9 * len(posteriors) + 0.4)
    grid = figure.subplots(len(posteriors), 1, sharex=True, squeeze=False).ravel()
    handles: list[Artist] = []
    has_prior = False
    for place, (axes, (label, posterior)) in enumerate(zip(grid, posteriors.items(), strict=True)):
        name, marginal = names[label], posterior.marginals[names[label]]
        ends = posterior.interval(LEVEL, name)
        text = f"{plain(label, most=24)}: {number(marginal.quantile([0.5])[0])} ({interval(ends.low, ends.high)})"
        handles += axes.plot(x, marginal.pdf(x), **stroke(place), zorder=3, label=text)
        inside = np.linspace(ends.low, ends.high, POINTS)
        axes.fill_between(inside, marginal.pdf(inside), color=colour(place), alpha=0.2, linewidth=0)
        if name in posterior.parameter_names:  # others have a prior of their own
            start = posterior.support_low(name)
            start = start if math.isfinite(start) else low
            axes.plot(x, np.where(x >= start, prior_density(posterior, start, x), 0.0), **PRIOR, gid="prior")
            has_prior = True
    if has_prior:
        handles.append(Line2D([], [], **PRIOR, label="prior"))
    for value, text, shade, pattern in (
        (floor, "sampling alone", REFERENCE, ":"),
        (lower_bound, "proven lower bound", BLACK, "-."),
    ):
        if value is not None:
            lines = [axes.axvline(value, color=shade, linewidth=1.0, linestyle=pattern, zorder=2) for axes in grid]
            lines[-1].set_label(f"{text}: {number(value)}")
            handles.append(lines[-1])
    for axes in grid:
        axes.set(xlim=(low, high), ylim=(0, None))
        axes.set_ylabel("posterior density [1/nat]" if is_single else "density")
    figure.align_ylabels(list(grid))
    grid[-1].set_xlabel(parameter_label(posterior, name))
    legend_above(figure, handles)
    return figure


def _parameter(label: str, posterior: Posterior, wanted: str | None) -> str:
    if wanted is None:
        if len(posterior.parameter_names) > 1:
            raise InputError(f"parameter must be one of {', '.join(posterior.marginals)}, got none for {label!r}")
        return posterior.parameter_names[0]
    if wanted not in posterior.marginals:
        raise InputError(f"parameter must be one of {', '.join(posterior.marginals)} for {label!r}, got {wanted!r}")
    return wanted


BINS = 40  # of the density of draws, across


@styled
def joint_samples(draws: npt.ArrayLike, title: str = "", *, width: Width = "one") -> Figure:
    """Draws of (ε_L, ε_R): their density with both marginals.

    Args:
        draws: Draws of shape (n, 2), ε_L first.
        title: What they are of.
        width: One or two columns.

    Raises:
        InputError: if there are no draws, or they have another shape or are not finite.
    """
    pairs = np.asarray(draws, dtype=np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise InputError(f"draws must have shape (n, 2), n at least 1, got {pairs.shape}")
    if not np.isfinite(pairs).all():
        raise InputError("draws must be finite, got others")
    figure = new_figure(width, min(inches(width), 4.2))
    grid = figure.subplots(2, 2, sharex="col", sharey="row", width_ratios=[4, 1], height_ratios=[1, 4])
    (top, corner), (axes, side) = grid
    corner.remove()
    left, right = pairs.T
    x, y = limits(right), limits(left)
    # About regular hexagons.
    across, up = figure.get_size_inches()
    cells = (BINS, round(BINS / np.sqrt(3) * up / across))
    axes.hexbin(right, left, gridsize=cells, mincnt=1, linewidths=0.1, extent=(*x, *y))
    axes.axline((0, 0), slope=1, **DIAGONAL, zorder=3)
    axes.set(xlim=x, ylim=y, xlabel=EPSILON_RIGHT, ylabel=EPSILON_LEFT)
    for panel, values, ends, orientation in ((top, right, x, "vertical"), (side, left, y, "horizontal")):
        panel.hist(values, bins=BINS, range=ends, orientation=orientation, color=BLUE, alpha=0.6)
        panel.tick_params(labelbottom=False, labelleft=False, left=panel is side, bottom=panel is top)
    top.spines["left"].set_visible(False)
    side.spines["bottom"].set_visible(False)
    figure.suptitle(plain(title), fontsize=9)
    return figure


FLOOR_POINTS = 400
SAME_PRIOR = 1e-9
APART = 0.02


@styled
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

    The floor log(γ/(1-γ)) is e_R of a model that reveals nothing; no node lies below it.

    Args:
        prior_prob: γ(1) of each node, shape (K,).
        median: Posterior median of e_R, shape (K,).
        low: Lower end of its credible interval.
        high: Upper end.
        is_flagged: Nodes to be read with care, such as those about which the decision never varies.
        also_without_flagged: Whether to add a panel without these nodes.
        width: One or two columns.

    Raises:
        InputError: if shapes differ, a prior is no probability, or no node has finite values.
    """
    prior = vector("prior_prob", prior_prob)
    if not ((prior >= 0) & (prior <= 1)).all():
        raise InputError("prior_prob must be in [0, 1]")
    values = [vector(name, given, len(prior)) for name, given in (("median", median), ("low", low), ("high", high))]
    marked = vector("is_flagged", np.zeros(len(prior)) if is_flagged is None else is_flagged, len(prior)) > 0
    table = np.column_stack([prior, *values])
    is_finite = np.isfinite(table).all(axis=1)
    is_same = np.ptp(prior) < SAME_PRIOR
    if is_same:
        table[:, 0] += APART * spread(len(prior))
    x_limits = limits(table[is_finite, 0])
    rows = 2 if also_without_flagged and width == "one" else 1
    columns = 2 if also_without_flagged and width == "two" else 1
    figure = new_figure(width, rows * (2.2 if width == "one" else 2.7))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    floor_x = np.linspace(max(x_limits[0], 1e-4), min(x_limits[1], 1 - 1e-4), FLOOR_POINTS)
    floor_y = logit(floor_x)
    if is_same:
        floor_y[:] = logit(prior[0])
        grid[-1].set_xticks([prior[0]], [f"{prior[0]:.3g}"])
    for place, axes in enumerate(grid):
        _draw_nodes(axes, table[is_finite & ~marked], BLUE, "o")
        if place == 0 and marked.any():
            _draw_nodes(axes, table[is_finite & marked], VERMILLION, "^")
        axes.plot(floor_x, floor_y, color=REFERENCE, linewidth=1.0, gid="floor")
        if is_same:
            note(axes, f"all priors are {prior[0]:.3g}; nodes spread sideways")
        if not is_finite.all():
            note(axes, not_shown(is_finite))
    grid[-1].set(xlim=x_limits, ylim=limits(table[is_finite, 1:]))
    for axes in grid[-1:] if rows == 2 else grid:
        axes.set_xlabel(r"prior probability of membership, $\gamma$")
    for axes in grid if rows == 2 else grid[:1]:
        axes.set_ylabel(r"implied $e_R$ [nats]" if width == "one" else NODE_EPSILON_RIGHT)
    handles: list[Artist] = [
        Line2D([], [], color=shade, marker=marker, linewidth=0.6, markersize=3, label=label)
        for shade, marker, label in ((BLUE, "o", "node with interval"), (VERMILLION, "^", "flagged"))
        if shade == BLUE or marked.any()
    ]
    handles.append(Line2D([], [], color=REFERENCE, linewidth=1.0, label=r"floor $\log\,\gamma/(1-\gamma)$"))
    legend_above(figure, handles)
    return figure


def _draw_nodes(axes: Axes, table: Floats, shade: str, marker: str) -> None:
    prior, median, low, high = table.T
    is_many = len(table) > RASTERIZE_ABOVE
    opacity = float(np.clip(150 / max(len(table), 1), 0.08, 0.5))
    axes.vlines(prior, low, high, color=shade, linewidth=0.5, alpha=opacity, rasterized=is_many, zorder=1.5)
    axes.scatter(prior, median, s=5, marker=marker, color=shade, linewidths=0, alpha=0.7, rasterized=is_many)


FILL = "#DBE6F7"
TICKS = (0.0, 0.5, 1.0)


@styled
def regions(
    regions: Mapping[str, Region],
    *,
    observed: ErrorCounts | None = None,
    guarantee: ApproximateMP | None = None,
    width: Width = "two",
) -> Figure:
    """Figure 1 of the paper: a panel for each region R_η(ε_L, ε_R) of Theorem 6.

    Args:
        regions: One region each, by label.
        observed: Errors of an attack on as many nodes as there are regions; median and 90 % credible interval of
            α ~ Beta(A+1, n0-A+1) and of β ~ Beta(B+1, n1-B+1) are marked.
        guarantee: What a mechanism guarantees of every node; the region that it leaves is outlined in each panel.
        width: One or two columns.

    Raises:
        InputError: if there is no region, or one is an array of regions, or the numbers differ.
    """
    if not regions:
        raise InputError("regions must be at least one, got none")
    if observed is not None and observed.num_nodes != len(regions):
        raise InputError(f"observed must have {len(regions)} nodes as there are regions, got {observed.num_nodes}")
    columns = min(2 if width == "one" else 4, len(regions))
    rows = math.ceil(len(regions) / columns)
    # A panel is as wide as its column allows, but a single one need not fill the page.
    side = min(inches(width) / columns, 2.6)
    legend = 0.25 if guarantee is not None else 0.0
    figure = new_figure(width, rows * (side + 0.2) + 0.1 + legend)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes in grid[len(regions) :]:
        axes.remove()
    for axes, (label, region) in zip(grid, regions.items(), strict=False):
        _draw_region(axes, plain(label, most=20), region)
    if observed is not None:
        _draw_observed(grid, observed)
    if guarantee is not None:
        alpha, beta = np.vstack([guarantee.corners, guarantee.corners[:1]]).T
        delta = rf", $\delta = {_power_of_ten(guarantee.delta)}$" if guarantee.delta > 0 else ""
        label = rf"guaranteed: MP $\varepsilon = {_number(guarantee.epsilon)}${delta}"
        dots = (0, (1, 1.2))
        for axes in grid[: len(regions)]:
            axes.plot(alpha, beta, color=GREEN, label=label, linestyle=dots, linewidth=1.4, zorder=2.8, clip_on=False)
        figure.legend(handles=grid[0].get_lines()[-1:], loc="outside lower center", frameon=False)
    for index, axes in enumerate(grid[: len(regions)]):
        if index + columns >= len(regions):  # nothing below it
            axes.set_xlabel(r"type-I error rate $\alpha$")
            axes.tick_params(labelbottom=True)
        if index % columns == 0:
            axes.set_ylabel(r"type-II error rate $\beta$")
    return figure


def _draw_region(axes: Axes, label: str, region: Region) -> None:
    if region.boundary.shape != (5, 2):
        raise InputError(f"each region must be a single one, got {label} with parameters of shape {region.area.shape}")
    alpha, beta = region.boundary.T
    axes.plot([0, 1], [1, 0], **DIAGONAL, zorder=2.7)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=TICKS, yticks=TICKS)
    axes.spines[:].set(visible=True, color="0.6")
    if region.is_empty:
        axes.text(0.5, 0.5, "empty", ha="center", va="center", backgroundcolor="white")
    else:
        # Above the frame (2.5), part of which some regions have as their edge.
        axes.fill(
            alpha, beta, facecolor=FILL, edgecolor=BLUE, linewidth=1.4, joinstyle="round", zorder=2.6, clip_on=False
        )
    parameters = (region.prior_odds, region.epsilon_left, region.epsilon_right)
    odds, left, right = (_number(float(np.asarray(value))) for value in parameters)
    name = rf"$\mathcal{{R}}_{{{odds}}}({left},\,{right})$"
    axes.set_title(f"{label}  {name}\narea {float(region.area):.3g}", linespacing=1.1, pad=4)


def _draw_observed(grid: npt.NDArray[np.object_], counts: ErrorCounts) -> None:
    probabilities = np.array([[0.5], [(1 - LEVEL) / 2], [(1 + LEVEL) / 2]])
    rates = [
        betaincinv(errors + 1, trials - errors + 1, probabilities)
        for errors, trials in ((counts.false_positives, counts.num_out), (counts.false_negatives, counts.num_in))
    ]
    for axes, (alpha, alpha_low, alpha_high), (beta, beta_low, beta_high) in zip(
        grid, *(r.T for r in rates), strict=False
    ):
        axes.errorbar(
            [alpha],
            [beta],
            xerr=[[alpha - alpha_low], [alpha_high - alpha]],
            yerr=[[beta - beta_low], [beta_high - beta]],
            fmt="o",
            color=VERMILLION,
            markersize=3,
            elinewidth=1.0,
            zorder=3,
            clip_on=False,
        )


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
