"""Error counts as a plain table, CSV or Parquet (docs/attack.md)."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.counts_check import COLUMNS, find_wrong_row
from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.reading.table import CSV, SUFFIXES, read_table

# "007" and "-1" are names.
_NODE_NUMBER = re.compile(r"0|[1-9]\d{0,17}")


def read_counts(path: Path) -> ErrorCounts:
    """See `ErrorCounts.from_table`."""
    _check_suffix(path)
    # All of a CSV table as text: what is not a number can then be shown as it is, and no digit of a number is lost.
    table = read_table(path, text=None, required=COLUMNS)
    for column in map(str, table.columns):
        if column not in COLUMNS:
            raise DataError(f"{path}: unknown column {column!r}; the columns are {', '.join(COLUMNS)}")
    if table.empty:
        raise DataError(f"{path}: no node is left to audit, the table has no row")
    for name in COLUMNS:
        missing = table[name].isna().to_numpy()
        if missing.any():
            what = "missing" if path.suffix == CSV else "missing or NaN"
            raise DataError(f"{_place(path, int(missing.argmax()))}: {name} is {what}")
    columns = {name: _as_numbers(path, table[name]) for name in COLUMNS if name != "node"}
    columns["node"] = _as_nodes(table["node"], may_be_numbers=path.suffix == CSV)
    wrong = find_wrong_row(columns)
    if wrong is not None:
        raise DataError(f"{_place(path, wrong.row)}: {wrong.problem}")
    return ErrorCounts.from_arrays(**columns)


def write_counts(counts: ErrorCounts, path: Path) -> None:
    """See `ErrorCounts.to_table`."""
    _check_suffix(path)
    table = pd.DataFrame({name: getattr(counts, name) for name in COLUMNS})
    with atomic_write(path) as temporary:
        if path.suffix == CSV:
            # Names in quotes: a bare carriage return within one would end the line.
            is_named = counts.node.dtype.kind == "U"
            table.to_csv(temporary, index=False, quoting=csv.QUOTE_NONNUMERIC if is_named else csv.QUOTE_MINIMAL)
        else:
            table.to_parquet(temporary, index=False)


def _check_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: the name of a table must end in {' or '.join(SUFFIXES)}")


def _as_numbers(path: Path, column: "pd.Series[Any]") -> npt.NDArray[Any]:
    if column.dtype.kind in "iufb":
        return column.to_numpy()
    numbers = np.empty(len(column), dtype=np.float64)
    for row, text in enumerate(column):
        try:
            numbers[row] = float(text)
        except (TypeError, ValueError):
            raise DataError(f"{_place(path, row)}: {column.name} must be a number, got {text!r}") from None
    return numbers


def _as_nodes(column: "pd.Series[Any]", *, may_be_numbers: bool) -> npt.NDArray[Any]:
    if column.dtype.kind in "iufb":  # numbers that are not whole are refused with the other checks
        return column.to_numpy()
    names = column.to_numpy(dtype=np.str_)
    is_numbered = may_be_numbers and all(_NODE_NUMBER.fullmatch(name) for name in names)
    return names.astype(np.int64) if is_numbered else names


def _place(path: Path, row: int) -> str:
    """Where to look: editors count lines from 1, and the first is the header; Parquet only has rows."""
    return f"{path}: line {row + 2}" if path.suffix == CSV else f"{path}: row {row}"
