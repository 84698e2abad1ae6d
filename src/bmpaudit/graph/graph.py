"""The graph: undirected edges, features, labels and names of nodes, checked when it is built."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.text import is_text
from bmpaudit.util.values import Ints

if TYPE_CHECKING:
    import networkx


class NodeError(InputError):
    """A value of one node cannot be used.

    A reader of files knows more about where the value stands, and reports `what` with the file, line and column.

    Attributes:
        what: The requirement and the value, without the place.
        node: Number of the node.
        column: Number of the feature column, if the value is a feature.
    """

    def __init__(self, what: str, node: int, names: Sequence[str] | None, column: int | None = None) -> None:
        self.what, self.node, self.column = what, node, column
        place = describe_node(node, names)
        super().__init__(f"{what} at {place}" if column is None else f"{what} at {place}, feature column {column}")


def describe_node(node: int, names: Sequence[str] | None) -> str:
    """What to call a node in a message: by its name if it has one.

    >>> describe_node(1, ["Rex", "Tom"]), describe_node(1, None)
    ("node 'Tom'", 'node 1')
    """
    return f"node {node}" if names is None else f"node {names[node]!r}"


# Feature matrices: any dense or sparse input in one storage.


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


# From any list of node pairs to a simple undirected graph, with a record of what was changed.


class GraphCleanedWarning(UserWarning):
    """The edges were not those of a simple undirected graph; the message says what was changed."""


@dataclass(frozen=True)
class EdgeCleaning:
    """What was changed to make a simple undirected graph of some pairs of nodes.

    Attributes:
        num_pairs: Number of pairs (u, v) before cleaning.
        num_self_loops: Number of pairs with u = v, which were dropped.
        num_duplicates: Number of repeated pairs in the same direction, which were dropped.
        num_one_way: Number of distinct pairs (u, v) without a (v, u), which now count in both directions.
        num_edges: Number of undirected edges after cleaning.
    """

    num_pairs: int
    num_self_loops: int
    num_duplicates: int
    num_one_way: int
    num_edges: int

    @property
    def is_mixed(self) -> bool:
        """Whether some edges were in one direction and others in both."""
        return 0 < self.num_one_way < self.num_edges

    def changes(self, *, both_ways_expected: bool) -> str:
        """The changes in words, empty if there were none.

        Args:
            both_ways_expected: Whether the source stores an undirected edge as two pairs (PyG, SciPy), so that a
                single pair is a directed edge. Otherwise, one pair per edge is as good as two.
        """
        dropped = []
        if self.num_self_loops:
            dropped.append(f"{self.num_self_loops:,} self-loops")
        if self.num_duplicates:
            dropped.append(f"{self.num_duplicates:,} duplicates")
        changes = [f"{' and '.join(dropped)} dropped"] if dropped else []
        if self.num_one_way and (both_ways_expected or self.is_mixed):
            changes.append(f"{self.num_one_way:,} one-way edges made two-way")
        return ", ".join(changes)


@dataclass(frozen=True)
class CleanEdges:
    """A simple undirected graph as compressed sparse rows with ascending neighbours, and what was cleaned."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    cleaning: EdgeCleaning


def clean_edges(pairs: npt.NDArray[np.integer], num_nodes: int) -> CleanEdges:
    """Makes `pairs` symmetric and drops self-loops and duplicates.

    Args:
        pairs: Node ids, shape (num_pairs, 2).
        num_nodes: Number of nodes; ids must be below it.

    Raises:
        InputError: if a pair names a node that does not exist.
    """
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"edges must have shape (num_edges, 2), got {pairs.shape}")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise InputError(f"edges must be whole numbers, got {type_of(pairs)}")
    outside = (pairs < 0) | (pairs >= num_nodes)
    if outside.any():
        row = int(np.argmax(outside.any(axis=1)))
        u, v = (int(end) for end in pairs[row])
        raise InputError(f"edge {row} joins nodes {u} and {v}, but node ids must be in [0, {num_nodes})")

    source, target = pairs.astype(np.int64).T
    is_loop = source == target
    source, target = source[~is_loop], target[~is_loop]
    # Truth values add up to true, so that each arc is there once.
    present = np.ones(len(source), dtype=np.bool_)
    arcs = scipy.sparse.coo_array((present, (source, target)), shape=(num_nodes, num_nodes)).tocsr()
    both = (arcs + arcs.T).tocsr()
    both.sort_indices()
    cleaning = EdgeCleaning(
        num_pairs=len(pairs),
        num_self_loops=int(np.count_nonzero(is_loop)),
        num_duplicates=len(source) - arcs.nnz,
        num_one_way=both.nnz - arcs.nnz,
        num_edges=both.nnz // 2,
    )
    return CleanEdges(both.indptr.astype(np.int64), both.indices.astype(np.int32), cleaning)


# What must hold of a graph's labels, names and adjacency.


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
    return _frozen_copy(array, np.int64)


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

    row_starts, neighbors = _frozen_copy(starts, np.int64), _frozen_copy(ends, np.int32)
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


def _frozen_copy(array: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """A copy, so that nobody else can write to it."""
    copy = np.array(array, dtype=dtype, order="C")
    copy.setflags(write=False)
    return copy


# An undirected graph with features and labels on its nodes.


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected graph with features and a class label on every node.

    Usually made by `from_edges` or another `from_…` method, which also clean the edges. However it is made, it is
    validated, and it never changes afterwards: its arrays are read-only copies. Two graphs are equal if their contents
    are, whatever the names.

    Attributes:
        indptr: Row starts of the adjacency, shape (num_nodes + 1,).
        indices: Neighbours, ascending within a row, each edge in both directions, shape (2 * num_edges,).
        features: Feature matrix, shape (num_nodes, num_features): compressed sparse rows if under a quarter is
            non-zero, else dense, whichever was passed in.
        labels: Class of each node, shape (num_nodes,), values in [0, num_classes).
        num_classes: Number of classes.
        node_names: A distinct name for each node, if any.
        class_names: A name for each class, if any.
        cleaning: What was changed to make a simple undirected graph.

    Raises:
        InputError: if something does not fit; the message names it.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    features: Features
    labels: npt.NDArray[np.int64]
    num_classes: int
    node_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    cleaning: EdgeCleaning = field(kw_only=True)

    def __post_init__(self) -> None:
        num_nodes = len(as_labels(self.labels))
        names = valid_names("node_names", self.node_names, num_nodes, "nodes")
        check_distinct(names)
        labels = valid_labels(self.labels, names)
        num_classes = valid_num_classes(self.num_classes, labels, names)
        class_names = valid_names("class_names", self.class_names, num_classes, "classes")
        features = canonical_features(self.features, num_nodes, names)
        indptr, indices = valid_adjacency(self.indptr, self.indices, num_nodes, names)
        if self.cleaning.num_edges != len(indices) // 2:
            raise InputError(
                f"cleaning.num_edges must be {len(indices) // 2}, the number of edges, got {self.cleaning.num_edges}"
            )
        valid = {
            "indptr": indptr,
            "indices": indices,
            "features": features,
            "labels": labels,
            "num_classes": num_classes,
            "node_names": names,
            "class_names": class_names,
        }
        for name, value in valid.items():
            object.__setattr__(self, name, value)  # the class is frozen

    @classmethod
    def from_edges(
        cls,
        edges: npt.ArrayLike,
        features: Any,
        labels: npt.ArrayLike,
        *,
        node_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        both_ways_expected: bool = False,
    ) -> Graph:
        """Makes a graph from pairs of node ids.

        Args:
            edges: Pairs of node ids, shape (num_pairs, 2); each edge once, or each in both directions.
            features: Dense or SciPy sparse matrix, shape (num_nodes, num_features).
            labels: Class numbers from 0, shape (num_nodes,).
            node_names: A distinct name for each node.
            class_names: A name for each class.
            both_ways_expected: Whether to warn about edges that are there in one direction only.

        Raises:
            InputError: if something does not fit; the message names it.

        Warns:
            GraphCleanedWarning: if self-loops or duplicates were dropped, or directed edges made undirected.

        >>> path = Graph.from_edges([(0, 1), (1, 2)], [[1.0], [0.0], [1.0]], [0, 1, 0])
        >>> print(path)
        3 nodes, 2 edges, 1 features, 2 classes
        """
        label_array = as_labels(labels)
        num_nodes = len(label_array)
        matrix = as_matrix(features, num_nodes)
        pairs = as_array("edges", edges)
        clean = clean_edges(pairs if pairs.size else np.empty((0, 2), dtype=np.int64), num_nodes)
        graph = cls(
            indptr=clean.indptr,
            indices=clean.indices,
            features=matrix,
            labels=label_array,
            num_classes=max(int(label_array.max()) + 1, 0 if class_names is None else len(class_names)),
            node_names=None if node_names is None else tuple(node_names),
            class_names=None if class_names is None else tuple(class_names),
            cleaning=clean.cleaning,
        )
        changes = clean.cleaning.changes(both_ways_expected=both_ways_expected)
        if changes:
            warnings.warn(f"edges: {changes}", GraphCleanedWarning, stacklevel=2)
        return graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes, N in the paper."""
        return len(self.labels)

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.indices) // 2

    @property
    def num_features(self) -> int:
        """Length of a node's feature vector."""
        return int(self.features.shape[1])

    @property
    def dense_features(self) -> npt.NDArray[np.float32]:
        """The features as a dense matrix, shape (num_nodes, num_features)."""
        return self.features if isinstance(self.features, np.ndarray) else self.features.toarray()

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        """Number of neighbours of each node, shape (num_nodes,)."""
        return np.diff(self.indptr)

    @property
    def adjacency(self) -> scipy.sparse.csr_array:
        """The symmetric 0/1 adjacency matrix, float32."""
        ones = np.ones(len(self.indices), dtype=np.float32)
        return scipy.sparse.csr_array((ones, self.indices, self.indptr), shape=(self.num_nodes, self.num_nodes))

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """Each edge once, as (u, v) with u < v, ascending, shape (num_edges, 2)."""
        source = np.repeat(np.arange(self.num_nodes), self.degrees)
        once = source < self.indices
        return np.column_stack([source[once], self.indices[once].astype(np.int64)])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of nodes, edges, features and labels, but not of names; the same on every machine."""
        features = scipy.sparse.csr_array(self.features)
        digest = hashlib.sha256(b"bmpaudit graph 1")
        arrays = (self.indptr, self.indices, self.labels, features.indptr, features.indices, features.data)
        for array, dtype in zip(arrays, ("<i8", "<i4", "<i8", "<i8", "<i4", "<f4"), strict=True):
            digest.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
        digest.update(f"{self.num_nodes} {self.num_features} {self.num_classes}".encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)

    def __str__(self) -> str:
        return (
            f"{self.num_nodes:,} nodes, {self.num_edges:,} edges, "
            f"{self.num_features:,} features, {self.num_classes} classes"
        )

    def __repr__(self) -> str:
        return f"<Graph {self}>"

    # Conversions, each in a module of its own that is imported only when called.

    @classmethod
    def from_scipy(cls, adjacency: Any, features: Any, labels: npt.ArrayLike) -> Graph:
        """Makes a graph from a SciPy sparse adjacency matrix; every stored non-zero is an edge."""
        from bmpaudit.graph.conversions import from_scipy

        return from_scipy(adjacency, features, labels)

    @classmethod
    def from_table(cls, features: Any, labels: npt.ArrayLike) -> Graph:
        """Makes a graph without edges from a table, as scikit-learn has it: each row is a node.

        Args:
            features: Array, pandas table of numbers or SciPy sparse matrix, shape (num_rows, num_features). The index
                of a pandas table names the nodes, unless it only counts them.
            labels: Classes, shape (num_rows,): numbers or text.

        >>> print(Graph.from_table([[0.5], [0.1], [0.9]], ["no", "no", "yes"]))
        3 nodes, 0 edges, 1 features, 2 classes
        """
        from bmpaudit.graph.files import from_table

        return from_table(features, labels)

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """Makes a graph from a PyTorch Geometric `Data` with `x`, `edge_index` and `y`.

        Warns:
            DataIgnoredWarning: if there are masks or edge attributes, which a `Graph` does not keep.
        """
        from bmpaudit.graph.conversions import from_pyg

        return from_pyg(data)

    def to_pyg(self) -> Any:
        """Turns the graph into a PyTorch Geometric `Data` with dense `x`, `edge_index` both ways, and `y`."""
        from bmpaudit.graph.conversions import to_pyg

        return to_pyg(self)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any], features: str = "x", label: str = "y") -> Graph:
        """Makes a graph from a networkx graph whose nodes have attributes of these names."""
        from bmpaudit.graph.conversions import from_networkx

        return from_networkx(graph, features, label)

    def to_networkx(self) -> networkx.Graph[Any]:
        """Turns the graph into a networkx graph with node attributes `x` and `y`."""
        from bmpaudit.graph.conversions import to_networkx

        return to_networkx(self)

    @classmethod
    def from_npz(cls, path: str | Path) -> Graph:
        """Reads a graph from an `.npz` archive (docs/formats.md), without unpickling anything."""
        from bmpaudit.graph.files import read_npz

        return read_npz(Path(path))

    def to_npz(self, path: str | Path) -> None:
        """Writes the graph to an `.npz` archive that `from_npz` reads."""
        from bmpaudit.graph.files import write_npz

        write_npz(self, Path(path))

    @classmethod
    def from_folder(cls, folder: str | Path) -> Graph:
        """Reads `nodes` and `edges` tables, CSV or Parquet, from a folder (docs/formats.md).

        Without an `edges` table the graph has no edges.
        """
        from bmpaudit.graph.files import read_folder

        return read_folder(Path(folder))

    @classmethod
    def from_nodes_file(cls, path: str | Path) -> Graph:
        """Reads a graph without edges from one table of nodes, CSV or Parquet (docs/formats.md)."""
        from bmpaudit.graph.files import read_nodes_file

        return read_nodes_file(Path(path))

    def to_folder(self, folder: str | Path, format: str = "csv") -> None:  # noqa: A002 - the word users know
        """Writes `nodes` and `edges` tables, `csv` or `parquet`, into a folder that `from_folder` reads."""
        from bmpaudit.graph.files import write_folder

        write_folder(self, Path(folder), format)


# Nodes of a graph by what a file calls them.


def node_ids(nodes: Sequence[Any], graph: Graph, place: str) -> Ints:
    """Numbers of distinct nodes given by name or, if it is nobody's name, by number.

    Args:
        nodes: Names or numbers.
        graph: The graph.
        place: What errors call the source of `nodes`.

    Raises:
        DataError: if a node is unknown or there twice.

    >>> named = Graph.from_edges([(0, 1)], [[1.0], [2.0]], [0, 1], node_names=["Rex", "Tom"])
    >>> node_ids(["Tom", "0"], named, "pets.csv")
    array([1, 0])
    """
    by_name = {str(number): number for number in range(graph.num_nodes)}
    by_name |= {name: number for number, name in enumerate(graph.node_names or ())}
    seen: set[int] = set()
    ids = np.empty(len(nodes), dtype=np.int64)
    for position, node in enumerate(nodes):
        name = str(int(node)) if isinstance(node, float) and node.is_integer() else str(node)
        number = by_name.get(name, by_name.get(name.strip(), -1))
        if number < 0:
            raise DataError(f"{place}: there is no node {node!r} among the graph's {graph.num_nodes:,}")
        if number in seen:
            raise DataError(f"{place}: node {node!r} is there twice")
        seen.add(number)
        ids[position] = number
    return ids
