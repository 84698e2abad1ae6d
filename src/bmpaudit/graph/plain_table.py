"""Tables of features and labels as graphs without edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Ints
from bmpaudit.errors import InputError
from bmpaudit.graph.features import as_array
from bmpaudit.graph.graph import Graph


def from_table(features: Any, labels: npt.ArrayLike) -> Graph:
    """See `Graph.from_table`."""
    classes, class_names = _classes(as_array("labels", labels))
    return Graph.from_edges(
        np.empty((0, 2), dtype=np.int64),
        features,
        classes,
        node_names=_row_names(features),
        class_names=class_names,
    )


def _classes(labels: npt.NDArray[Any]) -> tuple[Ints, list[str] | None]:
    """Class numbers from 0, and names of the classes unless the labels were such numbers already."""
    if labels.ndim != 1 or not len(labels):
        raise InputError(f"labels must have shape (num_rows,) with at least one row, got {labels.shape}")
    if labels.dtype.kind == "f":
        if not np.array_equal(labels, np.floor(labels)):  # also of NaN
            raise InputError("labels must be classes, got numbers that are not whole; a regression cannot be audited")
        labels = labels.astype(np.int64)
    values, classes = np.unique(labels if labels.dtype.kind in "iu" else labels.astype(str), return_inverse=True)
    if values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values))):
        return classes.astype(np.int64), None
    return classes.astype(np.int64), [str(value) for value in values]


def _row_names(features: Any) -> list[str] | None:
    """The index of a pandas table, unless it only counts the rows."""
    index = getattr(features, "index", None)
    if index is None or callable(index) or list(index) == list(range(len(index))):
        return None
    return [str(name) for name in index]
