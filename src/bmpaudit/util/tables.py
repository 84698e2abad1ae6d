"""Tables of models by nodes that need not fit into memory: whoever works through one reads a block of nodes at a time.

A table is a NumPy array, or a `LazyTable` if an array would take more than `MOST_IN_MEMORY`. Both are read the same
way: `table[:, nodes]` is an array with one row per model.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bmpaudit.util.values import Flags, Floats32, Ints

MOST_IN_MEMORY = 2**26
"""Bytes of a table that is held in memory."""

MODELS_PER_CHUNK = 2**5
NODES_PER_CHUNK = 2**12
"""Models and nodes that lie together where a table is stored."""

MAX_BLOCK = 2**23
"""Entries of a table that are worked on at once."""

Scalar = TypeVar("Scalar", bound=np.generic)
AnyTable = TypeVar("AnyTable", bound="npt.NDArray[Any] | LazyTable[Any]")


class LazyTable(ABC, Generic[Scalar]):
    """A table of J models by N nodes that is read when it is indexed, by rows or by rows and nodes."""

    dtype: np.dtype[Scalar]

    def __init__(self, num_models: int, num_nodes: int) -> None:
        self._rows: Ints = np.arange(num_models)
        self._num_nodes = num_nodes

    @property
    def shape(self) -> tuple[int, int]:
        """(J, N)."""
        return len(self._rows), self._num_nodes

    @property
    def nbytes(self) -> int:
        """Bytes that the table would take in memory."""
        return len(self) * self._num_nodes * self.dtype.itemsize

    def __len__(self) -> int:
        return len(self._rows)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)

    def __getitem__(self, key: Any) -> npt.NDArray[Scalar]:
        """Reads whole rows, rows of some nodes, or of two arrays of row numbers and nodes one entry each, as NumPy."""
        rows, nodes = key if isinstance(key, tuple) else (key, slice(None))
        chosen = self._rows[rows]
        if isinstance(rows, np.ndarray) and rows.dtype != np.bool_ and isinstance(nodes, np.ndarray):
            return self._read_each(chosen, nodes)
        where = slice(*nodes.indices(self._num_nodes)[:2]) if isinstance(nodes, slice) else _in_a_row(nodes)
        read = self._read(np.atleast_1d(chosen), where)
        return read if np.ndim(chosen) else read[0]

    def take(self: AnyTable, rows: slice | npt.NDArray[Any]) -> AnyTable:
        """Some of the rows, still not read."""
        taken = copy(self)
        taken._rows = self._rows[rows]  # type: ignore[union-attr]
        return taken

    @abstractmethod
    def _read(self, rows: Ints, nodes: slice | Ints) -> npt.NDArray[Scalar]:
        """Entries of some rows and nodes; a slice has both ends and no step."""

    def _read_each(self, rows: Ints, nodes: Ints) -> npt.NDArray[Scalar]:
        """One entry for each row number and node."""
        return np.array([self._read(rows[k : k + 1], nodes[k : k + 1])[0, 0] for k in range(len(rows))], self.dtype)


FlagTable: TypeAlias = Flags | Any
FloatTable: TypeAlias = Floats32 | Any
"""Arrays, or a `LazyTable` where they would be large; to type checkers that know of no large graph, arrays."""


class PackedFlags(LazyTable[np.bool_]):
    """Flags that take a bit each.

    Args:
        num_models: J.
        num_nodes: N.
    """

    dtype = np.dtype(np.bool_)

    def __init__(self, num_models: int, num_nodes: int) -> None:
        super().__init__(num_models, num_nodes)
        self._bits = np.zeros((num_models, -(-num_nodes // 8)), dtype=np.uint8)

    def __setitem__(self, rows: slice, flags: Flags) -> None:
        self._bits[rows] = np.packbits(flags, axis=1)

    def _read(self, rows: Ints, nodes: slice | Ints) -> Flags:
        if isinstance(nodes, slice):
            first = nodes.start // 8
            some = np.unpackbits(self._bits[rows, first : -(-nodes.stop // 8)], axis=1)
            return some[:, nodes.start - 8 * first : nodes.stop - 8 * first].view(np.bool_)
        return _bits_at(self._bits[rows[:, None], nodes >> 3], nodes)

    def _read_each(self, rows: Ints, nodes: Ints) -> Flags:
        return _bits_at(self._bits[rows, nodes >> 3], nodes)


def _bits_at(octets: npt.NDArray[np.uint8], nodes: Ints) -> Flags:
    return (octets >> (7 - (nodes & 7)).astype(np.uint8) & 1).view(np.bool_)


class _TemporaryFile:
    """A file that goes with its last user: without a name, until it is shared with other processes."""

    def __init__(self) -> None:
        self._number: int | None = _open_unnamed()
        self.path: Path | None = None

    def __getstate__(self) -> Path:
        if self.path is None:
            raise TypeError("a temporary file that is not shared cannot be sent")
        return self.path

    def __setstate__(self, path: Path) -> None:
        self.path, self._number = path, None  # opened when it is read: not every worker can

    def __del__(self) -> None:
        if self._number is not None:
            os.close(self._number)

    @property
    def number(self) -> int:
        """Of the open file."""
        if self._number is None:
            assert self.path is not None  # noqa: S101 - it was sent
            self._number = os.open(self.path, os.O_RDONLY)
        return self._number

    def share(self, folder: Path) -> None:
        """Moves the file to a folder, with a name by which it is removed if this process is killed.

        Within a file system it only gets the name; else the content is copied.
        """
        if self.path is not None and self.path.exists():
            return
        path = folder.resolve() / f".scratch.partial-{secrets.token_hex(4)}"
        weakref.finalize(self, _remove, path, os.getpid())
        if not _has_named(self.number, path):
            with path.open("xb") as file, os.fdopen(os.dup(self.number), "rb") as content:
                content.seek(0)
                shutil.copyfileobj(content, file, 2**24)
            os.close(self.number)
            self._number = os.open(path, os.O_RDWR)
        self.path = path

    def write(self, values: Floats32, offset: int) -> None:
        """Writes an array whose numbers lie together."""
        left = values.reshape(-1).view(np.uint8).data
        while left:
            written = os.pwrite(self.number, left, offset)
            left, offset = left[written:], offset + written

    def read(self, values: Floats32, offset: int) -> None:
        """Fills an array whose numbers lie together."""
        left = values.reshape(-1).view(np.uint8).data
        while left:
            num_read = os.preadv(self.number, [left], offset)
            if not num_read:
                raise EOFError("a part of a temporary table was not written")
            left, offset = left[num_read:], offset + num_read


def _open_unnamed() -> int:
    """An open file in TMPDIR that has no name; where the system allows it, one that can get a name."""
    try:
        return os.open(tempfile.gettempdir(), os.O_RDWR | os.O_TMPFILE, 0o666)
    except (AttributeError, OSError):  # only Linux has that, and not for every file system
        with tempfile.TemporaryFile(prefix="bmpaudit-") as file:
            return os.dup(file.fileno())


def _has_named(number: int, path: Path) -> bool:
    """Gives an open file without a name one, if that can be done: it has to be of the same file system."""
    try:
        folder = os.open("/proc/self/fd", os.O_RDONLY)
    except OSError:
        return False
    try:
        os.link(str(number), path, src_dir_fd=folder)  # only with a folder does os.link follow the symbolic link
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not in a fork of it
        path.unlink(missing_ok=True)


class ScratchTable(LazyTable[np.float32]):
    """Numbers in a temporary file (in TMPDIR), which goes with the table.

    The file holds chunks of `NODES_PER_CHUNK` nodes one after the other, each with one row per model, so that a block
    of nodes lies together.

    Args:
        num_models: J.
        num_nodes: N.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, num_models: int, num_nodes: int) -> None:
        super().__init__(num_models, num_nodes)
        self._num_models = num_models
        self._file = _TemporaryFile()

    @property
    def is_shared(self) -> bool:
        """Whether other processes can read it."""
        return self._file.path is not None

    def share(self, folder: Path) -> None:
        """Moves the file to a folder, where other processes can read it; they are sent its path."""
        self._file.share(folder)

    def __setitem__(self, key: tuple[slice, slice], values: npt.NDArray[Any]) -> None:
        """Writes a block: a slice of rows and a slice of nodes without step."""
        rows, nodes = self._rows[key[0]], slice(*key[1].indices(self._num_nodes)[:2])
        for piece in self._pieces(rows, nodes):
            self._file.write(np.ascontiguousarray(values[piece.rows, piece.columns], dtype=np.float32), piece.offset)

    def _read(self, rows: Ints, nodes: slice | Ints) -> Floats32:
        if not isinstance(nodes, slice):
            return self._read_spread(rows, nodes)
        read = np.empty((len(rows), nodes.stop - nodes.start), dtype=np.float32)
        for piece in self._pieces(rows, nodes):
            into = read[piece.rows, piece.columns]
            values = into if into.flags.c_contiguous else np.empty(into.shape, dtype=np.float32)
            self._file.read(values, piece.offset)
            if values is not into:
                into[:] = values
        return read

    def _read_spread(self, rows: Ints, nodes: Ints) -> Floats32:
        """Reads nodes that do not follow each other, chunk by chunk."""
        read = np.empty((len(rows), len(nodes)), dtype=np.float32)
        chunk_of = nodes // NODES_PER_CHUNK
        for chunk in np.unique(chunk_of).tolist():
            is_here, first = chunk_of == chunk, chunk * NODES_PER_CHUNK
            for block in model_blocks(len(rows), NODES_PER_CHUNK):
                whole = self._read(rows[block], slice(first, min(first + NODES_PER_CHUNK, self._num_nodes)))
                read[block, is_here] = whole[:, nodes[is_here] - first]
        return read

    def _pieces(self, rows: Ints, nodes: slice) -> Iterator[_Piece]:
        """What lies together of some rows and nodes: rows that follow each other, of whole chunks of nodes."""
        ends = np.append(np.flatnonzero(np.diff(rows) != 1) + 1, len(rows)).tolist()
        runs = list(zip([0, *ends[:-1]], ends, strict=True)) if len(rows) else []
        single = [(row, row + 1) for row in range(len(rows))]
        for first in range(nodes.start // NODES_PER_CHUNK * NODES_PER_CHUNK, nodes.stop, NODES_PER_CHUNK):
            last = min(first + NODES_PER_CHUNK, self._num_nodes)
            start, stop = max(nodes.start, first), min(nodes.stop, last)
            for run in runs if (start, stop) == (first, last) else single:
                place = self._num_models * first + int(rows[run[0]]) * (last - first) + start - first
                yield _Piece(slice(*run), slice(start - nodes.start, stop - nodes.start), 4 * place)


class _Piece(NamedTuple):
    """Rows and columns of a block that lie together in a file, and where."""

    rows: slice
    columns: slice
    offset: int


def fits_in_memory(num_bytes: int) -> bool:
    """Whether a table of so many bytes is held in memory."""
    return num_bytes <= MOST_IN_MEMORY


def new_table(num_models: int, num_nodes: int) -> Floats32 | ScratchTable:
    """A table to be written, in memory or in a temporary file by its size."""
    if fits_in_memory(4 * num_models * num_nodes):
        return np.empty((num_models, num_nodes), dtype=np.float32)
    return ScratchTable(num_models, num_nodes)


def new_flags(num_models: int, num_nodes: int) -> Flags | PackedFlags:
    """Flags to be set row by row, a byte or a bit each by their number."""
    if fits_in_memory(num_models * num_nodes):
        return np.zeros((num_models, num_nodes), dtype=np.bool_)
    return PackedFlags(num_models, num_nodes)


def take_rows(table: AnyTable, rows: slice | npt.NDArray[Any]) -> AnyTable:
    """Some rows of a table; of one that is not in memory, nothing is read."""
    return table.take(rows) if isinstance(table, LazyTable) else table[rows]  # type: ignore[return-value]


def columns(table: npt.NDArray[Scalar] | LazyTable[Scalar], nodes: Ints) -> npt.NDArray[Scalar]:
    """Some columns of a table; of an array, not copied if they follow each other."""
    if isinstance(table, LazyTable):
        return table[:, nodes]
    where = _in_a_row(nodes)
    return table[:, where] if isinstance(where, slice) else np.take(table, where, axis=1)


def evenly_spaced(nodes: Ints, most: int) -> Ints:
    """All of the nodes, or so many of them, evenly spaced."""
    return nodes if len(nodes) <= most else nodes[np.arange(most) * len(nodes) // most]


def node_blocks(num_nodes: int, num_models: int) -> Iterator[slice]:
    """Parts of the nodes that can be worked on at once for so many models: whole chunks or parts of one.

    Several chunks are taken together only up to a quarter of `MAX_BLOCK`. Arrays of so many numbers stay below the 32
    MB from which on the C library returns memory whenever it is freed, and asks the system for new pages each time.
    """
    most = max(1, MAX_BLOCK // num_models)
    if most < NODES_PER_CHUNK:
        width = 2 ** (most.bit_length() - 1)
    else:
        width = max(1, most // 4 // NODES_PER_CHUNK) * NODES_PER_CHUNK
    for first in range(0, num_nodes, width):
        yield slice(first, min(first + width, num_nodes))


def model_blocks(num_models: int, num_nodes: int) -> Iterator[slice]:
    """Parts of the models, as many as can be worked on at once on so many nodes: whole chunks if there are several."""
    height = max(1, MAX_BLOCK // max(num_nodes, 1))
    if height > MODELS_PER_CHUNK:
        height -= height % MODELS_PER_CHUNK
    for first in range(0, num_models, height):
        yield slice(first, min(first + height, num_models))


def count_in(memberships: FlagTable) -> Ints:
    """Number of models that hold each node, shape (N,)."""
    counts = np.zeros(memberships.shape[1], dtype=np.int64)
    for rows in model_blocks(*memberships.shape):
        counts += np.count_nonzero(memberships[rows], axis=0)
    return counts


def _in_a_row(nodes: npt.NDArray[Any]) -> slice | Ints:
    """The same nodes, as a slice if they follow each other."""
    ids: Ints = np.flatnonzero(nodes) if nodes.dtype == np.bool_ else nodes
    follow = len(ids) > 0 and ids[-1] - ids[0] == len(ids) - 1 and bool((np.diff(ids) == 1).all())
    return slice(int(ids[0]), int(ids[-1]) + 1) if follow else ids
