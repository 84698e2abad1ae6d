"""Reading Python 2 pickles of arrays without letting them run anything."""

import collections
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from bmpaudit.errors import DataError


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


_reconstruct = np.ndarray.__reduce__(np.empty(0))[0]  # NumPy's own helper, wherever this version keeps it

_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): np.ndarray,
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


def load_arrays_pickle(path: Path) -> Any:
    """Loads a pickle that holds nothing but arrays, SciPy CSR matrices and a dictionary of lists.

    Raises:
        DataError: if the file is missing, damaged, or asks for anything that is not on the short list above.
    """
    try:
        with path.open("rb") as file:
            value = _ArrayUnpickler(file, encoding="latin1").load()
        return value.matrix() if isinstance(value, _PickledCsr) else value
    except DataError as refusal:
        raise DataError(f"{path}: {refusal}") from None
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception as damage:  # a broken pickle can raise nearly anything
        raise DataError(f"{path}: truncated or damaged ({type(damage).__name__}: {damage})") from None
