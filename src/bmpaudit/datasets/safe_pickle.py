"""Reading Python 2 pickles of arrays without letting them run anything: nothing of NumPy or SciPy is unpickled."""

import collections
import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from bmpaudit.graph.graph import check_sparse
from bmpaudit.io.readers import opened
from bmpaudit.util.errors import DataError, one_line


class _PickledDtype:
    """Takes the place of NumPy's class: a state of the file's choice could make numbers pass for Python objects."""

    def __init__(self, code: str, *_: Any) -> None:
        self.dtype = np.dtype(code)
        if self.dtype.kind not in "biuf":
            raise DataError(f"refused: the pickle asks for an array of {self.dtype}, and only numbers are read")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _PickledArray:
    """Takes the place of NumPy's class while unpickling."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, is_fortran, content = state
        values = np.frombuffer(content.encode("latin1") if isinstance(content, str) else content, dtype=kind.dtype)
        if min(shape, default=0) < 0:
            raise DataError(f"refused: the pickle asks for an array of shape {shape}")
        native = kind.dtype.newbyteorder("=")
        self.array = values.reshape(shape, order="F" if is_fortran else "C").astype(native)


class _PickledCsr:
    """Takes the place of SciPy's class while unpickling: it only keeps the parts, to be checked afterwards."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def matrix(self) -> scipy.sparse.csr_array:
        data, indices, indptr = (self.state[part].array for part in ("data", "indices", "indptr"))
        matrix = scipy.sparse.csr_array((data, indices, indptr), shape=self.state["_shape"])
        check_sparse("the matrix", matrix)
        return matrix


_NDARRAY = "ndarray"  # takes the place of NumPy's class, which could be called with any shape


def _empty_array(kind: Any, shape: Any, _: Any) -> _PickledArray:
    """Takes the place of NumPy's helper: what an array holds, and so its size, only comes with its state."""
    if kind != _NDARRAY or shape != (0,):
        raise DataError(f"refused: the pickle asks for an array of shape {shape} before its content")
    return _PickledArray()


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _PickledDtype,
    ("scipy.sparse.csr", "csr_matrix"): _PickledCsr,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # With encoding="latin1" pickle first translates Python 2 names, so both spellings can arrive here.
        admitted = _ADMITTED.get((module.replace("builtins", "__builtin__"), name))
        if admitted is None:
            raise DataError(f"refused: the pickle asks for {module}.{name}, which no Planetoid file needs")
        return admitted


def _check_memo(content: bytes) -> None:
    """Refuses places in the unpickler's memory beyond those that a pickle of this length needs: it would make them."""
    for number, (code, argument, _) in enumerate(pickletools.genops(content)):
        if "PUT" in code.name and isinstance(argument, int) and argument > number:
            raise DataError(f"refused: the pickle asks for place {argument:,} in memory after {number:,} steps")


def _unwrapped(value: Any) -> Any:
    if isinstance(value, _PickledCsr):
        return value.matrix()
    if isinstance(value, _PickledArray):
        return value.array
    if not isinstance(value, dict) or not all(
        isinstance(row, list) and all(isinstance(number, int) for number in (key, *row)) for key, row in value.items()
    ):
        raise DataError("refused: the pickle must hold an array, a CSR matrix or a dictionary of lists of integers")
    return value


def load_arrays_pickle(path: Path) -> Any:
    """Loads a pickle that holds nothing but arrays, SciPy CSR matrices and a dictionary of lists."""
    try:
        with opened(path) as file:
            content = file.read()
        _check_memo(content)
        value = _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
        return _unwrapped(value)
    except DataError as refusal:
        raise DataError(f"{path}: {refusal}") from None
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception as damage:  # a broken pickle can raise nearly anything
        raise DataError(f"{path}: truncated or damaged ({one_line(damage)})") from None
