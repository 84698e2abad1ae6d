"""Reading Python 2 pickles of arrays without letting them run anything."""

import collections
import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.errors import DataError, one_line
from bmpaudit.reading.damage import opened


class _PickledCsr:
    """Takes the place of SciPy's class while unpickling: it only keeps the parts, to be checked afterwards."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def matrix(self) -> scipy.sparse.csr_array:
        parts = (self.state["data"], self.state["indices"], self.state["indptr"])
        matrix = scipy.sparse.csr_array(parts, shape=self.state["_shape"])
        # Indices come from the file: one that points outside would make compiled code read foreign memory.
        matrix.check_format(full_check=True)
        return matrix


_NDARRAY = "ndarray"  # takes the place of NumPy's class, which could be called with any shape


def _empty_array(kind: Any, shape: Any, _: Any) -> npt.NDArray[Any]:
    """Takes the place of NumPy's helper: what an array holds, and so its size, only comes with its state."""
    if kind != _NDARRAY or shape != (0,):
        raise DataError(f"refused: the pickle asks for an array of shape {shape} before its content")
    return np.empty(0, dtype=np.int8)


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): np.dtype,
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


def load_arrays_pickle(path: Path) -> Any:
    """Loads a pickle that holds nothing but arrays, SciPy CSR matrices and a dictionary of lists.

    Raises:
        DataError: if the file is missing, damaged, or asks for anything that is not on the short list above.
    """
    try:
        with opened(path) as file:
            content = file.read()
        _check_memo(content)
        value = _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
        return value.matrix() if isinstance(value, _PickledCsr) else value
    except DataError as refusal:
        raise DataError(f"{path}: {refusal}") from None
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception as damage:  # a broken pickle can raise nearly anything
        raise DataError(f"{path}: truncated or damaged ({one_line(damage)})") from None
