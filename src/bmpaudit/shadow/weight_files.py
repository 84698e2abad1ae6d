"""Files of named arrays that can be read without running anything: `.npz` and `.safetensors`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import DataError
from bmpaudit.reading.archive import Arrays, read_archive
from bmpaudit.reading.damage import damage_in, opened
from bmpaudit.reading.text import parse_json

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin", ".tar")
"""Endings of files that PyTorch writes with pickle."""

LENGTH_BYTES = 8
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"} | {
    **{f"I{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    "BOOL": "?",
}
"""Types of safetensors that NumPy has, and bfloat16, the upper half of a float32."""
METADATA = "__metadata__"
_SIZES = {"type": "array", "items": {"type": "integer", "minimum": 0}}
HEADER = {
    "type": "object",
    "properties": {METADATA: True},
    "additionalProperties": {
        "type": "object",
        "properties": {
            "dtype": {"enum": list(DTYPES)},
            "shape": _SIZES,
            "data_offsets": {**_SIZES, "minItems": 2, "maxItems": 2},
        },
        "required": ["dtype", "shape", "data_offsets"],
    },
}


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
    return read_safetensors(path) if path.suffix.lower() == ".safetensors" else read_archive(path)


def read_safetensors(path: Path) -> Arrays:
    """The arrays of a safetensors file.

    The format: eight bytes with the length of the header (little-endian), the header as JSON, then the arrays' bytes.
    For each name the header has `dtype`, `shape` and `data_offsets`, begin and end counted from the end of the header.

    Raises:
        DataError: if the file is damaged.
    """
    with damage_in(path, "a safetensors file"), opened(path) as file:
        content = file.read()
        start = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
        if len(content) < LENGTH_BYTES or start > len(content):
            raise ValueError("it ends within its header")
        header = parse_json(content[LENGTH_BYTES:start].decode("utf-8"), HEADER)
        data = memoryview(content)[start:]
        return {name: _tensor(name, entry, data) for name, entry in header.items() if name != METADATA}


def _tensor(name: str, entry: dict[str, Any], data: memoryview) -> npt.NDArray[Any]:
    kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    dtype = np.dtype(DTYPES[kind])
    if end > len(data) or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name} of shape {tuple(shape)} cannot be at bytes {begin} to {end} of {len(data)}")
    values = np.frombuffer(data[begin:end], dtype=dtype)
    if kind == "BF16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(shape)
