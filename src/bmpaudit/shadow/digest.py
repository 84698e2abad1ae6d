"""What tells whether the numbers of a stored model are its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Floats32, Ints

DIGEST_BYTES = 8


def model_digests(
    indices: Ints,
    memberships: Flags,
    statistics: Mapping[str, Floats32],
    train_accuracy: Floats32,
    held_out_accuracy: Floats32,
) -> npt.NDArray[np.uint64]:
    """A number for each model that depends on all of its numbers and on where each of them stands.

    The checksum of a Zarr chunk says that a file is whole, not that it is the right one: two files that changed places
    are whole, and one that is missing reads as fill values.

    Args:
        indices: Number of each model in its plan, shape (J,).
        memberships: Who was in its sample, shape (J, N).
        statistics: By view, shape (J, N).
        train_accuracy: Shape (J,).
        held_out_accuracy: Shape (J,).
    """
    tables: dict[str, npt.NDArray[Any]] = {
        "memberships": np.packbits(memberships, axis=1),
        **{name: _one_nan(statistics[name]) for name in sorted(statistics)},
        "train_accuracy": _one_nan(train_accuracy),
        "held_out_accuracy": _one_nan(held_out_accuracy),
    }
    digests = np.empty(len(indices), dtype=np.uint64)
    for row, index in enumerate(indices.tolist()):
        digest = hashlib.blake2b(index.to_bytes(8, "little"), digest_size=DIGEST_BYTES)
        for name, table in tables.items():
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(table[row]).tobytes())
        digests[row] = int.from_bytes(digest.digest(), "little")
    return digests


def _one_nan(values: Floats32) -> Floats32:
    """With one kind of NaN: Zarr makes no difference between them."""
    return np.where(np.isnan(values), np.float32(np.nan), values)
