"""Matrices of models by nodes that need not fit into memory: whoever uses one reads a block of nodes at a time.

A matrix is a NumPy array, or a `LazyMatrix` if an array would take more than `MOST_IN_MEMORY`. Both are read the same
way: `matrix[:, nodes]` is an array with one row per model.
"""

import hashlib
import os
import secrets
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Flags, Floats32, Ints

MOST_IN_MEMORY = 2**26  # bytes of a matrix that is held in memory
MODELS_PER_CHUNK, NODES_PER_CHUNK = 2**5, 2**12  # which lie together where a matrix is stored
MAX_BLOCK = 2**23  # entries of a matrix that are worked on at once
DIGEST_BYTES = 16

Scalar = TypeVar("Scalar", bound=np.generic)
AnyMatrix = TypeVar("AnyMatrix", bound="npt.NDArray[Any] | LazyMatrix[Any]")


class LazyMatrix(ABC, Generic[Scalar]):
    """A matrix of J models by N nodes that is read when it is indexed, by rows or by rows and nodes."""

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
        """Bytes that the matrix would take in memory."""
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

    def take(self: AnyMatrix, rows: slice | npt.NDArray[Any]) -> AnyMatrix:
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


FlagMatrix: TypeAlias = Flags | Any
FloatMatrix: TypeAlias = Floats32 | Any
"""Arrays, or a `LazyMatrix` where they would be large; to type checkers that know of no large graph, arrays."""


class PackedFlags(LazyMatrix[np.bool_]):
    """Flags that take a bit each."""

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


class ScratchMatrix(LazyMatrix[np.float32]):
    """Numbers in a temporary file, which goes with its last matrix, or with the process.

    The file is in TMPDIR and has no name until it is shared with other processes. It holds blocks of `NODES_PER_CHUNK`
    nodes one after the other, each with one row per model, and is mapped into memory a block at a time.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, num_models: int, num_nodes: int) -> None:
        super().__init__(num_models, num_nodes)
        self._num_models = num_models
        self._file = _ScratchFile(4 * num_models * num_nodes)

    @property
    def is_shared(self) -> bool:
        """Whether other processes can read it."""
        return self._file.path is not None

    def share(self, folder: Path) -> None:
        """Moves the file, which is complete, to a folder, where other processes can read it; they are sent its path."""
        self._file.share(folder)

    def __setitem__(self, key: tuple[slice, slice], values: npt.NDArray[Any]) -> None:
        """Writes a block: a slice of rows and a slice of nodes without step."""
        for here, block, columns in self._blocks(np.arange(self._num_nodes)[key[1]], "r+"):
            block[_outer(self._rows[key[0]], columns)] = values[:, _in_a_row(here)]

    def _read(self, rows: Ints, nodes: slice | Ints) -> Floats32:
        wanted = np.arange(nodes.start, nodes.stop) if isinstance(nodes, slice) else nodes
        read = np.empty((len(rows), len(wanted)), dtype=np.float32)
        for here, block, columns in self._blocks(wanted, "r"):
            read[:, _in_a_row(here)] = block[_outer(rows, columns)]
        return read

    def _read_each(self, rows: Ints, nodes: Ints) -> Floats32:
        read = np.empty(len(rows), dtype=np.float32)
        for here, block, columns in self._blocks(nodes, "r"):
            read[here] = block[rows[here], columns]
        return read

    def _blocks(self, nodes: Ints, mode: Literal["r", "r+"]) -> Iterator[tuple[Ints, Floats32, Ints]]:
        """The blocks of the file that hold some nodes: places in `nodes`, the block, and columns of it."""
        block_of = nodes // NODES_PER_CHUNK
        for number in np.unique(block_of).tolist():
            here, first = np.flatnonzero(block_of == number), number * NODES_PER_CHUNK
            shape = self._num_models, min(NODES_PER_CHUNK, self._num_nodes - first)
            block = np.memmap(self._file.opened, np.float32, mode, 4 * self._num_models * first, shape)
            yield here, block, nodes[here] - first


class _ScratchFile:
    """A file of so many bytes, without a name until it is shared; all matrices of the same numbers have it."""

    def __init__(self, num_bytes: int) -> None:
        self.path: Path | None = None
        # A full disk is noticed here: to write to what is mapped and has no room would end the process.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self.opened.fileno(), 0, num_bytes)
        else:
            self.opened.truncate(num_bytes)

    @cached_property
    def opened(self) -> IO[bytes]:
        """The file, opened when it is used: not every worker to which it is sent can, nor has to."""
        if self.path is None:
            file: IO[bytes] = tempfile.TemporaryFile(buffering=0, prefix="bmpaudit-")  # noqa: SIM115
        else:
            file = self.path.open("rb", buffering=0)
        weakref.finalize(self, file.close)
        return file

    def __getstate__(self) -> Path:
        if self.path is None:
            raise TypeError("a temporary file that is not shared cannot be sent")
        return self.path

    def __setstate__(self, path: Path) -> None:
        self.path = path

    def share(self, folder: Path) -> None:
        """Moves a file that is complete to a folder, with a name by which it is removed if this process is killed."""
        if self.path is not None and self.path.exists():
            return
        path = folder.resolve() / f".scratch.partial-{secrets.token_hex(4)}"
        weakref.finalize(self, _remove, path, os.getpid())
        self.opened.seek(0)
        with path.open("xb") as file:
            shutil.copyfileobj(self.opened, file, 2**24)
        self.opened.close()
        self.path, self.opened = path, path.open("rb", buffering=0)
        weakref.finalize(self, self.opened.close)


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not in a fork of it
        path.unlink(missing_ok=True)


def fits_in_memory(num_bytes: int) -> bool:
    """Whether a matrix of so many bytes is held in memory."""
    return num_bytes <= MOST_IN_MEMORY


def new_matrix(num_models: int, num_nodes: int) -> Floats32 | ScratchMatrix:
    """A matrix to be written, in memory or in a temporary file by its size."""
    if fits_in_memory(4 * num_models * num_nodes):
        return np.empty((num_models, num_nodes), dtype=np.float32)
    return ScratchMatrix(num_models, num_nodes)


def new_flags(num_models: int, num_nodes: int) -> Flags | PackedFlags:
    """Flags to be set row by row, a byte or a bit each by their number."""
    if fits_in_memory(num_models * num_nodes):
        return np.zeros((num_models, num_nodes), dtype=np.bool_)
    return PackedFlags(num_models, num_nodes)


def take_rows(matrix: AnyMatrix, rows: slice | npt.NDArray[Any]) -> AnyMatrix:
    """Some rows of a matrix; of one that is not in memory, nothing is read."""
    return matrix.take(rows) if isinstance(matrix, LazyMatrix) else matrix[rows]  # type: ignore[return-value]


def columns(matrix: npt.NDArray[Scalar] | LazyMatrix[Scalar], nodes: Ints) -> npt.NDArray[Scalar]:
    """Some columns of a matrix; of an array, not copied if they follow each other."""
    if isinstance(matrix, LazyMatrix):
        return matrix[:, nodes]
    where = _in_a_row(nodes)
    return matrix[:, where] if isinstance(where, slice) else np.take(matrix, where, axis=1)


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


def count_in(memberships: FlagMatrix) -> Ints:
    """Number of models that hold each node, shape (N,)."""
    counts = np.zeros(memberships.shape[1], dtype=np.int64)
    for rows in model_blocks(*memberships.shape):
        counts += np.count_nonzero(memberships[rows], axis=0)
    return counts


def row_digests(flags: Flags) -> list[bytes]:
    """A digest of each row, by which equal ones are found."""
    packed = np.packbits(flags, axis=1)
    return [hashlib.blake2b(row.tobytes(), digest_size=DIGEST_BYTES).digest() for row in packed]


def _in_a_row(nodes: npt.NDArray[Any]) -> slice | Ints:
    """The same nodes, as a slice if they follow each other."""
    ids: Ints = np.flatnonzero(nodes) if nodes.dtype == np.bool_ else nodes
    follow = len(ids) > 0 and ids[-1] - ids[0] == len(ids) - 1 and bool((np.diff(ids) == 1).all())
    return slice(int(ids[0]), int(ids[-1]) + 1) if follow else ids


def _outer(rows: Ints, nodes: Ints) -> Any:
    """What to index an array with for some of its rows and columns, as slices if they follow each other."""
    chosen = _in_a_row(rows), _in_a_row(nodes)
    return chosen if slice in map(type, chosen) else np.ix_(rows, nodes)


class Rows:
    """Class rows of J models: what each says of every single feature, which is read some models at a time.

    The class row of a feature is what the logits of a made-up node without edges that has this feature alone have more
    than those of a node without features (`shadow.class_rows`).

    Attributes:
        values: Class rows, neither centered nor scaled, shape (J, F, C). An array, or anything of this shape that gives
            an array for an array of model numbers.
        norms: Lengths, of the first layer's weights or of the class rows, shape (J, F), likewise.
        shape: (J, F, C).
        models: Which models of `values` and `norms` these are, shape (J,).
        shared: What attacks have worked out about the models of `values`; parts of the models have the same.
    """

    def __init__(self, values: Any, norms: Any, models: Ints | None = None) -> None:
        if len(values.shape) != 3 or tuple(norms.shape) != tuple(values.shape[:2]):
            raise InputError(
                "rows must have values of shape (num_models, num_features, num_classes) and norms of shape "
                f"(num_models, num_features), got {tuple(values.shape)} and {tuple(norms.shape)}"
            )
        self.values, self.norms = values, norms
        self.models = np.arange(values.shape[0]) if models is None else models
        self.shape: tuple[int, int, int] = (len(self.models), int(values.shape[1]), int(values.shape[2]))
        self.shared: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "shared": {}}

    def take(self, models: slice | Ints | Flags) -> "Rows":
        """Some of the models, not read yet."""
        taken = Rows(self.values, self.norms, self.models[models])
        taken.shared = self.shared
        return taken

    def values_of(self, models: slice | Ints) -> Floats32:
        """Class rows of some models, shape (number of them, F, C)."""
        return np.asarray(self.values[self.models[models]], dtype=np.float32)

    def norms_of(self, models: slice | Ints) -> Floats32:
        """Lengths of some models' rows, shape (number of them, F)."""
        return np.asarray(self.norms[self.models[models]], dtype=np.float32)
