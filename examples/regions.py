"""Figure 1 of the paper: the error rates that BMP allows an attack, for four choices of prior odds and (ε_L, ε_R).

python examples/regions.py regions.png
"""

import argparse
import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bmpaudit.privacy import Region

PANELS = {
    "(a)": Region(prior_odds=1.0, epsilon_left=0.5, epsilon_right=0.5),
    "(b)": Region(prior_odds=4.0, epsilon_left=0.5, epsilon_right=2.0),
    "(c)": Region(prior_odds=0.25, epsilon_left=2.0, epsilon_right=math.inf),
    "(d)": Region(prior_odds=4.0, epsilon_left=math.inf, epsilon_right=2.0),
}

EDGE, FILL = "#1f4e9c", "#dbe6f7"


def draw_regions(path: Path) -> None:
    """Draws the four regions into a file whose suffix says the format."""
    with mpl.rc_context({"font.size": 9, "axes.linewidth": 0.6}):
        figure = Figure(figsize=(6.4, 6.6), layout="constrained")
        for axes, (letter, region) in zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True):
            _draw_region(axes, letter, region)
        figure.axes[0].legend(loc="upper right", frameon=False)
        figure.savefig(path, dpi=200)


def _draw_region(axes: Axes, letter: str, region: Region) -> None:
    alpha, beta = region.boundary.T
    # Above the frame (2.5), part of which two of the regions have as their edge.
    axes.fill(alpha, beta, facecolor=FILL, edgecolor=EDGE, linewidth=1.8, joinstyle="round", zorder=2.6, clip_on=False)
    axes.plot([0, 1], [1, 0], color="0.4", linewidth=0.9, linestyle=(0, (4, 3)), zorder=2.7, label="guessing blind")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=np.linspace(0, 1, 5), yticks=np.linspace(0, 1, 5))
    axes.set_xlabel(r"type-I error $\alpha$")
    axes.set_ylabel(r"type-II error $\beta$")
    axes.spines[:].set_color("0.6")
    axes.set_title(f"{letter}  {_name(region)},  area {float(region.area):.3f}", fontsize=10, pad=8)


def _name(region: Region) -> str:
    odds, left, right = (
        _number(float(value))
        for value in map(np.asarray, (region.prior_odds, region.epsilon_left, region.epsilon_right))
    )
    return rf"$\mathcal{{R}}_{{{odds}}}({left}, {right})$"


def _number(value: float) -> str:
    if math.isinf(value):
        return r"\infty"
    return f"1/{1 / value:g}" if value == 0.25 else f"{value:g}"


def main() -> None:
    """Draws the figure into the file named on the command line."""
    parser = argparse.ArgumentParser(description="Draw Figure 1 of the paper.")
    parser.add_argument("file", nargs="?", type=Path, default=Path("regions.png"))
    path = parser.parse_args().file
    draw_regions(path)
    print(path)


if __name__ == "__main__":
    main()
