"""What was computed from one set of shadow models: a small file, written as a whole after each result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bmpaudit.files import write_text
from bmpaudit.reading.text import read_json


class ResultsFile(Mapping[str, dict[str, Any]]):
    """Results by name, as plain values; `put` stores one at once.

    Raises:
        DataError: if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._results: dict[str, dict[str, Any]] = {}
        if path.exists():
            self._results = read_json(path, {"type": "object", "additionalProperties": {"type": "object"}})

    def put(self, name: str, result: dict[str, Any]) -> None:
        """Stores a result."""
        self._results[name] = result
        write_text(self.path, json.dumps(self._results, indent=0, sort_keys=True) + "\n")

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)
