"""Pages: one HTML file each, which opens offline. That of an audit has its ES modules joined into one script.

Others have no script: every text is escaped, pictures are images (in which no script would run), and the
Content-Security-Policy admits no script and no request at all.
"""

import base64
import functools
import hashlib
import html
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from bmpaudit.auditing.result import LEVELS
from bmpaudit.util.errors import DataError
from bmpaudit.util.text import visible
from bmpaudit.util.words import in_other_words

DATA = re.compile(r'<script type="text/plain" id="data">([^<]*)</script>')
FIXED_TEXT = re.compile(r'>[^<>]+<|(?:aria-label|data-nav)="[^"]*"')
SCRIPT_OF_PART = re.compile(r'data-script="(\w+)"')


def render_page(data: Mapping[str, Any]) -> str:
    """The page of an audit from what it shows, by the keys that `docs/report-page.md` lists.

    Whatever the names in the data are, they are shown and not run: the data are JSON, deflated and in base64, which no
    character of a name survives in; the scripts put it into the document as text, and the page's
    Content-Security-Policy admits no script but the two that are in it, and no request.
    """
    application, library = _application(), _library()
    hashes = [hashlib.sha256(script).digest() for script in (application.encode(), zlib.decompress(library))]
    sources = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)
    policy = (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # in ASCII, and without NaN, which is no JSON
    parts = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(str(data["title"])),
        "level": LEVELS[data["answer"]["level"]],
        "verdict": html.escape(str(data["answer"]["verdict"])),
        "style": page_part("page.css"),
        "data": base64.b64encode(zlib.compress(text.encode())).decode(),
        "library": base64.b64encode(library).decode(),
        "application": application,
    }
    template = FIXED_TEXT.sub(lambda found: in_other_words(found[0], data["words"]), page_part("page.html"))
    return filled(template, parts)


def filled(template: str, parts: Mapping[str, str]) -> str:
    """A template with its `{{placeholders}}` replaced, in one pass: a name that looks like one stays a name."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def page_part(name: str) -> str:
    """A file of `page_parts`."""
    return (files("bmpaudit.report") / "page_parts" / name).read_text(encoding="utf-8")


def data_of_page(page: str) -> dict[str, Any]:
    """The data that a page was made of, from the text of its file; `DataError` if it is not a page of an audit."""
    found = DATA.search(page)
    if found is None:
        raise DataError("not the page of an audit: it holds no data")
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1])))
    return data


@functools.cache
def _application() -> str:
    """The page's own script: `main.js`, given what shows each part of `page.html` that names a script."""
    names = SCRIPT_OF_PART.findall(page_part("page.html"))
    imports = [f"import {{show as show_{name}}} from './{name}.js';" for name in names]
    shown = ", ".join(f"show_{name}" for name in names)
    entry = "\n".join(["import {showPage} from './main.js';", *imports, f"showPage([{shown}]);"])
    return bundle(entry, lambda name: page_part(f"{name}.js"))


def library_version() -> str:
    """The version of plotly.js, as its first lines state it."""
    found = re.search(rb"plotly\.js .*?v(\S+)", zlib.decompressobj().decompress(_library(), 200))
    return "" if found is None else found[1].decode()


@functools.cache
def _library() -> bytes:
    """The part of plotly.js that draws charts with axes, deflated (`scripts/pack_plotly.py`)."""
    return (files("bmpaudit.report") / "plotly" / "plotly-cartesian.min.js.zlib").read_bytes()


# The bundler of the page's scripts.

IMPORT = re.compile(r"^import \{([^{}]*)\} from '\./([a-z][a-z0-9_]*)\.js';$", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|class|(?:async )?function) ([A-Za-z_$][\w$]*))", re.MULTILINE)
OTHER = re.compile(r"^\s*(?:import|export)\b.*|\bimport\s*[(.].*", re.MULTILINE)
ENDS_SCRIPT = re.compile(r"</script|<!--", re.IGNORECASE)


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """The modules that an entry module needs, and the entry itself, as one script without imports.

    Each module becomes a function that runs once and returns its exports, modules before those that import them, so
    names that are not exported never meet. A module may `await` at its top level. Understood are
    `import {a, b as c} from './name.js';` and `export` before `const`, `class`, `function` and `async function`, all at
    the start of a line; anything else, an import in a circle, one of what is not exported, or what could not stand
    inside a script element is a ValueError. `read` gives the source of the module `name`, for `./name.js`.
    """
    exports: dict[str, list[str]] = {}
    functions: list[str] = []

    def add(name: str, source: str, path: tuple[str, ...]) -> None:
        """Adds a module after all that it imports; `path` leads from the entry to it."""
        lines = []
        for names, imported in IMPORT.findall(source):
            if imported in path:
                raise ValueError(f"modules import each other: {' -> '.join([*path[path.index(imported) :], imported])}")
            if imported not in exports:
                add(imported, read(imported), (*path, imported))
            parts = [part.strip() for part in names.split(",") if part.strip()]
            missing = [part for part in parts if part.split(" as ")[0] not in exports[imported]]
            if missing:
                raise ValueError(f"{name}.js imports {', '.join(missing)}, which {imported}.js does not export")
            lines.append(f"const {{{', '.join(parts).replace(' as ', ': ')}}} = module$${imported};")
        exports[name] = EXPORT.findall(source)
        code = EXPORT.sub("", IMPORT.sub("", source)).strip()
        if other := OTHER.search(code):
            raise ValueError(f"{name}.js has an import or export that is not understood: {other[0].strip()}")
        body = "\n".join([*lines, code, f"return {{{', '.join(exports[name])}}};"])
        functions.append(f"const module$${name} = await (async () => {{\n{body}\n}})();\n")

    add("entry", entry, ("entry",))
    script = f"(async () => {{\n'use strict';\n{''.join(functions)}}})();\n"
    if found := ENDS_SCRIPT.search(script):
        raise ValueError(f"the script must not contain {found[0]!r}, which a page reads as its end")
    return script


# Pages without a script.

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def static_page(template: str, texts: Mapping[str, str], parts: Mapping[str, str]) -> str:
    """A page with the sections of a template among `page_parts`.

    The texts, which are still to be escaped, are `kicker`, `name` and `subtitle` of the page and others that its
    sections mention; the parts are what else these mention, as HTML.
    """
    style = page_part("page.css") + page_part("compare.css")
    known = {name: escape(text) for name, text in texts.items()} | {**parts, "policy": POLICY, "style": style}
    return filled(page_part("static.html"), {**known, "sections": filled(page_part(template), known)})


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
