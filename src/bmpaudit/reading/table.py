"""CSV and Parquet tables of numbers and text."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmpaudit.errors import DataError
from bmpaudit.reading.damage import check_unpacked, damage_in, opened

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

CSV, PARQUET = ".csv", ".parquet"
SUFFIXES = (CSV, PARQUET)
TEXT, NUMBERS, KNOWN_NUMBERS = "text", "numbers", "numbers where they are known"
Columns = Mapping[str, str]
"""What columns must hold: `TEXT`, `NUMBERS`, or `KNOWN_NUMBERS`, some of which may be missing."""

POINTER = 8  # bytes that a table takes for a text in it, besides the text


def read_table(
    path: Path, *, text: Collection[str] | None = (), required: Collection[str] | Columns = (), only: bool = False
) -> pd.DataFrame:
    """A CSV or Parquet table, by the end of its name.

    In a CSV table an empty field is missing, and nothing else is. Whole numbers some of which are missing are `Int64`.

    Args:
        path: The file.
        text: Columns of a CSV table that stay text, so that "007" is not 7; None for all. Parquet has types of its own.
        required: Columns that must be there; a mapping says what they must hold, too.
        only: Whether to read no columns but those of a Parquet table.

    Raises:
        DataError: if the file is missing or damaged, lacks a column, would take too much memory, or has a column of
            anything but numbers, flags or text.
    """
    suffix = path.suffix.lower()
    with damage_in(path, f"a {suffix[1:]} table"), opened(path):
        table = _read_parquet(path, required if only else None) if suffix == PARQUET else _read_csv(path, text)
    columns = [str(column) for column in table.columns]
    for column in required:
        if column not in columns:
            first = ", ".join(columns[:8]) or "none"
            raise DataError(f"{path}: column {column!r} is missing; the first columns are {first}")
        if isinstance(required, Mapping):
            _check_kind(path, table[column], required[column])
    return table


def _check_kind(path: Path, column: pd.Series[Any], kind: str) -> None:
    import pandas as pd

    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if is_number == (kind == TEXT):
        raise DataError(f"{path}: column {column.name!r} must hold {kind}, got {column.dtype}")
    if kind != KNOWN_NUMBERS and column.isna().any():
        raise DataError(f"{path}: column {column.name!r} must hold {kind}, got none in row {column.isna().argmax()}")


def _read_csv(path: Path, text: Collection[str] | None) -> pd.DataFrame:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(
            path,
            compression=None,
            dtype=str if text is None else dict.fromkeys(text, str),
            keep_default_na=False,  # "NA" is a name
            na_values=[""],
            index_col=False,  # else rows longer than the header would shift all columns
            low_memory=False,  # else a column may get another type in every part of a long file
        )


def _read_parquet(path: Path, chosen: Collection[str] | None) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(path)
    schema = file.schema_arrow
    if len(set(schema.names)) < len(schema.names):
        raise ValueError("two columns have one name")
    fields = [field for field in schema if chosen is None or field.name in chosen]
    for field in fields:
        if not _is_plain(field.type):
            raise DataError(f"{path}: column {field.name!r} must hold numbers, flags or text, got {field.type}")
    names = [field.name for field in fields]
    check_unpacked(path, "the table", _declared_bytes(file, len(fields)))
    # Texts are read once each, however often they are repeated: their lengths are known before they are put in place.
    is_text = {field.name: _is_text(field.type) for field in fields}
    texts = [name for name in names if is_text[name]]
    table = pyarrow.parquet.ParquetFile(path, read_dictionary=texts).read(columns=names)
    table.validate(full=True)  # else a text that is none would be noticed when it is used
    check_unpacked(path, "the table", sum(_text_bytes(table.column(name)) for name in texts))
    columns: dict[str, pd.Series[Any]] = {}
    for name in names:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        is_whole = pa.types.is_integer(column.type) and column.null_count
        # Without pandas' metadata, which would hide a column that was once an index.
        columns[name] = column.to_pandas(types_mapper=lambda _: pd.Int64Dtype()) if is_whole else column.to_pandas()
    return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))


def _is_text(kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_plain(kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    return _is_text(kind) or any(test(value) for test in tests)


def _declared_bytes(file: pyarrow.parquet.ParquetFile, num_fields: int) -> int:
    """Bytes that a table takes in memory by what the file says of it: a column of one value repeated is tiny in it."""
    about = file.metadata
    if about.num_rows < 0:
        raise ValueError(f"it says that it has {about.num_rows} rows")
    # Of whole groups of rows: to look at what a damaged file says of one column can end the process.
    groups = (about.row_group(group).total_byte_size for group in range(about.num_row_groups))
    return int(sum(max(size, 0) for size in groups) + about.num_rows * POINTER * num_fields)


def _text_bytes(column: pyarrow.ChunkedArray) -> int:
    import pyarrow as pa
    import pyarrow.compute

    total = 0
    for chunk in column.chunks:
        if not pa.types.is_dictionary(chunk.type):
            total += chunk.nbytes
        else:
            lengths = pyarrow.compute.binary_length(chunk.dictionary).cast(pa.int64())
            total += pyarrow.compute.sum(lengths.take(chunk.indices)).as_py() or 0
    return total
