"""Small files that would take gigabytes of memory."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

BLOCK = 2**24


def npz_bomb(path: Path, name: str, num_blocks: int = 200, **others: Any) -> Path:
    """An archive of whose arrays one, of zeros, takes 16 MiB for each block."""
    entries = [(f"{other}.npy", _stored(array)) for other, array in others.items()]
    header = io.BytesIO()
    shape = {"descr": "|u1", "fortran_order": False, "shape": (num_blocks * BLOCK,)}
    np.lib.format.write_array_header_1_0(header, shape)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = deflate.compress(header.getvalue()) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(bytes(BLOCK)) + deflate.flush(zlib.Z_FULL_FLUSH)
    size = len(header.getvalue()) + num_blocks * BLOCK
    entries.append((f"{name}.npy", (8, start + block * num_blocks + deflate.flush(), size)))
    directory = b""
    with path.open("wb") as file:
        for entry, (method, content, num_bytes) in entries:
            crc = zlib.crc32(content) if method == 0 else 0  # of the bomb it is never reached
            about = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, crc, len(content), num_bytes, len(entry), 0)
            place = file.tell()
            file.write(b"PK\3\4" + about + entry.encode() + content)
            directory += (
                b"PK\1\2" + struct.pack("<H", 20) + about + struct.pack("<HHHII", 0, 0, 0, 0, place) + entry.encode()
            )
        place = file.tell()
        file.write(directory)
        file.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), place, 0))
    return path


def _stored(array: Any) -> tuple[int, bytes, int]:
    content = io.BytesIO()
    np.save(content, array)
    return 0, content.getvalue(), len(content.getvalue())


def repeated_numbers(path: Path, num_rows: int = 160 * 2**20, **columns: str) -> Path:
    """A table of one value, repeated; columns by name with their Arrow types."""
    schema = pa.schema(dict.fromkeys(("a",), pa.int64()) | {name: pa.type_for_alias(t) for name, t in columns.items()})
    rows = pa.table({field.name: pa.array([0] * 2**20).cast(field.type) for field in schema}, schema=schema)
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for _ in range(num_rows // 2**20):
            writer.write_table(rows)
    return path


def repeated_text(path: Path, column: str = "a", num_rows: int = 20_000) -> Path:
    """A table of one long text, repeated."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * num_rows, pa.int32()), pa.array(["x" * 2**20]))
    pyarrow.parquet.write_table(pa.table({column: text}), path)
    return path
