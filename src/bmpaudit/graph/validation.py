"""What must hold of a graph's labels, names and adjacency."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.arrays import Ints
from bmpaudit.characters import is_text
from bmpaudit.errors import InputError
from bmpaudit.graph.features import as_array, type_of
from bmpaudit.graph.node_error import NodeError, describe_node

# More than any data set has; a label beyond is an identifier that was not numbered.
MAX_CLASSES = 65_536


def as_labels(labels: npt.ArrayLike) -> npt.NDArray[Any]:
    """Whole numbers, one for each node, in whatever type they came."""
    array = as_array("labels", labels)
    if array.ndim != 1:
        raise InputError(f"labels must have shape (num_nodes,), got {array.shape}")
    if len(array) == 0:
        raise InputError("a graph must have at least one node, got 0 labels")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"labels must be whole numbers, got {type_of(array)}")
    return array


def valid_labels(labels: npt.ArrayLike, node_names: Sequence[str] | None) -> Ints:
    """A read-only copy of labels that name at least two classes, numbered from 0."""
    array = as_labels(labels)
    lowest, highest = int(np.argmin(array)), int(np.argmax(array))
    if array[lowest] < 0:
        what = f"labels must not be negative (every node needs a class), got {array[lowest]}"
        raise NodeError(what, lowest, node_names)
    if array[highest] >= MAX_CLASSES:
        what = f"labels must be below {MAX_CLASSES} (classes are numbered from 0), got {array[highest]}"
        raise NodeError(what, highest, node_names)
    if array[lowest] == array[highest]:
        raise InputError(f"labels must name at least two classes, got only class {array[0]}")
    return _read_only(array, np.int64)


def valid_num_classes(num_classes: Any, labels: Ints, node_names: Sequence[str] | None) -> int:
    """A number of classes above all labels."""
    if not isinstance(num_classes, (int, np.integer)) or isinstance(num_classes, bool) or num_classes > MAX_CLASSES:
        raise InputError(f"num_classes must be a whole number of at most {MAX_CLASSES}, got {num_classes!r}")
    highest = int(np.argmax(labels))
    if labels[highest] >= num_classes:
        what = f"labels must be below num_classes={num_classes}, got {labels[highest]}"
        raise NodeError(what, highest, node_names)
    return int(num_classes)


def valid_names(what: str, names: Sequence[str] | None, number: int, of_what: str) -> tuple[str, ...] | None:
    """One text for each of `number` things."""
    if names is None:
        return None
    if len(names) != number:
        raise InputError(f"{what} must have one name for each of {number} {of_what}, got {len(names)}")
    for place, name in enumerate(names):
        if not isinstance(name, str):
            raise InputError(f"{what} must be text, got {type(name).__name__} {name!r} at {place}")
        if not is_text(name):
            raise InputError(f"{what} must be text, got {name!r} at {place}, which has half a character")
    return tuple(str(name) for name in names)  # NumPy's strings are subclasses of str


def check_distinct(names: Sequence[str] | None) -> None:
    """Raises `InputError` with the first name that two nodes share."""
    if names is None or len(set(names)) == len(names):
        return
    first: dict[str, int] = {}
    for node, name in enumerate(names):
        if name in first:
            raise InputError(f"node_names must be distinct, got {name!r} for nodes {first[name]} and {node}")
        first[name] = node


def valid_adjacency(
    indptr: npt.ArrayLike, indices: npt.ArrayLike, num_nodes: int, node_names: Sequence[str] | None
) -> tuple[Ints, npt.NDArray[np.int32]]:
    """Read-only copies of compressed sparse rows of a simple undirected graph.

    Raises:
        InputError: unless every row lies within `indices`, and every edge is there in both directions, once, between
            two different nodes, in ascending order within its row.
    """
    starts, ends = _whole_numbers("indptr", indptr), _whole_numbers("indices", indices)
    if len(starts) != num_nodes + 1:
        raise InputError(f"indptr must have num_nodes + 1 = {num_nodes + 1} entries, got {len(starts)}")
    if starts[0] != 0 or starts[-1] != len(ends):
        raise InputError(
            f"indptr must go from 0 to {len(ends)}, the length of indices, got {starts[0]} to {starts[-1]}"
        )
    decreases = starts[1:] < starts[:-1]
    if decreases.any():
        node = int(np.argmax(decreases))
        raise InputError(f"indptr must not decrease, got {starts[node]} before {starts[node + 1]} at entry {node}")
    is_outside = (ends < 0) | (ends >= num_nodes)
    if is_outside.any():
        entry = int(np.argmax(is_outside))
        raise InputError(f"indices must be in [0, {num_nodes}), got {ends[entry]} at entry {entry}")

    row_starts, neighbors = _read_only(starts, np.int64), _read_only(ends, np.int32)
    source = np.repeat(np.arange(num_nodes, dtype=np.int32), np.diff(row_starts))
    is_loop = source == neighbors
    if is_loop.any():
        place = describe_node(_first(source, is_loop), node_names)
        raise InputError(f"edges must join two different nodes, got a self-loop at {place}")
    is_disordered = (neighbors[1:] <= neighbors[:-1]) & (source[1:] == source[:-1])
    if is_disordered.any():
        place = describe_node(_first(source[1:], is_disordered), node_names)
        raise InputError(f"indices must be ascending and distinct within a row, they are not at {place}")
    ones = np.ones(len(neighbors), dtype=np.int8)
    reverse = scipy.sparse.csr_array((ones, neighbors, row_starts), shape=(num_nodes, num_nodes)).tocsc()
    if not (np.array_equal(reverse.indptr, row_starts) and np.array_equal(reverse.indices, neighbors)):
        one_way = _one_way(source, neighbors, num_nodes, node_names)
        raise InputError(f"edges must be there in both directions, got only {one_way}")
    return row_starts, neighbors


def _one_way(source: Any, target: Any, num_nodes: int, node_names: Sequence[str] | None) -> str:
    arcs = source.astype(np.int64) * num_nodes + target
    reversed_arcs = target.astype(np.int64) * num_nodes + source
    arc = int(np.argmin(np.isin(reversed_arcs, arcs)))
    ends = (describe_node(int(end), node_names) for end in (source[arc], target[arc]))
    return "{} to {}".format(*ends)


def _first(values: npt.NDArray[Any], flags: npt.NDArray[np.bool_]) -> int:
    return int(values[np.argmax(flags)])


def _whole_numbers(what: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    array = as_array(what, values)
    if array.ndim != 1 or (len(array) and not np.issubdtype(array.dtype, np.integer)):
        raise InputError(f"{what} must be a list of whole numbers, got {type_of(array)} of shape {array.shape}")
    return array


def _read_only(array: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """A copy, so that nobody else can write to it."""
    copy = np.array(array, dtype=dtype, order="C")
    copy.setflags(write=False)
    return copy
