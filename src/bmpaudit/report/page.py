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

from bmpaudit.report.bundle import bundle

SCRIPT_OF_PART = re.compile(r'data-script="(\w+)"')


def render_page(data: Mapping[str, Any]) -> str:
    """The page of an audit.

    Whatever the names in the data are, they are shown and not run: the data are JSON in which no character can end a
    script or begin a tag, the scripts put it into the document as text, and the page's Content-Security-Policy
    admits no script but the two that are in it, and no request.

    Args:
        data: What the page shows, by the keys that `docs/report-page.md` lists; numbers finite or None.

    Raises:
        ValueError: if a number is NaN or infinite.
    """
    application = _application()
    library, library_hash = _library()
    policy = (
        f"default-src 'none'; script-src {_source_hash(application)} {library_hash}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(str(data["title"])),
        "verdict": html.escape(str(data["verdict"])),
        "style": _part("page.css"),
        "data": _json_for_script(data),
        "library": library,
        "application": application,
    }
    # In one pass, so that a name that looks like a placeholder stays a name.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part("page.html"))


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


def _json_for_script(data: Mapping[str, Any]) -> str:
    r"""JSON that is safe inside a script element, and the same value to a JSON parser.

    >>> _json_for_script({"name": "</script>&"})
    '{"name":"\\u003c/script\\u003e\\u0026"}'
    """
    # In ASCII: U+2028 and U+2029, which end lines in JavaScript, are escaped too.
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


@functools.cache
def _library() -> tuple[str, str]:
    """Plotly, deflated to two fifths as base64, and the hash by which the page's policy knows it inflated."""
    from plotly.offline import get_plotlyjs

    source: str = get_plotlyjs()
    return base64.b64encode(zlib.compress(source.encode(), 9)).decode(), _source_hash(source)


def _source_hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
