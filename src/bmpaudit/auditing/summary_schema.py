"""The JSON Schema of summary.json, as data."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def summary_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `summary.json`, and of `Audit.summary`.

    It ships as `bmpaudit/auditing/summary_schema.json`.

    >>> summary_schema()["title"]
    'summary.json of bmpaudit'
    """
    text = files("bmpaudit.auditing").joinpath("summary_schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
