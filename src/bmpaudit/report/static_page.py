"""Pages without a script: one HTML file each, which opens offline and asks nothing of the network.

Every text is escaped, pictures are images (in which no script would run), and the Content-Security-Policy admits no
script and no request at all.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from bmpaudit.util.text import visible

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def static_page(template: str, texts: Mapping[str, str], parts: Mapping[str, str]) -> str:
    """A page.

    Args:
        template: Name of the file in `page_parts` with the page's sections.
        texts: `kicker`, `name` and `subtitle` of the page, and other texts that its sections mention, still unescaped.
        parts: What else its sections mention, as HTML.
    """
    style = _file("page.css") + _file("compare.css")
    known = {name: escape(text) for name, text in texts.items()} | {**parts, "policy": POLICY, "style": style}

    def filled(text: str) -> str:
        # In one pass, so that a name that looks like a placeholder stays a name.
        return re.sub(r"\{\{(\w+)\}\}", lambda match: known[match[1]], text)

    known["sections"] = filled(_file(template))
    return filled(_file("static.html"))


def escape(text: object) -> str:
    """Text as HTML, control characters spelled out, and ε_R, e_L and the like with their index below."""
    return re.sub(r"\b([εe])_([LR])\b", r"<i>\1</i><sub>\2</sub>", html.escape(visible(str(text))))


def table(cells: tuple[Sequence[str], Iterable[Sequence[str]]], label: str, num_texts: int = 1) -> str:
    """A table that scrolls by itself: the first `num_texts` columns hold text, the others numbers."""
    head, rows = cells
    kinds = ["name" if place == 0 else "text" if place < num_texts else "number" for place in range(len(head))]

    top = "".join(f'<th scope="col" class="{kind}">{escape(text)}</th>' for kind, text in zip(kinds, head, strict=True))
    body = ""
    for row in rows:
        cells_of_row = (f'<td class="{kind}">{_cell(text, kind)}</td>' for kind, text in zip(kinds, row, strict=True))
        body += f"<tr>{''.join(cells_of_row)}</tr>"
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def paragraphs(texts: Iterable[str], kind: str = "") -> str:
    """Texts, a paragraph each."""
    return "".join(f"<p{_class(kind)}>{escape(text)}</p>" for text in texts)


def bullets(texts: Sequence[str], kind: str = "") -> str:
    """Texts as a list; nothing if there are none."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul{_class(kind)}>{items}</ul>" if items else ""


def picture(caption: str, svg: bytes) -> str:
    """A picture with what it shows in words."""
    source = base64.b64encode(svg).decode()
    return (
        f'<figure><img alt="{html.escape(visible(caption))}" src="data:image/svg+xml;base64,{source}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _cell(text: str, kind: str) -> str:
    """What stands in parentheses after a number is an interval or a count."""
    shown = escape(text)
    return re.sub(r" (\([^()]*\))$", r' <span class="interval">\1</span>', shown) if kind == "number" else shown


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _file(name: str) -> str:
    return (files("bmpaudit.report") / "page_parts" / name).read_text(encoding="utf-8")
