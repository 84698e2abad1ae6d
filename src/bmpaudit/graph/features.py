"""Feature matrices: any dense or sparse input in one storage."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.errors import InputError
from bmpaudit.graph.node_error import NodeError

Features: TypeAlias = npt.NDArray[np.float32] | scipy.sparse.csr_array

# Below this share of non-zeros, compressed rows are smaller and faster than a dense matrix.
SPARSE_BELOW = 0.25

# More than any data set has; the weights of a model take hundreds of bytes for each.
MAX_FEATURES = 2**22

NEEDED = "models learn from features, and a graph without any may take its nodes' degrees"


def as_array(what: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    """`numpy.asarray`, with an error that says what was not an array."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as failure:  # rows of different length
        raise InputError(f"{what} must be an array: {failure}") from None


def type_of(array: npt.NDArray[Any]) -> str:
    """The type of an array's entries, in words a user knows."""
    return "text" if array.dtype.kind in "SU" else str(array.dtype)


def check_sparse(what: str, matrix: Any) -> None:
    """Raises `InputError` if a SciPy matrix has indices that would make compiled code read foreign memory."""
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
            # The check leaves this out if the last one is negative; differences of the smallest integers wrap around.
            if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
                raise ValueError("index pointer values must not fall")
    except ValueError as failure:
        raise InputError(f"{what} must be a valid sparse matrix: {failure}") from None


def as_matrix(features: Any, num_nodes: int) -> Any:
    """Checks the shape of features and leaves their values as they are.

    Args:
        features: Anything NumPy makes a matrix of, or a SciPy sparse matrix.
        num_nodes: The number of rows there must be.

    Returns:
        An array or a SciPy sparse matrix of shape (num_nodes, num_features).
    """
    if features is None:
        raise InputError(f"features must not be None: {NEEDED}")
    matrix = features if scipy.sparse.issparse(features) else as_array("features", features)
    if matrix.ndim != 2:
        raise InputError(f"features must have shape (num_nodes, num_features), got {matrix.shape}")
    rows, columns = matrix.shape
    if rows != num_nodes:
        raise InputError(f"features must have one row for each of {num_nodes} labels, got {rows} rows")
    if columns == 0:
        raise InputError(f"features must have at least one column, got 0: {NEEDED}")
    if columns > MAX_FEATURES:
        raise InputError(f"features must have at most {MAX_FEATURES:,} columns, got {columns:,}")
    return matrix


def canonical_features(features: Any, num_nodes: int, node_names: Sequence[str] | None) -> Features:
    """A read-only copy in single precision: compressed rows if under a quarter is non-zero, else dense.

    Raises:
        InputError: naming the node and the column of the first value that is not finite.
    """
    matrix = as_matrix(features, num_nodes)
    if scipy.sparse.issparse(matrix):
        return _from_sparse(matrix, node_names)
    dense = _float32(matrix, node_names, order="C")
    is_finite = np.isfinite(dense)
    if not is_finite.all():
        node, column = (int(place) for place in np.unravel_index(np.argmin(is_finite), dense.shape))
        value = matrix[node, column]
        is_too_large = np.isinf(dense[node, column]) and np.isfinite(float(value))
        bound = " in single precision" if is_too_large else ""
        raise NodeError(f"features must be finite{bound}, got {value}", node, node_names, column)
    if np.count_nonzero(dense) < SPARSE_BELOW * dense.size:
        return _read_only(scipy.sparse.csr_array(dense))
    dense.setflags(write=False)
    return dense


def _from_sparse(matrix: Any, node_names: Sequence[str] | None) -> Features:
    check_sparse("features", matrix)
    sparse = _float32(scipy.sparse.csr_array(matrix), node_names)
    with np.errstate(over="ignore"):
        sparse.sum_duplicates()
    is_finite = np.isfinite(sparse.data)
    if not is_finite.all():
        entry = int(np.argmin(is_finite))
        node = int(np.searchsorted(sparse.indptr, entry, side="right")) - 1
        column = int(sparse.indices[entry])
        raise NodeError(f"features must be finite, got {sparse.data[entry]}", node, node_names, column)
    sparse.eliminate_zeros()
    if sparse.nnz < SPARSE_BELOW * np.prod(sparse.shape):
        return _read_only(sparse)
    dense: npt.NDArray[np.float32] = sparse.toarray()
    dense.setflags(write=False)
    return dense


def _read_only(sparse: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    for part in (sparse.data, sparse.indices, sparse.indptr):
        part.setflags(write=False)
    return sparse


def _float32(matrix: Any, node_names: Sequence[str] | None, **options: Any) -> Any:
    """A copy, so that what the caller holds stays theirs to change."""
    if np.iscomplexobj(matrix):
        raise InputError("features must be real numbers, got complex numbers")
    try:
        with np.errstate(over="ignore"):  # a number too large becomes infinite, which is refused
            return matrix.astype(np.float32, copy=True, **options)
    except (TypeError, ValueError, OverflowError) as failure:
        if isinstance(matrix, np.ndarray):
            _refuse_first_text(matrix, node_names)
        raise InputError(f"features must be numbers: {failure}") from None


def _refuse_first_text(matrix: npt.NDArray[Any], node_names: Sequence[str] | None) -> None:
    for (node, column), value in np.ndenumerate(matrix):
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            raise NodeError(f"features must be numbers, got {str(value)!r}", node, node_names, column) from None
