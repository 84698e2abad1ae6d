"""Joins the page's ES modules into one script, by following their imports."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

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
