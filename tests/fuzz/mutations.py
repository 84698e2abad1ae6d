"""Ways in which a file may be damaged, or made to look right and be wrong."""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

Mutation = Callable[[bytes, random.Random], bytes]

TOKENS: tuple[bytes, ...] = (
    b"",
    b"0",
    b"-1",
    b"1e308",
    b"-1e999",
    b"nan",
    b"NaN",
    b"null",
    b"true",
    b'"',
    b"[",
    b"{",
    b"\0",
    b"\xff",
)
TOKENS += (b"9" * 25, b"99999999999", b"2147483648", b"\n", b",", b"\r", b"=", b"[[[[", b"\xed\xa0\x80", b"\x1b[2J")
VALUES: tuple[Any, ...] = (None, True, 0, -1, 2**31, 2**63, 10**400, 1e308, "", "inf", "\ud800", "../x", [], {}, [[]])
VALUES += ({"a": None}, [None] * 3, float("nan"))
DTYPES = ("bool", "int8", "uint64", "int64", "float16", "float32", "float64", "complex64", "U3", "S2", ">i4", "M8[s]")


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flips, cuts, repeats and inserts, a few at a time."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        place, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 8, 64))
        action = rng.randrange(6)
        if action == 0 and place < len(data):
            data[place] ^= rng.randrange(1, 256)
        elif action == 1 and place < len(data):
            data[place] ^= 0xFF
        elif action == 2:
            del data[place : place + length]
        elif action == 3:
            data[place:place] = rng.choice(TOKENS)
        elif action == 4:
            del data[place:]
        else:
            other = rng.randrange(len(data) + 1)
            data[place : place + length] = data[other : other + length]
    return bytes(data)


def mutate_npz(content: bytes, rng: random.Random) -> bytes:
    """Arrays that are missing, renamed, of other types, shapes and values."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(list(arrays))
    action = rng.randrange(4)
    if action == 0:
        del arrays[name]
    elif action == 1:
        arrays[rng.choice([*arrays, "unknown", "../x"])] = arrays.pop(name)
    elif arrays[name].dtype.kind == "U" and not arrays[name].ndim:  # JSON
        arrays[name] = np.array(mutate_json(str(arrays[name]).encode(), rng).decode("utf-8", "replace"))
    else:
        arrays[name] = mutate_array(arrays[name], rng)
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    return packed.getvalue()


def mutate_npy(content: bytes, rng: random.Random) -> bytes:
    """An array of another type or shape, or with other values."""
    packed = io.BytesIO()
    np.save(packed, mutate_array(np.load(io.BytesIO(content)), rng))
    return packed.getvalue()


def mutate_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """An array of another type or shape, or with other values."""
    action = rng.randrange(6)
    array = array.copy()
    with np.errstate(all="ignore"):
        if action == 0:
            try:
                return array.astype(rng.choice(DTYPES))
            except (TypeError, ValueError):
                return np.zeros(array.shape, dtype=rng.choice(DTYPES))
        if action == 1:
            shape = [rng.choice((0, 1, extent, extent + 1)) for extent in array.shape] + [1] * rng.randrange(2)
            return np.resize(array, tuple(shape)) if array.size else np.zeros(shape, array.dtype)
        if action == 2:
            return array.T if array.ndim > 1 else array[None]
        if action == 3:
            return array.ravel()[:1].reshape(()) if array.size else array
        if array.size and array.dtype.kind in "iuf":
            flat = array.reshape(-1)
            worst: Any = (np.nan, np.inf, -np.inf, 1e308, -1, 0, 2**40)
            value = rng.choice(worst[3:]) if array.dtype.kind != "f" else rng.choice(worst)
            flat[rng.randrange(flat.size)] = np.array(value).astype(array.dtype)
        elif array.size and array.dtype.kind == "b":
            array[...] = rng.choice((True, False))
    return array


def mutate_json(content: bytes, rng: random.Random) -> bytes:
    """A value that is missing, replaced or nested deep."""
    value = json.loads(content)
    places: list[tuple[Any, Any]] = []
    level = [value]
    while level:
        inner = [(outer, key) for outer in level for key in _keys(outer)]
        places += inner
        level = [outer[key] for outer, key in inner]
    if not places:
        return b"[]"
    outer, key = rng.choice(places)
    action = rng.randrange(4)
    if action == 0:
        del outer[key]
    elif action == 1 and isinstance(outer, dict):
        outer[rng.choice(("", "unknown", "../x"))] = outer.pop(key)
    else:
        outer[key] = rng.choice(VALUES)
    text = json.dumps(value)
    return (text if rng.randrange(20) else text.replace("null", "[" * 5_000, 1)).encode()


def _keys(value: Any) -> list[Any]:
    return list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []


def mutate_parquet(content: bytes, rng: random.Random) -> bytes:
    """Columns that are missing, renamed, of other types, or have other values."""
    table = pyarrow.parquet.read_table(io.BytesIO(content))
    number = rng.randrange(table.num_columns)
    name, column = table.column_names[number], table.column(number)
    action = rng.randrange(6)
    if action == 0:
        table = table.drop_columns([name])
    elif action == 1:
        table = table.rename_columns(
            [rng.choice(("", "unknown", "node")) if n == name else n for n in table.schema.names]
        )
    else:
        values = column.to_pylist()
        replaced: list[Any] = [
            [[value] for value in values],
            [None] * len(values),
            [str(value) for value in values],
            [rng.choice((0, -1, 2**53, 1e308, float("nan"), float("inf"))) * 1.0 for _ in values],
            [values[0]] * len(values) if values else values,
            [{"x": 1}] * len(values),
            [b"\xff"] * len(values),
            [pd.Timestamp(0)] * len(values),
            [bool(value) for value in values],
        ]
        table = table.set_column(number, name, pa.array(rng.choice(replaced)))
    packed = io.BytesIO()
    pyarrow.parquet.write_table(table if rng.randrange(5) else table.slice(0, rng.randrange(3)), packed)
    return packed.getvalue()


def mutate_lines(content: bytes, rng: random.Random) -> bytes:
    """A field of CSV or TOML that is replaced, a line that is lost or there twice."""
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    separator = rng.choice((b",", b"=", b" ", b"."))
    fields = lines[place].split(separator)
    action = rng.randrange(4)
    if action == 0:
        del lines[place]
    elif action == 1:
        lines.insert(rng.randrange(len(lines)), lines[place])
    else:
        fields[rng.randrange(len(fields))] = rng.choice((*TOKENS, b'"x"', b"{}", b"[1]", b"1979-05-27", b"a.b"))
        lines[place] = separator.join(fields)
    return b"\n".join(lines)


OF_KIND: dict[str, tuple[Mutation, ...]] = {
    ".npz": (mutate_npz, mutate_bytes),
    ".npy": (mutate_npy, mutate_bytes),
    ".json": (mutate_json, mutate_bytes),
    ".parquet": (mutate_parquet, mutate_bytes),
    ".csv": (mutate_lines, mutate_bytes),
    ".toml": (mutate_lines, mutate_bytes),
    ".txt": (mutate_lines, mutate_bytes),
}


def mutate_file(path: Path, rng: random.Random) -> None:
    """Damages a file in a way that fits its kind, or any."""
    content = path.read_bytes()
    ways = OF_KIND.get(path.suffix, (mutate_bytes,))
    try:
        path.write_bytes(rng.choice(ways)(content, rng))
    except Exception:  # damaged before, or the mutation cannot be written down
        path.write_bytes(mutate_bytes(content, rng))


def mutate_folder(folder: Path, rng: random.Random) -> None:
    """Damages a file of a folder, deletes it, or puts another in its place; a manifest may then vouch for it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in (".lock", "report.html"))
    path = rng.choice(files)
    action = rng.randrange(8)
    if action == 0:
        path.unlink()
    elif action == 1:
        alike = [other for other in files if other != path and other.suffix == path.suffix] or files
        shutil.copyfile(path, folder / "swap")
        other = rng.choice(alike)
        shutil.copyfile(other, path)
        (folder / "swap").replace(other)
    elif action == 2:
        path.write_bytes(b"")
    else:
        mutate_file(path, rng)
    if rng.randrange(2):
        sign(folder)


def sign(folder: Path) -> None:
    """Makes the manifest vouch for the files as they are now, as somebody who means harm would."""
    manifest = folder / "manifest.json"
    try:
        content = json.loads(manifest.read_text())
        for stage in content["stages"].values():
            for name in list(stage["files"]):
                path = folder / name
                if path.is_file():
                    stage["files"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
        manifest.write_text(json.dumps(content))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
