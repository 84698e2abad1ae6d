"""The error rates that an attack on a node can have under BMP, and those that were observed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.report.figures.style import BLUE, GREEN, REFERENCE, VERMILLION, Width, inches, new_figure, plain, styled

if TYPE_CHECKING:
    from bmpaudit.attack.counts import ErrorCounts
    from bmpaudit.privacy import ApproximateMP, Region

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
        labelled = {f"({_letter(number)})": region for number, region in enumerate(regions)}
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
    for number, (label, region) in enumerate(labelled.items()):
        _draw_region(grid.flat[number], label, region)
        if observed is not None:
            _draw_observed(grid.flat[number], observed, number)
        if guarantee is not None:
            _draw_guarantee(grid.flat[number], guarantee)
    if guarantee is not None:
        figure.legend(handles=grid.flat[0].get_lines()[-1:], loc="outside lower center", frameon=False)
    for axes in grid.flat[len(labelled) :]:
        axes.remove()
    for number, axes in enumerate(grid.flat[: len(labelled)]):
        if number + columns >= len(labelled):  # nothing below it
            axes.set_xlabel(r"type-I error rate $\alpha$")
            axes.tick_params(labelbottom=True)
        if number % columns == 0:
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
    style = {"linestyle": (0, (1, 1.2)), "linewidth": 1.4, "zorder": 2.8, "clip_on": False}
    axes.plot(alpha, beta, color=GREEN, label=label, **style)


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
