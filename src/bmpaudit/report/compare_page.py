"""The page of a comparison: one HTML file without a script, which opens offline and asks nothing of the network."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from bmpaudit.report import words

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
PERCENTILES = ("5\u00a0%", "50\u00a0%", "95\u00a0%")
HASH_DIGITS = 16  # the rest is in compare.json


def render_compare_page(data: Mapping[str, Any], pictures: Mapping[str, bytes]) -> str:
    """The page of a comparison.

    Every text is escaped, pictures are images (in which no script would run), and the page's Content-Security-Policy
    admits no script and no request at all.

    Args:
        data: What `Comparison.to_dict` gives (docs/compare.md).
        pictures: SVG by caption.
    """
    audits = data["audits"]
    first = audits[0]["label"]
    symbol = data["symbol"]
    attacks = dict.fromkeys(audit["variant"] for audit in audits)
    parts = {
        "policy": POLICY,
        "style": _part("page.css") + _part("compare.css"),
        "title": _escape(", ".join(audit["label"] for audit in audits)),
        "subtitle": _symbols(f"{symbol} of definition {data['definition']}; attack {', '.join(attacks)}"),
        "first": _escape(first),
        "verdicts": "".join(f'<p class="verdict">{_symbols(text)}</p>' for text in data["verdicts"]),
        "cautions": _list(data["cautions"], "cautions"),
        "audits": _audits(audits),
        "differences": _differences(data["differences"], symbol),
        "pictures": "".join(_picture(caption, svg) for caption, svg in pictures.items()),
        "settings": _settings(data["settings"], [audit["label"] for audit in audits]),
        "nodes": "".join(_nodes(each, first) for each in data["nodes"]),
        "is_not": _list(data["is_not"], ""),
        "provenance": _table(
            ["audit", "folder", "fingerprint", "graph"],
            [
                [
                    _escape(audit["label"]),
                    _escape(audit["folder"]),
                    *(_hash(audit[key]) for key in ("fingerprint", "graph")),
                ]
                for audit in audits
            ],
            num_texts=4,
        ),
        "version": _escape(data["bmpaudit"]),
    }
    # In one pass, so that a name that looks like a placeholder stays a name.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part("compare.html"))


def _audits(audits: Sequence[Mapping[str, Any]]) -> str:
    head = ["audit", "settings", *PERCENTILES, "floor", "proven", "nodes", "prior’s share"]
    rows = [
        [
            _escape(audit["label"]),
            _escape(audit["title"]),
            *(words.number(audit[key]) for key in ("p5", "p50", "p95", "floor")),
            "nothing" if audit["proven"] is None else words.number(audit["proven"]),
            f"{audit['num_nodes']:,}",
            words.percent(audit["prior_share"]) + (" (dominated)" if audit["is_prior_dominated"] else ""),
        ]
        for audit in audits
    ]
    return _table(head, rows, num_texts=2)


def _differences(differences: Sequence[Mapping[str, Any]], symbol: str) -> str:
    head = ["audit", *(f"{_symbols(symbol)} {end}" for end in PERCENTILES), "probability of leaking more"]
    rows = [
        [
            _escape(each["audit"]),
            *(words.signed(each[key]) for key in ("p5", "p50", "p95")),
            words.probability(each["more_prob"]),
        ]
        for each in differences
    ]
    return _table(head, rows, num_texts=1)


def _settings(settings: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    if not settings:
        return "<p>None.</p>"
    rows = [
        [
            f"<code>{_escape(each['key'])}</code>"
            + (' <span class="is-beside">(does not affect the posterior)</span>' if each["is_beside"] else ""),
            *(_escape(_setting(value)) for value in each["values"]),
        ]
        for each in settings
    ]
    table = _table(["setting", *map(_escape, labels)], rows, num_texts=len(labels) + 1)
    return f'<div class="scroll" role="region" aria-label="Settings that differ" tabindex="0">{table}</div>'


def _nodes(compared: Mapping[str, Any], first: str) -> str:
    section = f"<h3>{_escape(compared['audit'])} compared with {_escape(first)}</h3>"
    if compared["not_comparable"]:
        return section + f'<p class="notice">{_escape(compared["not_comparable"])}.</p>'
    section += f"<p>{_escape(compared['sentence'])}</p>"
    symbol = _symbols(compared["symbol"])
    rows_shown = compared["changed_most"]
    has_flags = any(row["is_constant"] for row in rows_shown)
    head = [
        *("node", "class", f"{symbol}, {_escape(first)}", f"{symbol}, {_escape(compared['audit'])}", "change"),
        "probability of leaking more",
        *(["flag"] if has_flags else []),
    ]
    rows = [
        [
            _escape(row["name"]),
            _escape(row["class"]),
            *(_interval(row, name, words.number) for name in ("first", "second")),
            _interval(row, "change", words.signed),
            words.probability(row["more_prob"]),
            *(["constant decision" if row["is_constant"] else ""] if has_flags else []),
        ]
        for row in rows_shown
    ]
    table = _table(head, rows, num_texts=2)
    return (
        section + f'<div class="scroll" role="region" aria-label="Nodes that changed most" tabindex="0">{table}</div>'
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


def _interval(row: Mapping[str, Any], name: str, write: Callable[[words.Number], str]) -> str:
    low, middle, high = (write(row[f"{name}_{end}"]) for end in ("low", "median", "high"))
    return f'{middle} <span class="interval">({low} to {high})</span>'


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
    return html.escape(str(text))


def _part(name: str) -> str:
    return (files("bmpaudit.report") / "page_parts" / name).read_text(encoding="utf-8")
