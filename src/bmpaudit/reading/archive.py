"""NumPy's `.npz` archives and `.npy` arrays, without pickles."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import DataError
from bmpaudit.reading.damage import check_unpacked, damage_in, opened

Arrays = dict[str, npt.NDArray[Any]]

ARCHIVE, ARRAY = "an .npz archive", "an .npy array"
SUFFIX = ".npy"
KIND_NAMES = {
    "b": "flags",
    "i": "whole numbers",
    "u": "unsigned numbers",
    "f": "numbers",
    "c": "complex numbers",
    "S": "bytes",
    "U": "text",
}
"""What arrays may hold, by NumPy's letters: no dates, records or objects."""

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
PICKLED = "it holds pickled objects, which are never loaded"
# What NumPy writes; other methods may ask for any amount of memory to unpack.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
FIRST_SURROGATE, LAST_SURROGATE, LAST_CHARACTER = 0xD800, 0xDFFF, 0x10FFFF


def archive_names(path: Path, *, all_members: bool = False) -> list[str]:
    """The names of all arrays in an `.npz` archive, in the order of the file.

    Args:
        path: The file.
        all_members: Whether to add the whole names of members that are no arrays.

    Raises:
        DataError: if the file is missing or damaged.
    """
    with damage_in(path, ARCHIVE), opened(path) as file, _archive(file) as archive:
        others = [name for name in archive.namelist() if not name.endswith(SUFFIX)] if all_members else []
        return [*_members(archive), *others]


def read_archive(
    path: Path, names: Collection[str] | None = None, *, required: Collection[str] = (), only: bool = False
) -> Arrays:
    """Arrays of an `.npz` archive, in the order of the file.

    Args:
        path: The file.
        names: Arrays to read, as far as they are there, besides those that are required; None for all.
        required: Arrays that must be there.
        only: Whether there may be no others.

    Raises:
        DataError: if the file is missing or damaged, lacks an array or has an unknown one, would take too much memory,
            or if an array that is to be read holds anything but flags, numbers or text.
    """
    with damage_in(path, ARCHIVE), opened(path) as file, _archive(file) as archive:
        members = _members(archive)
        for name in required:
            if name not in members:
                raise DataError(
                    f"{path}: key {name!r} is missing; the archive has {', '.join(sorted(members)) or 'nothing'}"
                )
        known = (*required, *(names or ()))
        for name in members:
            if only and name not in known:
                raise DataError(f"{path}: unknown array {name!r}; there may be {', '.join(known)}")
        chosen = {name: member for name, member in members.items() if names is None or name in known}
        check_unpacked(path, "its arrays", sum(member.file_size for member in chosen.values()))
        arrays = {}
        for name, member in chosen.items():
            if member.compress_type not in METHODS:
                raise ValueError(f"{name} is compressed by method {member.compress_type}, must be stored or deflated")
            with archive.open(member) as content:
                arrays[name] = _read(content, name, member.file_size)
        return arrays


def read_array(path: Path) -> npt.NDArray[Any]:
    """The array of an `.npy` file.

    Raises:
        DataError: if the file is missing or damaged, or holds anything but flags, numbers or text.
    """
    with damage_in(path, ARRAY), opened(path) as file:
        return _read(file, "it", path.stat().st_size)


def checked(arrays: Arrays, name: str, kinds: str, *shape: int | None) -> npt.NDArray[Any]:
    """One of several arrays, which must hold what it is said to hold.

    Args:
        arrays: Arrays by name.
        name: Which of them.
        kinds: NumPy's letters of the kinds of entries that it may have, such as "iu" for whole numbers.
        shape: Its extents, None for any.

    Raises:
        ValueError: naming the array, the bound and what it is.
    """
    if name not in arrays:
        raise ValueError(f"array {name} is missing")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if array.dtype.kind not in kinds or not fits:
        wanted = " or ".join(KIND_NAMES[kind] for kind in kinds)
        extents = ", ".join("any" if extent is None else str(extent) for extent in shape)
        raise ValueError(f"{name} must be {wanted} of shape ({extents}), got {array.dtype} of shape {array.shape}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"{name} must not be NaN")
    return array


def _archive(file: IO[bytes]) -> zipfile.ZipFile:
    magic = file.read(len(np.lib.format.MAGIC_PREFIX))
    file.seek(0)
    if magic == np.lib.format.MAGIC_PREFIX:
        _read_header(file, "it")  # says if it is pickled
        raise ValueError("it is a single array")
    return zipfile.ZipFile(file)


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive by name; members of other kinds are not ours."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(SUFFIX)
        if name in members:
            raise ValueError(f"{name} is there twice")
        if member.filename.endswith(SUFFIX):
            members[name] = member
    return members


def _read(file: IO[bytes], name: str, num_bytes: int) -> npt.NDArray[Any]:
    """An array whose header agrees with the number of bytes that are there."""
    shape, dtype = _read_header(file, name)
    there, declared = num_bytes - file.tell(), math.prod(shape) * dtype.itemsize
    if any(extent < 0 for extent in shape) or declared > there or (dtype.itemsize == 0 and math.prod(shape) > 0):
        raise ValueError(f"{name} of shape {shape} and type {dtype} cannot be in {there:,} bytes")
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False)
    if dtype.kind == "U":
        _check_text(array, name)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the Python that wrote it
        try:
            version = np.lib.format.read_magic(file)
            if version not in HEADERS:
                raise ValueError(f"{name} has a header of version {version}, must be (1, 0) or (2, 0)")
            shape, _, dtype = HEADERS[version](file)
        except MemoryError:  # which Python's parser also raises for what is nested too deep
            raise ValueError(f"{name} has a header that cannot be parsed") from None
    if dtype.hasobject:
        raise ValueError(PICKLED)
    if dtype.kind not in KIND_NAMES or dtype.subdtype is not None:
        raise ValueError(f"{name} must hold flags, numbers or text, got {dtype}")
    return shape, dtype


def _check_text(array: npt.NDArray[Any], name: str) -> None:
    """Characters that are none could be neither printed nor written, after all the work."""
    flat = np.ascontiguousarray(array)
    codes = flat.reshape(-1).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    is_none = (codes > LAST_CHARACTER) | ((codes >= FIRST_SURROGATE) & (codes <= LAST_SURROGATE))
    if is_none.any():
        raise ValueError(f"{name} must be text, got {int(codes[is_none.argmax()]):#x}, which is no character")
