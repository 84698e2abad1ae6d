"""A comparison as a page, a picture, and tables for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bmpaudit.auditing.compare import Comparison
from bmpaudit.files import atomic_write
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


def write_comparison(found: Comparison, folder: str | Path) -> Path:
    """Writes `compare.html`, `compare.pdf`, `compare.png`, `compare.json` and `compare_nodes.parquet`.

    Returns:
        The page's path.
    """
    folder = Path(folder)
    told = found.to_dict()
    nodes = _nodes(found)
    pictures = {
        caption.format(symbol=found.nodes[0].symbol): to_svg(draw(found, (panel,), "one"))
        for panel, caption in CAPTIONS.items()
        if panel != "nodes" or nodes
    }
    save_figure(draw(found), folder / "compare")
    with atomic_write(folder / "compare_nodes.parquet") as temporary:
        found.node_table().to_parquet(temporary, index=False)
    _write(folder / "compare.json", json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    page = folder / "compare.html"
    _write(page, render_compare_page(told, pictures))
    return page


def draw(
    found: Comparison, panels: tuple[Panel, ...] = ("posteriors", "differences", "nodes"), width: Width = "two"
) -> Figure:
    """The picture, or some of its panels, as a matplotlib figure."""
    return comparison(
        {audit.label: audit.posterior for audit in found.audits},
        {each.label: each.marginal for each in found.differences},
        _nodes(found),
        found.parameter,
        node_symbol=found.nodes[0].symbol,
        panels=panels,
        width=width,
    )


def _nodes(found: Comparison) -> dict[str, ComparedNodes]:
    shown = {}
    for each in found.nodes:
        first, second = (each.table[f"{name}_median"].to_numpy(dtype=np.float64) for name in ("first", "second"))
        is_finite = np.isfinite(first) & np.isfinite(second)
        if is_finite.any():
            is_constant = each.table["is_constant"].to_numpy(dtype=bool)
            shown[each.label] = ComparedNodes(first[is_finite], second[is_finite], is_constant[is_finite])
    return shown


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
