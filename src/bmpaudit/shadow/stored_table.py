"""A view's statistics as they lie on disk, read a block of nodes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit.arrays import Floats32, Ints
from bmpaudit.errors import DataError, InputError, one_line
from bmpaudit.shadow.remote_folder import RemoteFolder, reaching
from bmpaudit.tables import LazyTable

if TYPE_CHECKING:
    import zarr


class StoredTable(LazyTable[np.float32]):
    """Numbers of finished models in a Zarr array of all models; every number that is read is checked to be finite.

    Args:
        folder: Folder of the models, for messages.
        array: The array.
        indices: Rows of the finished models, ascending, shape (J,).
    """

    dtype = np.dtype(np.float32)

    def __init__(self, folder: Path | RemoteFolder, array: zarr.Array[Any], indices: Ints) -> None:
        super().__init__(len(indices), array.shape[1])
        self.folder, self._array = folder, array
        self._rows = indices

    def _read(self, rows: Ints, nodes: slice | Ints) -> Floats32:
        if not len(rows):
            return np.empty((0, len(range(self._num_nodes)[nodes] if isinstance(nodes, slice) else nodes)), self.dtype)
        span = slice(int(rows.min()), int(rows.max()) + 1)
        with reading(self.folder):
            read = np.asarray(self._array.oindex[span, nodes], dtype=np.float32)
        if len(rows) < len(read) or (np.diff(rows) != 1).any():
            read = read[rows - span.start]
        is_there = np.isfinite(read).all(axis=1)  # a chunk that was lost reads as NaN
        if not is_there.all():
            raise DataError(f"{self.folder}: damaged: {self._array.basename} of model {rows[~is_there][0]} is missing")
        return read


@contextmanager
def reading(folder: Path | RemoteFolder) -> Iterator[None]:
    """Raises `DataError` in place of whatever damaged data makes Zarr raise."""
    try:
        with reaching(folder):
            yield
    except (InputError, PermissionError, MemoryError):
        raise
    except Exception as damage:  # its codecs raise nearly anything
        raise DataError(f"{folder}: damaged: {one_line(damage)}") from None
