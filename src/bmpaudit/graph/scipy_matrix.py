"""Graphs from SciPy sparse matrices."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.errors import InputError
from bmpaudit.graph.features import check_sparse
from bmpaudit.graph.graph import Graph


def from_scipy(adjacency: Any, features: Any, labels: npt.ArrayLike) -> Graph:
    """See `Graph.from_scipy`; `Graph.adjacency` is the inverse."""
    if not scipy.sparse.issparse(adjacency):
        raise InputError(f"adjacency must be a SciPy sparse matrix, got {type(adjacency).__name__}")
    if adjacency.ndim != 2:
        raise InputError(f"adjacency must be a matrix, got shape {adjacency.shape}")
    rows, columns = adjacency.shape
    num_labels = np.size(labels)
    if rows != columns or rows != num_labels:
        raise InputError(
            f"adjacency must be square with one row for each of {num_labels} labels, got {rows} × {columns}"
        )
    check_sparse("adjacency", adjacency)
    entries = scipy.sparse.coo_array(adjacency)
    is_edge = entries.data != 0
    pairs = np.column_stack([entries.row[is_edge], entries.col[is_edge]])
    return Graph.from_edges(pairs, features, labels, both_ways_expected=True)
