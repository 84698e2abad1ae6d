"""A comparison as a page, a picture, and tables for other programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bmpaudit.auditing.comparison import Comparison
from bmpaudit.files import atomic_write, write_text
from bmpaudit.plain import to_json
from bmpaudit.report.compare_page import render_compare_page
from bmpaudit.report.figures.comparison import ComparedNodes, Panel, comparison, to_svg
from bmpaudit.report.figures.style import Width, save_figure

CAPTIONS: dict[Panel, str] = {
    "posteriors": "Posterior density of each audit. In thin dashes its prior, scaled to the same upper half: where the "
    "two run together, the data say nothing more.",
    "differences": "Density of the difference to the first audit. Shaded: where it leaks more than the first.",
    "nodes": "Each node's {symbol} in the first audit and in the other. Above the dotted line it leaks more in the "
    "other.",
}


def write_comparison(result: Comparison, folder: str | Path) -> Path:
    """Writes `compare.html`, `compare.pdf`, `compare.png`, `compare.json` and `compare_nodes.parquet`.

    Returns:
        The page's path.
    """
    folder = Path(folder)
    content = result.to_dict()
    nodes = _nodes(result)
    pictures = {
        caption.format(symbol=result.nodes[0].symbol): to_svg(draw(result, (panel,), "one"))
        for panel, caption in CAPTIONS.items()
        if panel != "nodes" or nodes
    }
    save_figure(draw(result), folder / "compare")
    with atomic_write(folder / "compare_nodes.parquet") as temporary:
        result.node_table().to_parquet(temporary, index=False)
    write_text(folder / "compare.json", to_json(content) + "\n")
    page = folder / "compare.html"
    write_text(page, render_compare_page(content, pictures))
    return page


def draw(
    result: Comparison, panels: tuple[Panel, ...] = ("posteriors", "differences", "nodes"), width: Width = "two"
) -> Figure:
    """The picture, or some of its panels, as a matplotlib figure."""
    return comparison(
        {audit.label: audit.posterior for audit in result.audits},
        {each.label: each.marginal for each in result.differences},
        _nodes(result),
        result.parameter,
        node_symbol=result.nodes[0].symbol,
        panels=panels,
        width=width,
    )


def _nodes(result: Comparison) -> dict[str, ComparedNodes]:
    shown = {}
    for each in result.nodes:
        first, second = (each.table[f"{name}_median"].to_numpy(dtype=np.float64) for name in ("first", "second"))
        is_finite = np.isfinite(first) & np.isfinite(second)
        if is_finite.any():
            is_constant = each.table["is_constant"].to_numpy(dtype=bool)
            shown[each.label] = ComparedNodes(first[is_finite], second[is_finite], is_constant[is_finite])
    return shown
