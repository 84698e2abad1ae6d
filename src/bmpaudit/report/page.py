"""The report page: one HTML file that opens offline and asks nothing of the network."""

import base64
import functools
import hashlib
import html
import json
import re
import zlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from bmpaudit.errors import DataError
from bmpaudit.report.bundle import bundle
from bmpaudit.report.words import in_other_words

DATA = re.compile(r'<script type="text/plain" id="data">([^<]*)</script>')
FIXED_TEXT = re.compile(r'>[^<>]+<|(?:aria-label|data-nav)="[^"]*"')
SCRIPT_OF_PART = re.compile(r'data-script="(\w+)"')


def render_page(data: Mapping[str, Any]) -> str:
    """The page of an audit.

    Whatever the names in the data are, they are shown and not run: the data are JSON, deflated and in base64, which no
    character of a name survives in; the scripts put it into the document as text, and the page's
    Content-Security-Policy admits no script but the two that are in it, and no request.

    Args:
        data: What the page shows, by the keys that `docs/report-page.md` lists; numbers finite or None.

    Raises:
        ValueError: if a number is NaN or infinite.
    """
    application = _application()
    library = _library()
    library_hash = _source_hash(zlib.decompress(library).decode())
    policy = (
        f"default-src 'none'; script-src {_source_hash(application)} {library_hash}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(str(data["title"])),
        "verdict": html.escape(str(data["verdict"])),
        "style": _part("page.css"),
        # In ASCII, and without NaN, which is no JSON.
        "data": _packed(zlib.compress(json.dumps(data, allow_nan=False, separators=(",", ":")).encode())),
        "library": _packed(library),
        "application": application,
    }
    template = FIXED_TEXT.sub(lambda found: in_other_words(found[0], data["words"]), _part("page.html"))
    # In one pass, so that a name that looks like a placeholder stays a name.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def data_of_page(page: str) -> dict[str, Any]:
    """The data that a page was made of, from the text of its file.

    Raises:
        DataError: if it is not a page of an audit.
    """
    found = DATA.search(page)
    if found is None:
        raise DataError("not the page of an audit: it holds no data")
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1])))
    return data


@functools.cache
def _application() -> str:
    """The page's own script: `main.js`, given what shows each part of `page.html` that names a script."""
    names = SCRIPT_OF_PART.findall(_part("page.html"))
    imports = [f"import {{show as show_{name}}} from './{name}.js';" for name in names]
    shown = ", ".join(f"show_{name}" for name in names)
    entry = "\n".join(["import {showPage} from './main.js';", *imports, f"showPage([{shown}]);"])
    return bundle(entry, lambda name: _part(f"{name}.js"))


def _part(name: str) -> str:
    return (files("bmpaudit.report") / "page_parts" / name).read_text(encoding="utf-8")


def library_version() -> str:
    """The version of plotly.js, as its first lines state it."""
    found = re.search(rb"plotly\.js .*?v(\S+)", zlib.decompressobj().decompress(_library(), 200))
    return "" if found is None else found[1].decode()


@functools.cache
def _library() -> bytes:
    """The part of plotly.js that draws charts with axes, deflated (`scripts/pack_plotly.py`)."""
    return (files("bmpaudit.report") / "plotly" / "plotly-cartesian.min.js.zlib").read_bytes()


def _packed(deflated: bytes) -> str:
    return base64.b64encode(deflated).decode()


def _source_hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
