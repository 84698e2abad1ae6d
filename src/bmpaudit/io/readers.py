"""One safe reader for each kind of file: archives of arrays, tables, JSON and TOML.

What a file declares (sizes, types, names) is checked before anything of that size is read, only what is asked for is
read, nothing is unpickled, and whatever is wrong (a file is missing, damaged or too large) is a one-line `DataError`.
"""

from __future__ import annotations

import json
import math
import stat
import tomllib
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bmpaudit.io.remote_folder import RemoteFolder
from bmpaudit.util.errors import DataError, UntrustedCodeError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

LARGEST_UNPACKED = 2**30  # bytes that a small file may take in memory
MOST_EXPANSION = 200  # bytes that a large file may take in memory, for each of its own


@contextmanager
def damage_in(path: Path | RemoteFolder, what: str, remedy: str = "") -> Iterator[None]:
    """Whatever cannot be read in the block is reported as damage of the file, in one line.

    A damaged file can make a parser raise nearly anything; only a lack of memory is not the file's. `what` it should
    have been is such as "an .npz archive", and a `remedy` such as "; remove it to have it made again".
    """
    try:
        yield
    except (DataError, UntrustedCodeError, MemoryError):
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (PermissionError, IsADirectoryError) as failure:
        raise DataError(f"{path}: {failure.strerror}") from None
    except RecursionError:
        raise DataError(f"{path}: damaged or not {what}: it is nested too deep{remedy}") from None
    except Exception as damage:
        # What the parser has said, in one line and not without end.
        reason = " ".join(str(damage).split()) or type(damage).__name__
        if isinstance(damage, KeyError):
            reason = f"{reason} is missing"
        reason = reason if len(reason) <= 300 else f"{reason[:300]}…"
        raise DataError(f"{path}: damaged or not {what}: {reason}{remedy}") from None


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading: not a device or a pipe, which may have no end."""
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # opening a folder says what is wrong with it
        raise DataError(f"{path}: not a regular file")
    with path.open("rb") as file:
        yield file


def check_unpacked(path: Path, what: str, num_bytes: int) -> None:
    """Raises `DataError` if what is to be read from a file would take far more memory than its size tells."""
    most = max(LARGEST_UNPACKED, MOST_EXPANSION * path.stat().st_size)
    if num_bytes > most:
        raise DataError(f"{path}: {what} must take at most {most:,} bytes of memory, got {num_bytes:,}")


# JSON and TOML, of bounded size and depth.

LARGEST_TEXT = 2**28  # bytes of a file of text or JSON
LARGEST_TOML = 2**16  # bytes of a TOML file: a plan has a few thousand, and reading long keys takes time
DEEPEST = 64  # levels of nested values
MOST_DOTS = 256  # dots in a line of TOML: each may nest a key, which takes time quadratic in their number


def read_text(path: Path, *, encoding: str = "utf-8") -> str:
    """The text of a file."""
    with damage_in(path, "text"):
        return _text(path, LARGEST_TEXT, encoding)


def read_json(path: Path | RemoteFolder, *, remedy: str = "") -> Any:
    """The value of a JSON file; see `damage_in` for `remedy`."""
    with damage_in(path, "a JSON file", remedy):
        return parse_json(_text(path, LARGEST_TEXT))


def parse_json(text: str) -> Any:
    """The value of a JSON text; `ValueError` if it is not JSON, or is nested too deep."""
    value = json.loads(text)
    _check_depth(value)
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()  # half a character cannot be written again
    return value


def read_toml(path: Path) -> dict[str, Any]:
    """The nested values of a TOML file."""
    with damage_in(path, "a TOML file"):
        return parse_toml(_text(path, LARGEST_TOML))


def parse_toml(text: str) -> dict[str, Any]:
    """The nested values of a TOML text; `ValueError` if it is not TOML, or is nested too deep."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.count(".") > MOST_DOTS:
            raise ValueError(f"line {number} must have at most {MOST_DOTS} dots, got {line.count('.'):,}")
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"must be nested at most {DEEPEST} deep") from None
    _check_depth(value)
    return value


def _text(path: Path | RemoteFolder, most_bytes: int, encoding: str = "utf-8") -> str:
    if isinstance(path, RemoteFolder):
        content = path.read_bytes(most_bytes + 1)
    else:
        with opened(path) as file:
            content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        size = "more" if isinstance(path, RemoteFolder) else f"{path.stat().st_size:,}"
        raise DataError(f"{path}: must have at most {most_bytes:,} bytes, got {size}")
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


# NumPy's `.npz` archives and `.npy` arrays, without pickles.

Arrays = dict[str, npt.NDArray[Any]]

ARCHIVE = "an .npz archive"
KIND_NAMES = {
    "b": "flags",
    "i": "whole numbers",
    "u": "unsigned numbers",
    "f": "numbers",
    "c": "complex numbers",
    "S": "bytes",
    "U": "text",
}
"""What arrays may hold, by NumPy's letters: no dates, records or objects."""

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# What NumPy writes; other methods may ask for any amount of memory to unpack.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def archive_names(path: Path, *, all_members: bool = False) -> list[str]:
    """The names of all arrays in an `.npz` archive, in the order of the file.

    With `all_members`, the whole names of members that are no arrays come after them.
    """
    with damage_in(path, ARCHIVE), opened(path) as file, _archive(file) as archive:
        others = [name for name in archive.namelist() if not name.endswith(".npy")] if all_members else []
        return [*_members(archive), *others]


def read_archive(
    path: Path, names: Collection[str] | None = None, *, required: Collection[str] = (), only: bool = False
) -> Arrays:
    """Arrays of an `.npz` archive, in the order of the file: of those `names`, and all that are `required`.

    `DataError` if the file is missing or damaged, lacks a required array, has another one and these are to be the
    `only` ones, would take too much memory, or if an array that is read holds anything but flags, numbers or text.
    """
    with damage_in(path, ARCHIVE), opened(path) as file, _archive(file) as archive:
        members = _members(archive)
        for name in required:
            if name not in members:
                raise DataError(
                    f"{path}: key {name!r} is missing; the archive has {', '.join(sorted(members)) or 'nothing'}"
                )
        known = (*required, *(names or ()))
        for name in members:
            if only and name not in known:
                raise DataError(f"{path}: unknown array {name!r}; there may be {', '.join(known)}")
        chosen = {name: member for name, member in members.items() if names is None or name in known}
        check_unpacked(path, "its arrays", sum(member.file_size for member in chosen.values()))
        arrays = {}
        for name, member in chosen.items():
            if member.compress_type not in METHODS:
                raise ValueError(f"{name} is compressed by method {member.compress_type}, must be stored or deflated")
            with archive.open(member) as content:
                arrays[name] = _read(content, name, member.file_size)
        return arrays


def read_array(path: Path) -> npt.NDArray[Any]:
    """The array of an `.npy` file; `DataError` if that is damaged, or holds anything but flags, numbers or text."""
    with damage_in(path, "an .npy array"), opened(path) as file:
        return _read(file, "it", path.stat().st_size)


def checked(arrays: Arrays, name: str, kinds: str, *shape: int | None) -> npt.NDArray[Any]:
    """One of several arrays; `ValueError` unless it is there, without NaN, and holds what it is said to hold.

    `kinds` are NumPy's letters of the kinds of entries that it may have, such as "iu" for whole numbers, `shape` its
    extents, None for any.
    """
    if name not in arrays:
        raise ValueError(f"array {name} is missing")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if array.dtype.kind not in kinds or not fits:
        wanted = " or ".join(KIND_NAMES[kind] for kind in kinds)
        extents = ", ".join("any" if extent is None else str(extent) for extent in shape)
        raise ValueError(f"{name} must be {wanted} of shape ({extents}), got {array.dtype} of shape {array.shape}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"{name} must not be NaN")
    return array


def _archive(file: IO[bytes]) -> zipfile.ZipFile:
    magic = file.read(len(np.lib.format.MAGIC_PREFIX))
    file.seek(0)
    if magic == np.lib.format.MAGIC_PREFIX:
        _read_header(file, "it")  # says if it is pickled
        raise ValueError("it is a single array")
    return zipfile.ZipFile(file)


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive by name; members of other kinds are not ours."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise ValueError(f"{name} is there twice")
        if member.filename.endswith(".npy"):
            members[name] = member
    return members


def _read(file: IO[bytes], name: str, num_bytes: int) -> npt.NDArray[Any]:
    """An array whose header agrees with the number of bytes that are there."""
    shape, dtype = _read_header(file, name)
    there, declared = num_bytes - file.tell(), math.prod(shape) * dtype.itemsize
    if any(extent < 0 for extent in shape) or declared > there or (dtype.itemsize == 0 and math.prod(shape) > 0):
        raise ValueError(f"{name} of shape {shape} and type {dtype} cannot be in {there:,} bytes")
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False)
    if dtype.kind == "U":  # characters that are none could be neither printed nor written, after all the work
        codes = np.ascontiguousarray(array).reshape(-1).view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        is_none = (codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))  # not in Unicode, or half a character
        if is_none.any():
            raise ValueError(f"{name} must be text, got {int(codes[is_none.argmax()]):#x}, which is no character")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the Python that wrote it
        try:
            version = np.lib.format.read_magic(file)
            if version not in HEADERS:
                raise ValueError(f"{name} has a header of version {version}, must be (1, 0) or (2, 0)")
            shape, _, dtype = HEADERS[version](file)
        except MemoryError:  # which Python's parser also raises for what is nested too deep
            raise ValueError(f"{name} has a header that cannot be parsed") from None
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, which are never loaded")
    if dtype.kind not in KIND_NAMES or dtype.subdtype is not None:
        raise ValueError(f"{name} must hold flags, numbers or text, got {dtype}")
    return shape, dtype


# CSV and Parquet tables of numbers and text.

CSV, PARQUET = ".csv", ".parquet"
SUFFIXES = (CSV, PARQUET)
TEXT, FLAGS, NUMBERS, KNOWN_NUMBERS = "text", "flags", "numbers", "numbers where they are known"
Columns = Mapping[str, str]
"""What columns must hold: `TEXT`, `FLAGS`, `NUMBERS`, or `KNOWN_NUMBERS`, some of which may be missing."""

POINTER = 8  # bytes that a table takes for a text in it, besides the text


def read_table(
    path: Path, *, text: Collection[str] | None = (), required: Collection[str] | Columns = (), only: bool = False
) -> pd.DataFrame:
    """A CSV or Parquet table, by the end of its name; `DataError` if it is damaged, too large or lacks a column.

    In a CSV table an empty field is missing, and nothing else is. Whole numbers some of which are missing are `Int64`.

    Args:
        path: The file.
        text: Columns of a CSV table that stay text, so that "007" is not 7; None for all. Parquet has types of its own.
        required: Columns that must be there; a mapping says what they must hold, too.
        only: Whether to read no columns but those of a Parquet table.
    """
    suffix = path.suffix.lower()
    with damage_in(path, f"a {suffix[1:]} table"), opened(path):
        table = _read_parquet(path, required if only else None) if suffix == PARQUET else _read_csv(path, text)
    names = [str(name) for name in table.columns]
    for name in required:
        if name not in names:
            first = ", ".join(names[:8]) or "none"
            raise DataError(f"{path}: column {name!r} is missing; the first columns are {first}")
        if isinstance(required, Mapping):
            kind, column = required[name], table[name]
            is_flag, is_number = column.dtype.kind == "b", column.dtype.kind in "iufc"
            if (is_flag, is_number) != (kind == FLAGS, kind in (NUMBERS, KNOWN_NUMBERS)):
                raise DataError(f"{path}: column {name!r} must hold {kind}, got {column.dtype}")
            if kind != KNOWN_NUMBERS and column.isna().any():
                raise DataError(f"{path}: column {name!r} must hold {kind}, got none in row {column.isna().argmax()}")
    return table


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
    names = [name for name in schema.names if chosen is None or name in chosen]
    texts = []
    for name in names:
        kind = schema.field(name).type
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
        if pa.types.is_string(value) or pa.types.is_large_string(value):
            texts.append(name)
        elif not any(test(value) for test in tests):
            raise DataError(f"{path}: column {name!r} must hold numbers, flags or text, got {kind}")
    about = file.metadata
    if about.num_rows < 0:
        raise ValueError(f"it says that it has {about.num_rows} rows")
    # A column of one value repeated is tiny in the file. Of whole groups of rows: to look at what a damaged file says
    # of one column can end the process.
    groups = (about.row_group(group).total_byte_size for group in range(about.num_row_groups))
    check_unpacked(path, "the table", sum(max(size, 0) for size in groups) + about.num_rows * POINTER * len(names))
    # Texts are read once each, however often they are repeated: their lengths are known before they are put in place.
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
