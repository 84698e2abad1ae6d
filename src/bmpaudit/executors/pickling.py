"""Values on their way to another process: pickled, with large arrays apart so that none is sent twice."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

SMALLEST_PART = 2**20
"""Bytes of an array that is a part of its own."""


class Packed(NamedTuple):
    """A pickled value, and its large arrays by what they hold.

    Attributes:
        content: The pickle, which names the parts.
        parts: Arrays whose numbers lie together, by the digest of their bytes.
    """

    content: bytes
    parts: dict[str, npt.NDArray[Any]]


def dumps(value: Any, buffer_callback: Callable[[pickle.PickleBuffer], bool] | None = None) -> bytes:
    """As `pickle.dumps`; with cloudpickle also lambdas, and what is defined in a script or notebook."""
    buffer = io.BytesIO()
    _pickler_class()(buffer, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=buffer_callback).dump(value)
    return buffer.getvalue()


def pack(value: Any) -> Packed:
    """Pickles a value without its large arrays; values that share an array, or have equal ones, share that part."""
    buffer = io.BytesIO()
    pickler = _packer_class()(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.parts, pickler.places = {}, {}
    pickler.dump(value)
    return Packed(buffer.getvalue(), pickler.parts)


def unpack(content: bytes, part: Callable[[str], npt.NDArray[np.uint8]]) -> Any:
    """The value; `part` gives the bytes of each part, which the value's arrays then share."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, place: tuple[Any, ...]) -> npt.NDArray[Any]:
            digest, dtype, shape, offset, strides = place
            return np.ndarray(shape, dtype, part(digest).data, offset, strides)

    # From the process that has submitted the task, as the task itself.
    return Unpickler(io.BytesIO(content)).load()


def _pickler_class() -> Any:
    try:
        import cloudpickle
    except ModuleNotFoundError:
        return pickle.Pickler
    return cloudpickle.Pickler


@cache
def _packer_class() -> Any:
    class Packer(_pickler_class()):  # type: ignore[misc]
        parts: dict[str, npt.NDArray[Any]]
        places: dict[int, tuple[Any, ...] | None]

        def persistent_id(self, each: Any) -> tuple[Any, ...] | None:
            if type(each) is not np.ndarray or each.nbytes < SMALLEST_PART:
                return None
            if id(each) not in self.places:
                self.places[id(each)] = self._place(each)
            return self.places[id(each)]

        def _place(self, array: npt.NDArray[Any]) -> tuple[Any, ...] | None:
            whole = _whole(array)
            if whole is None:
                return None
            digest = sha256(whole.reshape(-1, order="A").view(np.uint8).data).hexdigest()
            self.parts[digest] = whole
            return digest, array.dtype, array.shape, _address(array) - _address(whole), array.strides

    return Packer


def _whole(array: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """The array that one is a part of, unless most of it is left out; None if no numbers of either lie together."""
    if array.dtype.hasobject:
        return None
    base = array.base
    if type(base) is np.ndarray and base.nbytes <= 2 * array.nbytes and base.dtype == array.dtype and base.flags.forc:
        return base
    return array if array.flags.forc else None


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
