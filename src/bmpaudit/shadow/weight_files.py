"""Files of named arrays that can be read without running anything: `.npz` and `.safetensors`."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import DataError

Arrays = dict[str, npt.NDArray[Any]]

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin", ".tar")
"""Endings of files that PyTorch writes with pickle."""

LENGTH_BYTES = 8
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"} | {
    **{f"I{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    "BOOL": "?",
}
"""Types of safetensors that NumPy has, and bfloat16, the upper half of a float32."""


def refuse_pickle(path: Path) -> None:
    """Raises `DataError` if a file's name says that PyTorch pickled it; the message says how to convert it."""
    if path.suffix.lower() in PICKLES:
        target = path.with_suffix(".npz").name
        raise DataError(
            f"{path}: a pickle, which can run code when it is read, and is never loaded; convert a state dict with "
            f"python -c \"import numpy, torch; numpy.savez('{target}', **{{name: value.numpy() for name, value in "
            f"torch.load('{path.name}', 'cpu', weights_only=True).items()}})\""
        )


def read_named_arrays(path: Path) -> Arrays:
    """The arrays of an `.npz` archive or a `.safetensors` file, in the order of the file.

    Raises:
        DataError: if the file is missing or damaged.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    return read_safetensors(path) if path.suffix.lower() == ".safetensors" else _read_npz(path)


def _read_npz(path: Path) -> Arrays:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise ValueError("it is a single array")
            return {name: np.asarray(archive[name]) for name in archive.files}
    except PermissionError as failure:
        raise DataError(f"{path}: {failure.strerror}") from None
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as damage:
        reason = " ".join(str(damage).split())
        if "allow_pickle" in reason:
            reason = "it holds pickled objects, which are never loaded"
        raise DataError(f"{path}: damaged or not an .npz archive: {reason}") from None


def read_safetensors(path: Path) -> Arrays:
    """The arrays of a safetensors file.

    The format: eight bytes with the length of the header (little-endian), the header as JSON, then the arrays' bytes.
    For each name the header has `dtype`, `shape` and `data_offsets`, begin and end counted from the end of the header.

    Raises:
        DataError: if the file is damaged.
    """
    content = path.read_bytes()
    length = int.from_bytes(content[:LENGTH_BYTES], "little")
    start = LENGTH_BYTES + length
    if len(content) < LENGTH_BYTES or start > len(content):
        raise DataError(f"{path}: damaged or not a safetensors file: it ends within its header")
    try:
        header = json.loads(content[LENGTH_BYTES:start].decode("utf-8"))
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        return {name: _tensor(name, entry, memoryview(content)[start:]) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as damage:
        reason = f"{damage} is missing" if isinstance(damage, KeyError) else str(damage).splitlines()[0]
        raise DataError(f"{path}: damaged or not a safetensors file: {reason}") from None


def _tensor(name: str, entry: dict[str, Any], data: memoryview) -> npt.NDArray[Any]:
    kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in DTYPES:
        raise ValueError(f"{name} is of type {kind}, must be one of {', '.join(DTYPES)}")
    if not all(type(extent) is int and extent >= 0 for extent in (*shape, begin, end)):
        raise ValueError(f"{name} must have a shape and offsets of whole numbers, got {shape} and {begin}, {end}")
    dtype = np.dtype(DTYPES[kind])
    if end > len(data) or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name} of shape {tuple(shape)} cannot be at bytes {begin} to {end} of {len(data)}")
    values = np.frombuffer(data[begin:end], dtype=dtype)
    if kind == "BF16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(shape)
