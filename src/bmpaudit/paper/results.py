"""What was computed from one set of shadow models: a small file, written as a whole after each result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bmpaudit.errors import DataError
from bmpaudit.files import write_text


class ResultsFile(Mapping[str, dict[str, Any]]):
    """Results by name, as plain values; `put` stores one at once.

    Raises:
        DataError: if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._results: dict[str, dict[str, Any]] = {}
        if path.exists():
            try:
                self._results = dict(json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, TypeError) as damage:
                raise DataError(f"{path}: damaged ({damage}); remove it to have its results made again") from None

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
