"""A comparison as a page, a picture, and tables for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bmpaudit.auditing.compare_models import Mean
from bmpaudit.auditing.comparison import Comparison
from bmpaudit.files import atomic_write, write_text
from bmpaudit.plain import to_json
from bmpaudit.report.compare_page import render_compare_page
from bmpaudit.report.compare_words import NAMED, named_with
from bmpaudit.report.figures.compared_posteriors import compared_posteriors
from bmpaudit.report.figures.comparison import NumberNamed, comparison
from bmpaudit.report.figures.render import render, save_figure
from bmpaudit.report.figures.style import Width

EXPOSURE_CAPTION = (
    "Left: how many {nodes} of one released model are named correctly, against how sure the adversary wants to be, "
    "with 95 % bands over models. Right: the difference from {first}, with 95 % intervals; below 0 less is exposed."
)
POSTERIORS_CAPTION = (
    "Left: posterior density of each audit; in thin dashes its prior, scaled to the same upper half: where the two run "
    "together, the data say nothing more. Right: density of the difference from {first}."
)


def write_comparison(result: Comparison, folder: str | Path) -> Path:
    """Writes `compare.html`, `compare.pdf`, `compare.png`, `compare.json` and `compare_nodes.parquet`.

    Returns:
        The page's path.
    """
    folder = Path(folder)
    content = result.to_dict()
    first = result.audits[0]
    picture = draw(result)
    pictures = {
        "exposure": (EXPOSURE_CAPTION.format(nodes=NAMED[first.side], first=first.label), _to_svg(picture)),
    }
    if result.estimated is not None:
        pictures["estimated"] = (POSTERIORS_CAPTION.format(first=first.label), _to_svg(draw_posteriors(result)))
    save_figure(picture, folder / "compare")
    with atomic_write(folder / "compare_nodes.parquet") as temporary:
        result.node_table().to_parquet(temporary, index=False)
    write_text(folder / "compare.json", to_json(content) + "\n")
    page = folder / "compare.html"
    write_text(page, render_compare_page(content, pictures))
    return page


def draw(result: Comparison, width: Width = "two") -> Figure:
    """Exposure curves and their differences as a matplotlib figure."""
    first = result.audits[0]
    named = [named_with(precision) for precision in first.curve.precision]
    return comparison(
        first.curve.precision,
        {audit.label: _band([audit.models.mean(each) for each in named]) for audit in result.audits},
        {each.label: _band([part.change for part in each.curve]) for each in result.differences},
        nodes=NAMED[first.side],
        width=width,
    )


def draw_posteriors(result: Comparison, width: Width = "two") -> Figure:
    """The estimated ε as a matplotlib figure.

    Raises:
        InputError: if nothing is estimated.
    """
    estimated = result.estimated
    return compared_posteriors(
        {} if estimated is None else {each.label: each.posterior for each in estimated.epsilons},
        {} if estimated is None else {each.label: each.marginal for each in estimated.differences},
        "" if estimated is None else estimated.parameter,
        width=width,
    )


def _to_svg(figure: Figure) -> bytes:
    return render(figure, ["svg"], transparent=True)["svg"]


def _band(means: Sequence[Mean | None]) -> NumberNamed:
    known = [each for each in means if each is not None]
    mean, low, high = (np.array([getattr(each, end) for each in known]) for end in ("mean", "low", "high"))
    return NumberNamed(mean, low, high)
