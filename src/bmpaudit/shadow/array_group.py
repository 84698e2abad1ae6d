"""Arrays over models on disk, one Zarr group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import DataError, InputError, one_line
from bmpaudit.files import uninterrupted
from bmpaudit.shadow.remote_folder import RemoteFolder
from bmpaudit.tables import MODELS_PER_CHUNK, NODES_PER_CHUNK

if TYPE_CHECKING:
    import zarr

CODECS = ("bytes", "zstd", "crc32c")

MOST_MODELS = 2**20
"""Models that a group has room for: every chunk of them is looked for, whether it is there or not."""


class ArrayKind(NamedTuple):
    """What one array holds for each model."""

    dtype: str
    extent: tuple[int, ...]
    fill: Any
    dimensions: tuple[str, ...] = ("node", "class")


class ArrayGroup:
    """Compressed, checksummed arrays whose first dimension is the model, and `done`, which vouches for the others.

    A missing Zarr chunk reads as the fill value without a word, so only `done` says what is there.
    """

    def __init__(self, path: Path | RemoteFolder, *, read_only: bool) -> None:
        # Zarr takes long to import, and a plan or a help text needs no models.
        import zarr
        from zarr.storage import LocalStore

        from bmpaudit.shadow.bounded_store import BoundedStore

        self.path = path
        self._opened: dict[str, zarr.Array[Any]] = {}
        if read_only and not path.exists():
            raise DataError(f"{path.parent} has no shadow models")
        try:
            if isinstance(path, RemoteFolder):
                self._store = BoundedStore(path.zarr_store(read_only=read_only))
            else:
                self._store = BoundedStore(LocalStore(path, read_only=read_only))
            self._group = uninterrupted(lambda: zarr.open_group(self._store, mode="r" if read_only else "a"))
            arrays = [self[name] for name in self._keys()]
        except Exception as damage:  # what was damaged can make Zarr raise nearly anything
            raise DataError(f"{path}: damaged metadata ({one_line(damage)}); use a new folder") from None
        if "done" not in self._group and (read_only or any(array.shape[0] for array in arrays)):
            raise DataError(f"{path}: the record of what is done is missing; use a new folder")

    @property
    def names(self) -> list[str]:
        """The arrays, `done` last."""
        return sorted(self._keys(), key=lambda name: (name == "done", name))

    def _keys(self) -> list[str]:
        # Not Zarr's own listing: it opens all arrays at once and, of damaged ones, logs all tracebacks but the first. A
        # process that was killed while it made an array leaves a folder without metadata, which the next one fills.
        if isinstance(self.path, RemoteFolder):
            return self.path.folders_with("zarr.json")
        return [file.parent.name for file in self.path.glob("*/zarr.json")]

    def __getitem__(self, name: str) -> zarr.Array[Any]:
        # Opening reads and checks the metadata, which takes as long as writing a small chunk. Kept arrays stay right:
        # nobody else resizes them while a process writes here.
        if name not in self._opened:
            from zarr import Array

            array = self._group[name]
            if not isinstance(array, Array):
                raise KeyError(f"{name} is not an array")
            self._opened[name] = array
        return self._opened[name]

    def check(self, kinds: Mapping[str, ArrayKind], *, are_all_there: bool, with_room: bool = True) -> None:
        """Checks that arrays are what they are said to be, before anything of their size is read.

        Args:
            kinds: What each array must hold.
            are_all_there: Whether none may be missing.
            with_room: Whether all must have room for as many models as `done`.

        Raises:
            DataError: naming the array that is missing or is something else.
        """
        names = self.names
        # A process that was killed while it made the arrays leaves none.
        num_models = self["done"].shape[0] if with_room and "done" in names else 0
        for name, kind in kinds.items():
            if name not in names:
                if are_all_there:
                    raise DataError(f"{self.path}: {name} is missing; use a new folder")
                continue
            array, chunks = self[name], self._chunks(kind)
            about: Any = array.metadata.to_dict()
            codecs = tuple(str(codec["name"]) for codec in about["codecs"])
            if codecs != CODECS:
                raise DataError(f"{self.path}: {name} must be encoded by {', '.join(CODECS)}, got {', '.join(codecs)}")
            self._store.chunk_bytes[name] = math.prod(chunks) * array.dtype.itemsize
            if array.dtype != kind.dtype or array.shape[1:] != kind.extent or array.chunks != chunks:
                raise DataError(
                    f"{self.path}: {name} must hold {kind.dtype} of shape {('any', *kind.extent)} in chunks of "
                    f"{chunks}, got {array.dtype} of shape {array.shape} in chunks of {array.chunks}"
                )
            if not num_models <= array.shape[0] <= MOST_MODELS:
                raise DataError(
                    f"{self.path}: {name} must have room for as many models as done, and for at most {MOST_MODELS:,}, "
                    f"got {array.shape[0]:,}"
                )

    @staticmethod
    def _chunks(kind: ArrayKind) -> tuple[int, ...]:
        return (MODELS_PER_CHUNK, *(min(extent, NODES_PER_CHUNK) for extent in kind.extent))

    def create(self, kinds: Mapping[str, ArrayKind], *, to_finished: bool = False) -> None:
        """Creates the arrays that are missing, in order.

        Args:
            kinds: What each array holds.
            to_finished: Whether arrays may be added to finished models.

        Raises:
            InputError: if one is missing though there are finished models, and may not be added.
        """
        from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec

        for name, kind in kinds.items():
            if name in self._group:
                continue
            if not to_finished and "done" in self._group and np.asarray(self["done"][:]).any():
                raise InputError(
                    f"{self.path.parent} holds shadow models without {name}; use a new folder to keep them"
                )
            create = partial(
                self._group.create_array,
                name,
                shape=(0, *kind.extent),
                chunks=self._chunks(kind),
                dtype=kind.dtype,
                fill_value=kind.fill,
                serializer=BytesCodec(),
                compressors=[ZstdCodec(level=1), Crc32cCodec()],
                dimension_names=("model", *kind.dimensions[: len(kind.extent)]),
            )
            uninterrupted(create)

    def extend(self, length: int) -> None:
        """Makes room for at least `length` models, array by array and `done` last.

        Raises:
            InputError: if that is too many.
        """
        if length > MOST_MODELS:
            raise InputError(f"a folder holds at most {MOST_MODELS:,} shadow models, got {length:,}")
        length = max(length, self["done"].shape[0])
        for name in self.names:
            array = self[name]
            if array.shape[0] < length:
                uninterrupted(partial(array.resize, (length, *array.shape[1:])))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about the models."""
        notes = self._group.attrs.get("notes")
        return tuple(str(note) for note in notes) if isinstance(notes, list) else ()

    def add_note(self, note: str) -> None:
        """Says something about the models, once."""
        if note not in self.notes:
            self._group.attrs["notes"] = [*self.notes, note]

    def write(self, name: str, chunk: slice, values: npt.NDArray[Any]) -> None:
        """Writes one chunk of an array, to its end even if Ctrl-C is pressed."""
        uninterrupted(lambda: self[name].__setitem__(chunk, values))

    def forget(self, chunk: slice) -> None:
        """Puts fill values in place of the models of one chunk, `done` first: what it does not vouch for is nothing."""
        for name in reversed(self.names):
            # The whole chunk is written: a partial write would have to read the damaged one.
            self.write(name, chunk, self.blank(name, chunk))

    def blank(self, name: str, chunk: slice) -> npt.NDArray[Any]:
        """Fill values of one chunk."""
        array = self[name]
        return np.full((chunk.stop - chunk.start, *array.shape[1:]), array.fill_value, dtype=array.dtype)
