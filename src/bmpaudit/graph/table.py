"""CSV and Parquet tables, and where in them a row stands."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import pandas as pd

from bmpaudit.errors import DataError
from bmpaudit.reading.table import CSV, read_table

FORMATS = ("csv", "parquet")
TEXT_COLUMNS = ("node", "class_name", "source", "target")


@dataclass(frozen=True)
class Table:
    """A table and the file it was read from."""

    path: Path
    rows: pd.DataFrame

    def place(self, row: int) -> str:
        """Where to look for a row: the line of a CSV file, counted from 1, or the row of a Parquet file, from 0."""
        if self.path.suffix == CSV:
            return f"{self.path}: line {_line_of(self.path, row)}"
        return f"{self.path}: row {row}"

    def column(self, name: str) -> "pd.Series[Any]":
        """A column without missing values."""
        column = self.rows[name]
        is_missing = column.isna().to_numpy()
        if is_missing.any():
            raise DataError(f"{self.place(int(is_missing.argmax()))}: {name} is missing")
        return column

    def numbers(self, name: str) -> "pd.Series[Any]":
        """A column of numbers, none of them missing."""
        column = self.column(name)
        if pd.api.types.is_numeric_dtype(column):
            return column
        is_text = pd.to_numeric(column, errors="coerce").isna().to_numpy()
        if not is_text.any():  # digits, stored as text
            raise DataError(f"{self.path}: column {name!r} must hold numbers, got {column.dtype}")
        row = int(is_text.argmax())
        raise DataError(f"{self.place(row)}: {name} must be a number, got {str(column.iloc[row])!r}")


@overload
def find_table(folder: Path, name: str, *required: str) -> Table: ...
@overload
def find_table(folder: Path, name: str, *required: str, is_optional: bool) -> Table | None: ...
def find_table(folder: Path, name: str, *required: str, is_optional: bool = False) -> Table | None:
    """Reads `<name>.csv` or `<name>.parquet`, which must have the required columns.

    Args:
        folder: Where they are.
        name: Name of the table.
        required: Columns it must have.
        is_optional: Whether it may be missing, which gives None; not if a file is named like it otherwise.

    Raises:
        DataError: unless exactly one of them is there and can be read.
    """
    if is_optional and not any(folder.glob(f"{name}*")):
        return None
    paths = [path for path in (folder / f"{name}.{suffix}" for suffix in FORMATS) if path.exists()]
    if len(paths) != 1:
        raise DataError(
            f"{folder}: must have one of {name}.csv and {name}.parquet, has {'both' if paths else 'neither'}"
        )
    return Table(paths[0], read_table(paths[0], text=TEXT_COLUMNS, required=required))


def _line_of(path: Path, row: int) -> int:
    """The line on which a row of a CSV file begins: names may hold line breaks, and blank lines are skipped."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        records = csv.reader(file)
        number, line = -1, 1  # the header is the first record
        for record in records:
            is_blank = not record or (len(record) == 1 and not record[0].strip())
            if not is_blank and number == row:
                return line
            number += not is_blank
            line = records.line_num + 1
    return row + 2
