"""The page of a comparison, its picture, and tables for other programs.

The page is one HTML file without a script, which opens offline and asks nothing of the network.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bmpaudit.comparison.compare import Comparison
from bmpaudit.comparison.sides import (
    NAMED,
    Mean,
    changes,
    named_with,
    side_by_side,
)
from bmpaudit.proof import Band
from bmpaudit.report.figures.comparisons import compared_posteriors, comparison
from bmpaudit.report.figures.style import Width, render, save_figure
from bmpaudit.util import words
from bmpaudit.util.files import atomic_write, write_text
from bmpaudit.util.text import visible
from bmpaudit.util.values import to_json

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
PERCENTILES = ("5\u00a0%", "50\u00a0%", "95\u00a0%")
HASH_DIGITS = 16  # the rest is in compare.json


def render_compare_page(data: Mapping[str, Any], pictures: Mapping[str, tuple[str, bytes]]) -> str:
    """The page of a comparison.

    Every text is escaped, pictures are images (in which no script would run), and the page's Content-Security-Policy
    admits no script and no request at all.

    Args:
        data: What `Comparison.to_dict` gives (docs/compare.md).
        pictures: Caption and SVG: `exposure`, and `estimated` if there is anything estimated.
    """
    audits = data["audits"]
    first = audits[0]["label"]
    parts = {
        "policy": POLICY,
        "style": _part("page.css") + _part("compare.css"),
        "title": _escape(", ".join(audit["label"] for audit in audits)),
        "subtitle": _escape(" · ".join(dict.fromkeys(audit["title"] for audit in audits))),
        "first": _escape(first),
        "named": NAMED[data["side"]],
        "verdicts": "".join(f'<p class="verdict">{_symbols(text)}</p>' for text in data["verdicts"]),
        "cautions": _list(data["cautions"], "cautions"),
        "audits": _side_by_side(audits),
        "differences": "".join(_difference(each) for each in data["differences"]),
        "picture": _picture(*pictures["exposure"]),
        "nodes": "".join(_nodes(each, first) for each in data["nodes"]),
        "estimated": _estimated(data["estimated"], pictures),
        "settings": _settings(data["settings"], [audit["label"] for audit in audits]),
        "is_not": _list(data["is_not"], ""),
        "provenance": _table(
            ["audit", "folder", "release", "fingerprint", "graph"],
            [
                [
                    *(_escape(audit[key]) for key in ("label", "folder", "release")),
                    *(_hash(audit[key]) for key in ("fingerprint", "graph")),
                ]
                for audit in audits
            ],
            num_texts=5,
        ),
        "version": _escape(data["bmpaudit"]),
    }
    # In one pass, so that a name that looks like a placeholder stays a name.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part("compare.html"))


def _side_by_side(audits: Sequence[Mapping[str, Any]]) -> str:
    rows = [[_symbols(name), *map(_escape, cells)] for name, cells in side_by_side(audits)]
    return _table(["per released model", *(_escape(audit["label"]) for audit in audits)], rows, num_texts=1)


def _difference(difference: Mapping[str, Any]) -> str:
    rows = [[_escape(name), *map(_escape, change)] for name, change in changes(difference["figures"])]
    table = _table(["", "difference", "95\u00a0% interval"], rows, num_texts=1)
    return (
        f"<h3>{_escape(difference['audit'])} − {_escape(difference['to'])}</h3>"
        f'<div class="scroll" role="region" aria-label="Differences" tabindex="0">{table}</div>'
        f"<p>Intervals are from {_escape(difference['basis'])}. {_symbols(difference['proven'])}</p>"
    )


def _settings(settings: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    if not settings:
        return "<p>None.</p>"
    rows = [
        [
            f"<code>{_escape(each['key'])}</code>"
            + (' <span class="is-beside">(not counted)</span>' if each["is_beside"] else ""),
            *(_escape(_setting(value)) for value in each["values"]),
        ]
        for each in settings
    ]
    table = _table(["setting", *map(_escape, labels)], rows, num_texts=len(labels) + 1)
    return f'<div class="scroll" role="region" aria-label="Settings that differ" tabindex="0">{table}</div>'


def _nodes(compared: Mapping[str, Any], first: str) -> str:
    section = f"<h3>{_escape(compared['audit'])} compared with {_escape(first)}</h3>"
    if compared["not_comparable"]:
        return section + f'<p class="notice">{_escape(compared["sentence"])}</p>'
    section += f"<p>{_escape(compared['sentence'])}</p>"
    head = [
        *("node", "class", f"exposure, {_escape(first)}", f"exposure, {_escape(compared['audit'])}"),
        "change [points]",
    ]
    rows = [
        [
            _name(row["name"]),
            _name(row["class"]),
            *(
                f"{words.percent(row[f'{name}_exposure'])} "
                f'<span class="interval">({row[f"{name}_named"]:,} of {row[f"{name}_models"]:,})</span>'
                for name in ("first", "second")
            ),
            f"{words.signed(100 * row['change'], 0)} "
            f'<span class="interval">({words.signed(100 * row["change_low"], 0)} to '
            f"{words.signed(100 * row['change_high'], 0)})</span>",
        ]
        for row in compared["changed_most"]
    ]
    table = _table(head, rows, num_texts=2)
    return (
        section + f'<div class="scroll" role="region" aria-label="Nodes that changed most" tabindex="0">{table}</div>'
    )


def _estimated(estimated: Mapping[str, Any] | None, pictures: Mapping[str, tuple[str, bytes]]) -> str:
    if estimated is None:
        return (
            "<p>Nothing: no leakage was found in any of the audits, so that an estimate would mean nothing, or no ε "
            "was estimated in all of them.</p>"
        )
    head = [f"{_symbols(estimated['symbol'])} ({_escape(estimated['definition'])})", *PERCENTILES, "floor", "nodes"]
    more = [None, *(each["more_prob"] for each in estimated["differences"])]
    rows = [
        [
            _escape(row["audit"]),
            *(words.number(row[key]) for key in ("p5", "p50", "p95", "floor")),
            f"{row['num_nodes']:,}",
            words.percent(row["prior_share"]) + (" (dominated)" if row["is_prior_dominated"] else ""),
            "" if larger is None else words.probability(larger),
        ]
        for row, larger in zip(estimated["audits"], more, strict=True)
    ]
    table = _table([*head, "prior’s share", "larger than in the first"], rows, num_texts=1)
    return (
        "".join(f"<p>{_symbols(text)}</p>" for text in estimated["sentences"])
        + _list(estimated["cautions"], "cautions")
        + f'<div class="scroll" role="region" aria-label="Posteriors" tabindex="0">{table}</div>'
        + _picture(*pictures["estimated"])
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], num_texts: int) -> str:
    """A table of finished cells: the first `num_texts` columns hold text, the others numbers."""
    kinds = ["name" if position == 0 else "text" if position < num_texts else "number" for position in range(len(head))]
    top = "".join(f'<th scope="col" class="{kind}">{cell}</th>' for cell, kind in zip(head, kinds, strict=True))
    body = ""
    for row in rows:
        cells = "".join(f'<td class="{kind}">{cell}</td>' for cell, kind in zip(row, kinds, strict=True))
        body += f"<tr>{cells}</tr>"
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _picture(caption: str, svg: bytes) -> str:
    source = base64.b64encode(svg).decode()
    return (
        f'<figure><img alt="{_escape(caption)}" src="data:image/svg+xml;base64,{source}">'
        f"<figcaption>{_symbols(caption)}</figcaption></figure>"
    )


def _list(texts: Sequence[str], kind: str) -> str:
    if not texts:
        return ""
    items = "".join(f"<li>{_symbols(text)}</li>" for text in texts)
    return f'<ul class="{kind}">{items}</ul>' if kind else f"<ul>{items}</ul>"


def _setting(value: Any) -> str:
    if value is None:
        return words.MISSING
    if isinstance(value, list):
        return ", ".join(map(_setting, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _symbols(text: str) -> str:
    """Escaped, and ε_R, e_L and the like with their index below."""
    return re.sub(r"\b([εe])_([LR])\b", r"<i>\1</i><sub>\2</sub>", _escape(text))


def _hash(value: str) -> str:
    return f"<code>{_escape(value[:HASH_DIGITS])}</code>"


def _escape(text: object) -> str:
    return html.escape(visible(str(text)))


def _name(text: object, most: int = 80) -> str:
    """A name from the user, cut if it is too long."""
    name = str(text)
    return _escape(name if len(name) <= most else name[: most - 1] + "…")


def _part(name: str) -> str:
    return (files("bmpaudit.report") / "page_parts" / name).read_text(encoding="utf-8")


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
    named = [named_with(row.precision) for row in first.named]
    return comparison(
        np.array([row.precision for row in first.named]),
        {audit.label: _band([audit.mean(each) for each in named]) for audit in result.audits},
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


def _band(means: Sequence[Mean | None]) -> Band:
    known = [each for each in means if each is not None]
    mean, low, high = (np.array([getattr(each, end) for each in known]) for end in ("mean", "low", "high"))
    return Band(mean, low, high)
