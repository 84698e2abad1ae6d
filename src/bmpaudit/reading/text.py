"""JSON and TOML, of bounded size and depth."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bmpaudit.errors import DataError
from bmpaudit.reading.damage import damage_in, opened

LARGEST_TEXT = 2**28
"""Bytes of a file of text or JSON."""

LARGEST_TOML = 2**16
"""Bytes of a TOML file: a plan has a few thousand, and reading long keys takes time."""

DEEPEST = 64
"""Levels of nested values."""

MOST_DOTS = 256
"""Dots in a line of TOML: each may nest a key, which takes time quadratic in their number."""

Schema = Mapping[str, Any]
"""A JSON Schema (draft 2020-12)."""


def record(**properties: Any) -> Schema:
    """The schema of an object that has just these keys, by the schemas of their values."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_text(path: Path, *, most_bytes: int = LARGEST_TEXT, encoding: str = "utf-8") -> str:
    """The text of a file.

    Raises:
        DataError: if the file is missing, too large or not text.
    """
    with damage_in(path, "text"):
        return _text(path, most_bytes, encoding)


def read_json(path: Path, schema: Schema | None = None, *, remedy: str = "") -> Any:
    """The value of a JSON file.

    Args:
        path: The file.
        schema: What it has to satisfy.
        remedy: What to do if it is damaged, such as "; remove it to have it made again".

    Raises:
        DataError: if the file is missing, too large, damaged, or does not satisfy the schema.
    """
    with damage_in(path, "a JSON file", remedy):
        return parse_json(_text(path, LARGEST_TEXT), schema)


def parse_json(text: str, schema: Schema | None = None) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: if it is not JSON, is nested too deep, or does not satisfy the schema.
    """
    value = json.loads(text)
    _check_depth(value)
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()  # half a character cannot be written again
    if schema is not None:
        check_json(value, schema)
    return value


def check_json(value: Any, schema: Schema) -> None:
    """Raises `ValueError` naming the first part of a JSON value that does not satisfy a schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    wrong = best_match(Draft202012Validator(schema).iter_errors(value))
    if wrong is not None:
        place = wrong.json_path.removeprefix("$").removeprefix(".")
        raise ValueError(f"{place}: {wrong.message}" if place else wrong.message)


def read_toml(path: Path) -> dict[str, Any]:
    """The nested values of a TOML file.

    Raises:
        DataError: if the file is missing, too large or damaged.
    """
    with damage_in(path, "a TOML file"):
        return parse_toml(_text(path, LARGEST_TOML))


def parse_toml(text: str) -> dict[str, Any]:
    """The nested values of a TOML text.

    Raises:
        ValueError: if it is not TOML, or is nested too deep.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        if line.count(".") > MOST_DOTS:
            raise ValueError(f"line {number} must have at most {MOST_DOTS} dots, got {line.count('.'):,}")
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"must be nested at most {DEEPEST} deep") from None
    _check_depth(value)
    return value


def _text(path: Path, most_bytes: int, encoding: str = "utf-8") -> str:
    with opened(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise DataError(f"{path}: must have at most {most_bytes:,} bytes, got {path.stat().st_size:,}")
    return content.decode(encoding)


def _check_depth(value: Any) -> None:
    """Level by level: a function that calls itself could not go deep enough to tell."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [outer for outer in level if isinstance(outer, (dict, list))]
        if not level:
            return
        level = [part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer)]
    raise ValueError(f"must be nested at most {DEEPEST} deep")
