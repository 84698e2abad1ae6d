"""Pictures of estimates: posteriors, joint draws, marginal effects, ε against priors, regions of error rates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bmpaudit.report.figures.style import (
    BLACK,
    BLUE,
    EPSILON,
    EPSILON_LEFT,
    EPSILON_RIGHT,
    FAINT,
    GREEN,
    NODE_EPSILON_RIGHT,
    RASTERIZE_ABOVE,
    REFERENCE,
    VERMILLION,
    Width,
    colour,
    dashes,
    inches,
    legend_above,
    limits,
    new_figure,
    not_shown,
    note,
    parameter_label,
    plain,
    spread,
    styled,
    vector,
)
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats
from bmpaudit.util.words import count, interval, number, signed

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from bmpaudit.attack.counts import ErrorCounts
    from bmpaudit.estimation.posterior import Posterior
    from bmpaudit.privacy import ApproximateMP, Region


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


# Draws from the joint posterior of (ε_L, ε_R).


BINS = 40


@styled
def joint_samples(samples: Mapping[str, npt.ArrayLike], *, width: Width = "one") -> Figure:
    """Draws of (ε_L, ε_R): one colour for each label, or for a single one its density with both marginals.

    Args:
        samples: Draws by label, each of shape (n, 2), ε_L first.
        width: One or two columns.

    Raises:
        InputError: if there are no draws, or they have another shape or are not finite.
    """
    clouds = _checked(samples)
    if len(clouds) == 1:
        return _with_marginals(*next(iter(clouds.items())), width)
    return _panels({"": clouds}, width)


@styled
def joint_sample_panels(panels: Mapping[str, Mapping[str, npt.ArrayLike]], *, width: Width = "two") -> Figure:
    """Figure 4 of the paper: a panel for each title, in each a colour for each label; all on the same axes.

    Args:
        panels: By title, what `joint_samples` takes.
        width: One or two columns.

    Raises:
        InputError: as `joint_samples`.
    """
    if not panels:
        raise InputError("panels must be at least one, got none")
    return _panels({title: _checked(samples) for title, samples in panels.items()}, width)


def _panels(panels: Mapping[str, Mapping[str, Floats]], width: Width) -> Figure:
    columns = min(2 if width == "one" else 4, len(panels))
    rows = math.ceil(len(panels) / columns)
    side = min(inches(width) / columns, 3.0)
    figure = new_figure(width, rows * (side + 0.1))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    labels = list(dict.fromkeys(label for samples in panels.values() for label in samples))
    points = np.concatenate([draws for samples in panels.values() for draws in samples.values()])
    for index, (title, samples) in enumerate(panels.items()):
        axes = grid.flat[index]
        axes.set_title(plain(title, most=28))
        _diagonal(axes)
        for label, draws in samples.items():
            _cloud(axes, draws, colour(labels.index(label)))
        axes.set(xlim=limits(points[:, 1]), ylim=limits(points[:, 0]))
        if index + columns >= len(panels):
            axes.set_xlabel(EPSILON_RIGHT)
            axes.tick_params(labelbottom=True)
        if index % columns == 0:
            axes.set_ylabel(EPSILON_LEFT)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    handles: list[Artist] = [
        Line2D([], [], color=colour(index), marker="o", linestyle="", markersize=3.5) for index in range(len(labels))
    ]
    handles.append(Line2D([], [], color=REFERENCE, linewidth=0.8, linestyle=(0, (4, 3))))
    legend_above(figure, handles, [*(plain(label) for label in labels), r"$\varepsilon_L = \varepsilon_R$"])
    return figure


def _with_marginals(label: str, draws: Floats, width: Width) -> Figure:
    figure = new_figure(width, min(inches(width), 4.2))
    grid = figure.subplots(2, 2, sharex="col", sharey="row", width_ratios=[4, 1], height_ratios=[1, 4])
    (top, corner), (axes, side) = grid
    corner.remove()
    left, right = draws.T
    x, y = limits(right), limits(left)
    # About regular hexagons.
    across, up = figure.get_size_inches()
    cells = (BINS, round(BINS / np.sqrt(3) * up / across))
    axes.hexbin(right, left, gridsize=cells, mincnt=1, linewidths=0.1, extent=(*x, *y))
    _diagonal(axes, zorder=3)
    axes.set(xlim=x, ylim=y, xlabel=EPSILON_RIGHT, ylabel=EPSILON_LEFT)
    for panel, values, ends, orientation in ((top, right, x, "vertical"), (side, left, y, "horizontal")):
        panel.hist(values, bins=BINS, range=ends, orientation=orientation, color=BLUE, alpha=0.6)
        panel.tick_params(labelbottom=False, labelleft=False, left=panel is side, bottom=panel is top)
    top.spines["left"].set_visible(False)
    side.spines["bottom"].set_visible(False)
    figure.suptitle(plain(label), fontsize=9)
    return figure


def _cloud(axes: Axes, draws: Floats, shade: str) -> None:
    axes.scatter(
        draws[:, 1],
        draws[:, 0],
        s=2.5,
        color=shade,
        alpha=float(np.clip(300 / len(draws), 0.08, 0.6)),
        linewidths=0,
        rasterized=len(draws) > RASTERIZE_ABOVE,
    )


def _diagonal(axes: Axes, zorder: float = 0.5) -> None:
    axes.axline((0, 0), slope=1, color=REFERENCE, linewidth=0.8, linestyle=(0, (4, 3)), zorder=zorder)


def _checked(samples: Mapping[str, npt.ArrayLike]) -> dict[str, Floats]:
    if not samples:
        raise InputError("samples must be at least one, got none")
    clouds = {label: np.asarray(draws, dtype=np.float64) for label, draws in samples.items()}
    for label, draws in clouds.items():
        if draws.ndim != 2 or draws.shape[1] != 2 or not len(draws):
            raise InputError(f"samples must have shape (n, 2), got {draws.shape} for {label!r}")
        if not np.isfinite(draws).all():
            raise InputError(f"samples must be finite, got others for {label!r}")
    return clouds


# Which choice of an experiment moves ε, and by how much?


ROW_HEIGHT = 0.165
JITTER = 0.22
LABELS = {"epsilon_left": EPSILON_LEFT, "epsilon_right": EPSILON_RIGHT}


@dataclass(frozen=True)
class _Row:
    """A line of the picture: the heading of a factor (level None), or one of its levels."""

    factor: str
    level: Any = None


@styled
def marginal_effects(
    table: pd.DataFrame,
    factors: Sequence[str],
    value: str = "epsilon_right",
    *,
    by: str | None = None,
    value_label: str | None = None,
    width: Width = "one",
) -> Figure:
    """Figure 2 of the paper: ε by the level of each factor, all other factors taken together.

    Small dots are single experiments, large ones their mean. Where a factor has two levels, Δ is the difference of
    the two means, second minus first.

    Args:
        table: One row per experiment.
        factors: Columns to compare; levels in the order of a categorical, sorted if numbers, else as they come.
        value: Column of the value to compare.
        by: Column that splits the table into panels side by side, such as the data set.
        value_label: Label of the axis.
        width: One or two columns.

    Raises:
        InputError: if a column is missing, there is no row, or a value is not finite.
    """
    columns = [*factors, value, *([] if by is None else [by])]
    missing = [name for name in columns if name not in table.columns]
    if missing or not factors:
        raise InputError(f"table must have columns {', '.join(columns)}, got {', '.join(map(str, table.columns))}")
    values = table[value].to_numpy(dtype=np.float64)
    if not len(table) or not np.isfinite(values).all():
        raise InputError(f"{value} must be finite in every row, and there must be one")
    rows = [
        row for factor in factors for row in (_Row(factor), *(_Row(factor, level) for level in _levels(table, factor)))
    ]
    panels = [(None, table)] if by is None else [(level, table[table[by] == level]) for level in _levels(table, by)]
    figure = new_figure(width, ROW_HEIGHT * len(rows) + (0.45 if by is None else 0.65))
    grid = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True).ravel()
    for index, (axes, (title, part)) in enumerate(zip(grid, panels, strict=True)):
        if title is not None:
            axes.set_title(plain(title, most=24))
        _draw_panel(axes, part, rows, value, colour(index) if by is not None else BLUE)
    grid[0].set_yticks(
        range(len(rows)), [plain(row.factor if row.level is None else row.level, most=22) for row in rows]
    )
    for tick, row in zip(grid[0].get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if row.level is None else "normal")
    grid[0].set(xlim=limits(values), ylim=(len(rows) - 0.4, -0.6))
    figure.supxlabel(value_label or LABELS.get(value, plain(value)), fontsize=9)
    return figure


def _draw_panel(axes: Axes, table: pd.DataFrame, rows: Sequence[_Row], value: str, shade: str) -> None:
    for place, row in enumerate(rows):
        if row.level is None:
            _annotate_difference(axes, table, row.factor, value, place)
            if place:
                axes.axhline(place - 0.5, color="0.85", linewidth=0.5, zorder=0)
            continue
        found = table.loc[table[row.factor] == row.level, value].to_numpy(dtype=np.float64)
        if not len(found):
            continue
        heights = place + JITTER * spread(len(found))
        axes.scatter(found, heights, s=4, color=FAINT, linewidths=0, alpha=0.8)
        axes.scatter(
            [found.mean()], [place], s=20, color=shade, edgecolors="white", linewidths=0.5, zorder=3, gid="mean"
        )
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color="0.9", linewidth=0.4)
    axes.set_axisbelow(True)


def _annotate_difference(axes: Axes, table: pd.DataFrame, factor: str, value: str, place: int) -> None:
    means = [table.loc[table[factor] == level, value].mean() for level in _levels(table, factor)]
    if len(means) == 2:
        text = f"Δ {signed(float(means[1] - means[0]))}"
        axes.annotate(text, (1, place), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=8)


def _levels(table: pd.DataFrame, column: str) -> list[Any]:
    import pandas as pd

    series = table[column]
    present: NDArray[Any] = series.dropna().unique()
    if isinstance(series.dtype, pd.CategoricalDtype):
        return [level for level in series.dtype.categories if level in set(present)]
    return sorted(present) if pd.api.types.is_numeric_dtype(series.dtype) else list(present)


# Prior probability and leakage of each node.


Flagged = Literal["marked", "left-out", "both"]
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
    flagged: Flagged = "marked",
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
        flagged: `marked`, `left-out`, or `both` in two panels.
        width: One or two columns.

    Raises:
        InputError: if shapes differ, a prior is no probability, or no node has finite values.
    """
    if flagged not in get_args(Flagged):
        raise InputError(f"flagged must be one of {', '.join(get_args(Flagged))}, got flagged={flagged!r}")
    prior = vector("prior_prob", prior_prob)
    if not ((prior >= 0) & (prior <= 1)).all():
        raise InputError("prior_prob must be in [0, 1]")
    values = [vector(name, given, len(prior)) for name, given in (("median", median), ("low", low), ("high", high))]
    marked = vector("is_flagged", np.zeros(len(prior)) if is_flagged is None else is_flagged, len(prior)) > 0
    table = np.column_stack([prior, *values])
    is_finite = np.isfinite(table).all(axis=1)
    shown = is_finite if flagged != "left-out" else is_finite & ~marked
    is_same = np.ptp(prior) < SAME_PRIOR
    if is_same:
        table[:, 0] += APART * spread(len(prior))
    x_limits = limits(table[shown, 0])
    panels = {"marked": [True], "left-out": [False], "both": [True, False]}[flagged]
    side_by_side = flagged == "both" and width == "two"
    rows = 2 if flagged == "both" and width == "one" else 1
    figure = new_figure(width, rows * (2.2 if width == "one" else 2.7))
    grid = figure.subplots(rows, 2 if side_by_side else 1, squeeze=False, sharex=True, sharey=True).ravel()
    floor_x = np.linspace(max(x_limits[0], 1e-4), min(x_limits[1], 1 - 1e-4), FLOOR_POINTS)
    floor_y = np.log(floor_x / (1 - floor_x))
    if is_same:
        with np.errstate(divide="ignore"):
            floor_y[:] = np.log(prior[0]) - np.log1p(-prior[0])
        grid[-1].set_xticks([prior[0]], [f"{prior[0]:.3g}"])
    for axes, with_flagged in zip(grid, panels, strict=True):
        _draw_nodes(axes, table[is_finite & ~marked], BLUE, "o", "nodes")
        if with_flagged and marked.any():
            _draw_nodes(axes, table[is_finite & marked], VERMILLION, "^", "flagged")
        axes.plot(floor_x, floor_y, color=REFERENCE, linewidth=1.0, gid="floor")
        if is_same:
            note(axes, f"all priors are {prior[0]:.3g}; nodes spread sideways")
        if not is_finite.all():
            note(axes, not_shown(is_finite))
    grid[-1].set(xlim=x_limits, ylim=limits(table[shown, 1:]))
    for axes in grid[-1:] if rows == 2 else grid:
        axes.set_xlabel(r"prior probability of membership, $\gamma$")
    for axes in grid if rows == 2 else grid[:1]:
        axes.set_ylabel(r"implied $e_R$ [nats]" if width == "one" else NODE_EPSILON_RIGHT)
    _legend(figure, has_flagged=bool(panels[0] and marked.any()))
    return figure


def _draw_nodes(axes: Axes, table: Floats, shade: str, marker: str, gid: str) -> None:
    prior, median, low, high = table.T
    is_many = len(table) > RASTERIZE_ABOVE
    opacity = float(np.clip(150 / max(len(table), 1), 0.08, 0.5))
    axes.vlines(prior, low, high, color=shade, linewidth=0.5, alpha=opacity, rasterized=is_many, zorder=1.5)
    axes.scatter(prior, median, s=5, marker=marker, color=shade, linewidths=0, alpha=0.7, rasterized=is_many, gid=gid)


def _legend(figure: Figure, has_flagged: bool) -> None:
    handles: list[Artist] = [Line2D([], [], color=BLUE, marker="o", linewidth=0.6, markersize=3)]
    labels = ["node with interval"]
    if has_flagged:
        handles.append(Line2D([], [], color=VERMILLION, marker="^", linewidth=0.6, markersize=3))
        labels.append("flagged")
    handles.append(Line2D([], [], color=REFERENCE, linewidth=1.0))
    legend_above(figure, handles, [*labels, r"floor $\log\,\gamma/(1-\gamma)$"])


# The error rates that an attack on a node can have under BMP, and those that were observed.


FILL = "#DBE6F7"
TICKS = (0.0, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class ErrorRates:
    """Error rates of an attack on K nodes with their spread, arrays of shape (K,).

    Attributes:
        alpha: Type-I error rate.
        beta: Type-II error rate.
        alpha_low: Lower end of the interval of α.
        alpha_high: Upper end.
        beta_low: Lower end of the interval of β.
        beta_high: Upper end.
    """

    alpha: Floats
    beta: Floats
    alpha_low: Floats
    alpha_high: Floats
    beta_low: Floats
    beta_high: Floats

    @classmethod
    def from_counts(cls, counts: ErrorCounts, level: float = 0.9) -> ErrorRates:
        """Median and credible interval of α ~ Beta(A+1, n0-A+1) and of β ~ Beta(B+1, n1-B+1)."""
        from scipy.special import betaincinv  # only here: no drawing needs it

        if not 0 < level < 1:
            raise InputError(f"level must be in (0, 1), got level={level}")
        probabilities = np.array([[0.5], [(1 - level) / 2], [(1 + level) / 2]])
        rates: dict[str, Floats] = {}
        for name, errors, trials in (
            ("alpha", counts.false_positives, counts.num_out),
            ("beta", counts.false_negatives, counts.num_in),
        ):
            middle, low, high = betaincinv(errors + 1, trials - errors + 1, probabilities)
            rates |= {name: middle, f"{name}_low": low, f"{name}_high": high}
        return cls(**rates)


@styled
def regions(
    regions: Sequence[Region] | Mapping[str, Region],
    *,
    observed: ErrorRates | None = None,
    guarantee: ApproximateMP | None = None,
    width: Width = "two",
) -> Figure:
    """Figure 1 of the paper: a panel for each region R_η(ε_L, ε_R) of Theorem 6.

    Args:
        regions: One region each, with a label or without; unlabelled ones are called (a), (b) and so on.
        observed: Error rates to mark, as many as there are regions.
        guarantee: What a mechanism guarantees of every node; the region that it leaves is outlined in each panel.
        width: One or two columns.

    Raises:
        InputError: if there is no region, or one is an array of regions, or the numbers differ.
    """
    if isinstance(regions, Mapping):
        labelled = {plain(label, most=20): region for label, region in regions.items()}
    else:
        labelled = {f"({_letter(index)})": region for index, region in enumerate(regions)}
    if not labelled:
        raise InputError("regions must be at least one, got none")
    if observed is not None and len(observed.alpha) != len(labelled):
        raise InputError(f"observed must have {len(labelled)} nodes as there are regions, got {len(observed.alpha)}")
    columns = min(2 if width == "one" else 4, len(labelled))
    rows = math.ceil(len(labelled) / columns)
    # A panel is as wide as its column allows, but a single one need not fill the page.
    side = min(inches(width) / columns, 2.6)
    legend = 0.25 if guarantee is not None else 0.0
    figure = new_figure(width, rows * (side + 0.2) + 0.1 + legend)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for index, (label, region) in enumerate(labelled.items()):
        _draw_region(grid.flat[index], label, region)
        if observed is not None:
            _draw_observed(grid.flat[index], observed, index)
        if guarantee is not None:
            _draw_guarantee(grid.flat[index], guarantee)
    if guarantee is not None:
        figure.legend(handles=grid.flat[0].get_lines()[-1:], loc="outside lower center", frameon=False)
    for axes in grid.flat[len(labelled) :]:
        axes.remove()
    for index, axes in enumerate(grid.flat[: len(labelled)]):
        if index + columns >= len(labelled):  # nothing below it
            axes.set_xlabel(r"type-I error rate $\alpha$")
            axes.tick_params(labelbottom=True)
        if index % columns == 0:
            axes.set_ylabel(r"type-II error rate $\beta$")
    return figure


def _draw_region(axes: Axes, label: str, region: Region) -> None:
    if region.boundary.shape != (5, 2):
        raise InputError(f"each region must be a single one, got {label} with parameters of shape {region.area.shape}")
    alpha, beta = region.boundary.T
    axes.plot([0, 1], [1, 0], color=REFERENCE, linewidth=0.8, linestyle=(0, (4, 3)), zorder=2.7)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=TICKS, yticks=TICKS)
    axes.spines[:].set(visible=True, color="0.6")
    if region.is_empty:
        axes.text(0.5, 0.5, "empty", ha="center", va="center", backgroundcolor="white")
    else:
        # Above the frame (2.5), part of which some regions have as their edge.
        axes.fill(
            alpha, beta, facecolor=FILL, edgecolor=BLUE, linewidth=1.4, joinstyle="round", zorder=2.6, clip_on=False
        )
    axes.set_title(f"{label}  {_name(region)}\narea {float(region.area):.3g}", linespacing=1.1, pad=4)


def _draw_observed(axes: Axes, observed: ErrorRates, k: int) -> None:
    alpha, beta = observed.alpha[k], observed.beta[k]
    axes.errorbar(
        [alpha],
        [beta],
        xerr=[[alpha - observed.alpha_low[k]], [observed.alpha_high[k] - alpha]],
        yerr=[[beta - observed.beta_low[k]], [observed.beta_high[k] - beta]],
        fmt="o",
        color=VERMILLION,
        markersize=3,
        elinewidth=1.0,
        zorder=3,
        clip_on=False,
    )


def _draw_guarantee(axes: Axes, guarantee: ApproximateMP) -> None:
    alpha, beta = np.vstack([guarantee.corners, guarantee.corners[:1]]).T
    delta = rf", $\delta = {_power_of_ten(guarantee.delta)}$" if guarantee.delta > 0 else ""
    label = rf"guaranteed: MP $\varepsilon = {_number(guarantee.epsilon)}${delta}"
    dots = (0, (1, 1.2))
    axes.plot(alpha, beta, color=GREEN, label=label, linestyle=dots, linewidth=1.4, zorder=2.8, clip_on=False)


def _power_of_ten(value: float) -> str:
    r"""As mathematical text.

    >>> print(_power_of_ten(1e-06), _power_of_ten(0.00025))
    10^{-6} 2.5 \cdot 10^{-4}
    """
    digits, _, power = f"{value:.1e}".partition("e")
    factor = "" if digits == "1.0" else rf"{float(digits):g} \cdot "
    return rf"{factor}10^{{{int(power)}}}"


def _name(region: Region) -> str:
    odds, left, right = (
        _number(float(value))
        for value in map(np.asarray, (region.prior_odds, region.epsilon_left, region.epsilon_right))
    )
    return rf"$\mathcal{{R}}_{{{odds}}}({left},\,{right})$"


def _number(value: float) -> str:
    if math.isinf(value):
        return r"\infty" if value > 0 else r"-\infty"
    if 0 < value < 1 and math.isclose(1 / value, round(1 / value)) and 1 / value < 100:
        return f"1/{round(1 / value)}" if value not in (0.5, 0.1) else f"{value:g}"
    return f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"


def _letter(number: int) -> str:
    return ascii_lowercase[number] if number < len(ascii_lowercase) else str(number + 1)
