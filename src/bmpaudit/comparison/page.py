"""The page of a comparison, its picture, and tables for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bmpaudit.comparison import compare, sides
from bmpaudit.proof import Band
from bmpaudit.report.figures.comparisons import compared_posteriors, comparison
from bmpaudit.report.figures.style import render, save_figure
from bmpaudit.report.page import bullets, paragraphs, picture, static_page, table
from bmpaudit.util.files import atomic_write, write_text
from bmpaudit.util.values import to_json

HASH_DIGITS = 16  # the rest is in compare.json
SHOWN_NODES = 20

EXPOSURE_CAPTION = (
    "Left: how many {nodes} of one released model are named correctly, against how sure the adversary wants to be, "
    "with 95 % bands over models. Right: the difference from {first}, with 95 % intervals; below 0 less is exposed."
)
POSTERIORS_CAPTION = (
    "Left: posterior density of each audit; in thin dashes its prior, scaled to the same upper half: where the two run "
    "together, the data say nothing more. Right: density of the difference from {first}."
)
NOTHING_ESTIMATED = (
    "Nothing: no leakage was found in any of the audits, so that an estimate would mean nothing, or no ε was estimated "
    "in all of them."
)


def write_comparison(result: compare.Comparison, folder: str | Path) -> Path:
    """Writes `compare.html` (returned), `.pdf`, `.png` and `.json`, and `compare_nodes.parquet`."""
    folder = Path(folder)
    exposure = _exposure_figure(result)
    text = _page(result, exposure)
    save_figure(exposure, folder / "compare")
    with atomic_write(folder / "compare_nodes.parquet") as temporary:
        result.node_table().to_parquet(temporary, index=False)
    write_text(folder / "compare.json", to_json(result.to_dict(SHOWN_NODES)) + "\n")
    page = folder / "compare.html"
    write_text(page, text)
    return page


def _page(result: compare.Comparison, exposure: Figure) -> str:
    audits, estimated = result.audits, result.estimated
    nodes_named, first = sides.NAMED[audits[0].side], audits[0].label
    differences, nodes = "", ""
    for each in result.differences:
        basis = f"Intervals are from {each.basis}. {each.proven}"
        differences += table(compare.changed_figures(result, each), "Differences") + paragraphs([basis])
        nodes += paragraphs([each.nodes.sentence], "notice" if each.nodes.not_comparable else "")
        if not each.nodes.not_comparable:
            cells = compare.changed_nodes(result, each, SHOWN_NODES, with_counts=True)
            nodes += table(cells, "Nodes that changed most", num_texts=2)
    posteriors = paragraphs([NOTHING_ESTIMATED])
    if estimated is not None:
        posteriors = paragraphs(estimated.sentences) + bullets(estimated.cautions, "cautions")
        posteriors += table(compare.estimated_epsilons(estimated, with_counts=True), "Posteriors")
        drawn = compared_posteriors(
            {audit.label: compare.posterior_of(audit, estimated.definition)[1] for audit in audits},
            compare.difference_marginals(audits, estimated.definition, estimated.parameter),
            estimated.parameter,
        )
        posteriors += picture(POSTERIORS_CAPTION.format(first=first), _to_svg(drawn))
    settings = table(compare.settings_that_differ(result), "Settings that differ", num_texts=len(audits) + 1)
    marks = [[each.audit.result.fingerprint[:HASH_DIGITS], each.graph_hash[:HASH_DIGITS]] for each in audits]
    provenance = [[each.label, each.path, each.release, *mark] for each, mark in zip(audits, marks, strict=True)]
    texts = {
        "kicker": "Membership privacy audits compared",
        "name": ", ".join(audit.label for audit in audits),
        "subtitle": " · ".join(dict.fromkeys(audit.audit.title for audit in audits)),
        "first": first,
        "nameable": nodes_named,
        "version": version("bmpaudit"),
    }
    parts = {
        "verdicts": paragraphs(result.verdicts, "verdict"),
        "cautions": bullets(result.cautions, "cautions"),
        "audits": table(compare.side_by_side(result), "Side by side"),
        "differences": differences,
        "picture": picture(EXPOSURE_CAPTION.format(nodes=nodes_named, first=first), _to_svg(exposure)),
        "nodes": nodes,
        "estimated": posteriors,
        "settings": settings if result.settings else paragraphs(["None."]),
        "is_not": bullets(compare.IS_NOT),
        "provenance": table((["audit", "folder", "release", "fingerprint", "graph"], provenance), "Provenance", 5),
    }
    return static_page("compare.html", texts, parts)


def _exposure_figure(result: compare.Comparison) -> Figure:
    """Exposure curves and their differences."""
    first = result.audits[0]
    named = [sides.named_with(row.precision) for row in first.named]
    return comparison(
        np.array([row.precision for row in first.named]),
        {audit.label: _band([audit.mean(each) for each in named]) for audit in result.audits},
        {each.label: _band([part.change for part in each.curve]) for each in result.differences},
        sides.NAMED[first.side],
    )


def _to_svg(figure: Figure) -> bytes:
    return render(figure, ["svg"], transparent=True)["svg"]


def _band(means: Sequence[sides.Mean | None]) -> Band:
    known = [each for each in means if each is not None]
    mean, low, high = (np.array([getattr(each, end) for each in known]) for end in ("mean", "low", "high"))
    return Band(mean, low, high)
