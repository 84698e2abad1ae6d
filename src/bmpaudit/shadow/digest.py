"""What tells whether the numbers of a stored model are its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Ints

DIGEST_BYTES = 8


def model_digests(indices: Ints, tables: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
    """A number for each model that depends on all of its numbers in some tables and on where each of them stands.

    The checksum of a Zarr chunk says that a file is whole, not that it is the right one: two files that changed places
    are whole, and one that is missing reads as fill values.

    Args:
        indices: Number of each model in its plan, shape (J,).
        tables: By name, of shape (J, …): booleans or floats.
    """
    rows = {name: _comparable(table) for name, table in tables.items()}
    digests = np.empty(len(indices), dtype=np.uint64)
    for row, index in enumerate(indices.tolist()):
        digest = hashlib.blake2b(index.to_bytes(8, "little"), digest_size=DIGEST_BYTES)
        for name in sorted(rows):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(rows[name][row]).tobytes())
        digests[row] = int.from_bytes(digest.digest(), "little")
    return digests


def _comparable(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Flags as bits, and floats with one kind of NaN: Zarr makes no difference between them."""
    if values.dtype == np.bool_:
        return np.packbits(values, axis=1)
    return np.where(np.isnan(values), np.float32(np.nan), values)
