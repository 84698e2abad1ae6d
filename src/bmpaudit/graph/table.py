"""CSV and Parquet tables, and where in them a row stands."""

import csv
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet

from bmpaudit.errors import DataError

FORMATS = ("csv", "parquet")
TEXT_COLUMNS = ("node", "class_name", "source", "target")


@dataclass(frozen=True)
class Table:
    """A table and the file it was read from."""

    path: Path
    rows: pd.DataFrame

    def place(self, row: int) -> str:
        """Where to look for a row: the line of a CSV file, counted from 1, or the row of a Parquet file, from 0."""
        if self.path.suffix == ".csv":
            return f"{self.path}: line {_line_of(self.path, row)}"
        return f"{self.path}: row {row}"

    def require(self, *columns: str) -> None:
        """Raises `DataError` unless these columns are there."""
        for column in columns:
            if column not in self.rows:
                found = ", ".join(map(str, self.rows.columns[:8]))
                raise DataError(f"{self.path}: column {column!r} is missing; the first columns are {found}")

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


def find_table(folder: Path, name: str) -> Table:
    """Reads `<name>.csv` or `<name>.parquet`.

    Raises:
        DataError: unless exactly one of them is there and can be read.
    """
    paths = [path for path in (folder / f"{name}.{suffix}" for suffix in FORMATS) if path.exists()]
    if len(paths) != 1:
        raise DataError(
            f"{folder}: must have one of {name}.csv and {name}.parquet, has {'both' if paths else 'neither'}"
        )
    return Table(paths[0], _read(paths[0]))


def _read(path: Path) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            # Without pandas' metadata, which would hide a column that was once an index.
            return pyarrow.parquet.read_table(path).to_pandas(ignore_metadata=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                # Names stay text, so that "007" is not node 7 and "NA" is not a missing value.
                dtype=dict.fromkeys(TEXT_COLUMNS, str),
                keep_default_na=False,
                na_values=[""],
                index_col=False,  # else rows longer than the header would shift all columns
                low_memory=False,  # else a column may get another type in every part of a long file
            )
    except (PermissionError, IsADirectoryError) as failure:
        raise DataError(f"{path}: {failure.strerror}") from None
    # pandas' and pyarrow's parsing errors are ValueErrors or OSErrors
    except (ValueError, OSError, pd.errors.ParserWarning) as damage:
        raise DataError(f"{path}: damaged or not a {path.suffix[1:]} table: {str(damage).splitlines()[0]}") from None


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
