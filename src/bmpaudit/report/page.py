"""The page: one HTML file that opens offline, its ES modules joined into one script."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from bmpaudit.util.errors import DataError
from bmpaudit.util.words import in_other_words

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
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # in ASCII, and without NaN, which is no JSON
    parts = {
        "policy": html.escape(policy, quote=False),
        "title": html.escape(str(data["title"])),
        "verdict": html.escape(str(data["answer"]["verdict"])),
        "style": _part("page.css"),
        "data": base64.b64encode(zlib.compress(text.encode())).decode(),
        "library": base64.b64encode(library).decode(),
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


def _source_hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


# The bundler of the page's scripts.

IMPORT = re.compile(r"^import \{([^{}]*)\} from '\./([a-z][a-z0-9_]*)\.js';$", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|class|(?:async )?function) ([A-Za-z_$][\w$]*))", re.MULTILINE)
OTHER = re.compile(r"^\s*(?:import|export)\b.*|\bimport\s*[(.].*", re.MULTILINE)
ENDS_SCRIPT = re.compile(r"</script|<!--", re.IGNORECASE)


@dataclass(frozen=True)
class _Module:
    """A module with its imports and exports taken out of the code."""

    name: str
    code: str
    imports: dict[str, list[tuple[str, str]]]  # by module: pairs of its name for a thing and the name here
    exports: tuple[str, ...]


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """The modules that an entry module needs, and the entry itself, as one script without imports.

    Each module becomes a function that runs once and returns its exports, modules before those that import them, so
    names that are not exported never meet. A module may `await` at its top level. Understood are
    `import {a, b as c} from './name.js';` and `export` before `const`, `class`, `function` and `async function`, all at
    the start of a line.

    Args:
        entry: Source of the first module.
        read: The source of the module `name`, for `./name.js`.

    Raises:
        ValueError: if modules import each other in a circle, a name is imported that is not exported, a module is
            written in another way than the one understood, or the script could not stand inside a script element.
    """
    modules: dict[str, _Module] = {}
    _collect("entry", entry, read, [], modules)
    code = "".join(_wrapped(each, modules) for each in modules.values())
    script = f"(async () => {{\n'use strict';\n{code}}})();\n"
    found = ENDS_SCRIPT.search(script)
    if found:
        raise ValueError(f"the script must not contain {found[0]!r}, which a page reads as its end")
    return script


def _collect(name: str, source: str, read: Callable[[str], str], path: list[str], modules: dict[str, _Module]) -> None:
    """Adds a module after all that it imports."""
    module = _parse(name, source)
    for imported in module.imports:
        if imported in (*path, name):
            circle = [*path, name, imported]
            raise ValueError(f"modules import each other: {' -> '.join(circle[circle.index(imported) :])}")
        if imported not in modules:
            try:
                text = read(imported)
            except OSError as error:
                raise ValueError(f"{name}.js imports {imported}.js, which cannot be read: {error}") from error
            _collect(imported, text, read, [*path, name], modules)
    modules[name] = module


def _parse(name: str, source: str) -> _Module:
    imports: dict[str, list[tuple[str, str]]] = {}
    for match in IMPORT.finditer(source):
        if match[2] in imports:
            raise ValueError(f"{name}.js imports {match[2]}.js twice")
        pairs = [part.split(" as ") for part in map(str.strip, match[1].split(",")) if part]
        imports[match[2]] = [(pair[0].strip(), pair[-1].strip()) for pair in pairs]
    exports = tuple(EXPORT.findall(source))
    if len(set(exports)) < len(exports):
        raise ValueError(f"{name}.js exports a name twice, among {', '.join(exports)}")
    code = EXPORT.sub("", IMPORT.sub("", source))
    other = OTHER.search(code)
    if other:
        raise ValueError(f"{name}.js has an import or export that is not understood: {other[0].strip()}")
    return _Module(name, code.strip(), imports, exports)


def _wrapped(module: _Module, modules: dict[str, _Module]) -> str:
    lines = []
    for imported, names in module.imports.items():
        missing = [name for name, _ in names if name not in modules[imported].exports]
        if missing:
            raise ValueError(f"{module.name}.js imports {', '.join(missing)}, which {imported}.js does not export")
        parts = [name if name == local else f"{name}: {local}" for name, local in names]
        lines.append(f"const {{{', '.join(parts)}}} = {_variable(imported)};")
    for other in modules:
        if re.search(rf"{re.escape(_variable(other))}\b", module.code):
            raise ValueError(f"{module.name}.js uses the name {_variable(other)}, which is that of a module")
    returned = f"return {{{', '.join(module.exports)}}};"
    body = "\n".join([*lines, module.code, returned])
    return f"const {_variable(module.name)} = await (async () => {{\n{body}\n}})();\n"


def _variable(name: str) -> str:
    return f"module$${name}"
