"""Figure 1 of the paper: the error rates that BMP allows an attack, for four choices of prior odds and (ε_L, ε_R).

python examples/regions.py regions.png
"""

import argparse
import math
from pathlib import Path

from bmpaudit.privacy import Region
from bmpaudit.report import figures

PANELS = {
    "(a)": Region(prior_odds=1.0, epsilon_left=0.5, epsilon_right=0.5),
    "(b)": Region(prior_odds=4.0, epsilon_left=0.5, epsilon_right=2.0),
    "(c)": Region(prior_odds=0.25, epsilon_left=2.0, epsilon_right=math.inf),
    "(d)": Region(prior_odds=4.0, epsilon_left=math.inf, epsilon_right=2.0),
}


def draw_regions(path: Path) -> None:
    """Draws the four regions into a file whose suffix says the format."""
    figures.regions(PANELS).savefig(path, dpi=200)


def main() -> None:
    """Draws the figure into the file named on the command line."""
    parser = argparse.ArgumentParser(description="Draw Figure 1 of the paper.")
    parser.add_argument("file", nargs="?", type=Path, default=Path("regions.png"))
    path = parser.parse_args().file
    draw_regions(path)
    print(path)


if __name__ == "__main__":
    main()
