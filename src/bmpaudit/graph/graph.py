"""The graph: undirected edges, features, labels and names of nodes, checked when it is built; and its conversions."""

from __future__ import annotations

import hashlib
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
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


class GraphCleanedWarning(UserWarning):
    """The edges were not those of a simple undirected graph; the message says what was changed."""


class DataIgnoredWarning(UserWarning):
    """Parts of the data were left out, because a `Graph` has no place for them; the message names them."""


class NodeError(InputError):
    """A value of one node, or of one feature column of it, cannot be used.

    A reader of files knows more about where the value stands, and reports `what` with the file, line and column.
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


Features: TypeAlias = npt.NDArray[np.float32] | scipy.sparse.csr_array

# Below this share of non-zeros, compressed rows are smaller and faster than a dense matrix.
SPARSE_BELOW = 0.25

# More than any data set has; the weights of a model take hundreds of bytes for each.
MAX_FEATURES = 2**22

# More than any data set has; a label beyond is an identifier that was not numbered.
MAX_CLASSES = 65_536

NEEDED = "models learn from features, and a graph without any may take its nodes' degrees"
IGNORED = ("train_mask", "val_mask", "test_mask", "edge_weight", "edge_attr")  # of PyTorch Geometric


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


def _as_matrix(features: Any, num_nodes: int) -> Any:
    """Features as an array or a SciPy sparse matrix of the right shape, their values as they are."""
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


def _valid_features(features: Any, num_nodes: int, node_names: Sequence[str] | None) -> Features:
    """A read-only copy in single precision: compressed rows if under a quarter is non-zero, else dense."""
    matrix = _as_matrix(features, num_nodes)
    is_sparse = scipy.sparse.issparse(matrix)
    if is_sparse:
        check_sparse("features", matrix)
        matrix = scipy.sparse.csr_array(matrix)
    single = _float32(matrix, node_names)
    values = single.data if is_sparse else single
    is_finite = np.isfinite(values)
    if not is_finite.all():
        entry = int(np.argmin(is_finite))
        node, column = divmod(entry, matrix.shape[1])
        if is_sparse:
            node, column = (int(each[entry]) for each in single.tocoo().coords)
        value = values[entry] if is_sparse else matrix[node, column]
        bound = " in single precision" if value is not None and np.isfinite(float(value)) else ""
        raise NodeError(f"features must be finite{bound}, got {value}", node, node_names, column)
    if np.count_nonzero(values) < SPARSE_BELOW * np.prod(matrix.shape):
        compressed = scipy.sparse.csr_array(single)
        compressed.eliminate_zeros()
        for part in (compressed.data, compressed.indices, compressed.indptr):
            part.setflags(write=False)
        return compressed
    dense: npt.NDArray[np.float32] = single.toarray() if is_sparse else single
    dense.setflags(write=False)
    return dense


def _float32(matrix: Any, node_names: Sequence[str] | None) -> Any:
    """A copy, so that what the caller holds stays theirs to change."""
    if np.iscomplexobj(matrix):
        raise InputError("features must be real numbers, got complex numbers")
    order = {"order": "C"} if isinstance(matrix, np.ndarray) else {}
    try:
        with np.errstate(over="ignore"):  # a number too large becomes infinite, which is refused
            single = matrix.astype(np.float32, copy=True, **order)
            if not order:
                single.sum_duplicates()
            return single
    except (TypeError, ValueError, OverflowError) as failure:
        for (node, column), value in np.ndenumerate(matrix) if order else ():
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                raise NodeError(f"features must be numbers, got {str(value)!r}", node, node_names, column) from None
        raise InputError(f"features must be numbers: {failure}") from None


@dataclass(frozen=True)
class EdgeCleaning:
    """What was changed to make a simple undirected graph of some pairs of nodes."""

    num_pairs: int  # (u, v), before cleaning
    num_self_loops: int  # pairs with u = v, which were dropped
    num_duplicates: int  # repeated pairs in the same direction, which were dropped
    num_one_way: int  # distinct pairs (u, v) without a (v, u), which now count in both directions

    def changes(self, num_edges: int, *, both_ways_expected: bool) -> str:
        """The changes in words, empty if there were none.

        With `both_ways_expected` the source stores an undirected edge as two pairs (PyG, SciPy), so that a single pair
        is a directed edge. Otherwise, one pair per edge is as good as two.
        """
        counts = ((self.num_self_loops, "self-loops"), (self.num_duplicates, "duplicates"))
        dropped = [f"{number:,} {what}" for number, what in counts if number]
        changes = [f"{' and '.join(dropped)} dropped"] if dropped else []
        is_mixed = self.num_one_way < num_edges  # some edges were in one direction and others in both
        if self.num_one_way and (both_ways_expected or is_mixed):
            changes.append(f"{self.num_one_way:,} one-way edges made two-way")
        return ", ".join(changes)


def clean_edges(pairs: npt.NDArray[np.integer], num_nodes: int) -> tuple[scipy.sparse.csr_array, EdgeCleaning]:
    """The adjacency matrix of pairs, made symmetric, without self-loops and duplicates; and what was cleaned."""
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
    )
    return both, cleaning


def _as_labels(labels: npt.ArrayLike) -> npt.NDArray[Any]:
    """Whole numbers, one for each node, in whatever type they came."""
    array = as_array("labels", labels)
    if array.ndim != 1:
        raise InputError(f"labels must have shape (num_nodes,), got {array.shape}")
    if len(array) == 0:
        raise InputError("a graph must have at least one node, got 0 labels")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"labels must be whole numbers, got {type_of(array)}")
    return array


def _valid_classes(labels: npt.NDArray[Any], num_classes: Any, node_names: Sequence[str] | None) -> tuple[Ints, int]:
    """A read-only copy of labels that name at least two classes, numbered from 0, and the number of classes."""

    def wrong(node: int, bound: str) -> NodeError:
        return NodeError(f"labels must {bound}, got {labels[node]}", node, node_names)

    lowest, highest = int(np.argmin(labels)), int(np.argmax(labels))
    if labels[lowest] < 0:
        raise wrong(lowest, "not be negative (every node needs a class)")
    if labels[highest] >= MAX_CLASSES:
        raise wrong(highest, f"be below {MAX_CLASSES} (classes are numbered from 0)")
    if labels[lowest] == labels[highest]:
        raise InputError(f"labels must name at least two classes, got only class {labels[0]}")
    if not isinstance(num_classes, (int, np.integer)) or isinstance(num_classes, bool) or num_classes > MAX_CLASSES:
        raise InputError(f"num_classes must be a whole number of at most {MAX_CLASSES}, got {num_classes!r}")
    if labels[highest] >= num_classes:
        raise wrong(highest, f"be below num_classes={num_classes}")
    return _frozen_copy(labels, np.int64), int(num_classes)


def _valid_names(what: str, names: Sequence[str] | None, number: int, of_what: str) -> tuple[str, ...] | None:
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


def _valid_adjacency(
    indptr: npt.ArrayLike, indices: npt.ArrayLike, num_nodes: int, node_names: Sequence[str] | None
) -> tuple[Ints, npt.NDArray[np.int32]]:
    """Read-only copies of compressed sparse rows of a simple undirected graph.

    Every edge must be there in both directions, once, between two different nodes, in ascending order within its row.
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
        place = describe_node(int(source[is_loop][0]), node_names)
        raise InputError(f"edges must join two different nodes, got a self-loop at {place}")
    is_disordered = (neighbors[1:] <= neighbors[:-1]) & (source[1:] == source[:-1])
    if is_disordered.any():
        place = describe_node(int(source[1:][is_disordered][0]), node_names)
        raise InputError(f"indices must be ascending and distinct within a row, they are not at {place}")
    ones = np.ones(len(neighbors), dtype=np.int8)
    reverse = scipy.sparse.csr_array((ones, neighbors, row_starts), shape=(num_nodes, num_nodes)).tocsc()
    if not (np.array_equal(reverse.indptr, row_starts) and np.array_equal(reverse.indices, neighbors)):
        arcs, back = (a.astype(np.int64) * num_nodes + b for a, b in ((source, neighbors), (neighbors, source)))
        arc = int(np.argmin(np.isin(back, arcs)))
        here, there = (describe_node(int(end), node_names) for end in (source[arc], neighbors[arc]))
        raise InputError(f"edges must be there in both directions, got only {here} to {there}")
    return row_starts, neighbors


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
        given = _as_labels(self.labels)
        names = _valid_names("node_names", self.node_names, len(given), "nodes")
        first: dict[str, int] = {}
        for node, name in enumerate(names or ()):
            if first.setdefault(name, node) != node:
                raise InputError(f"node_names must be distinct, got {name!r} for nodes {first[name]} and {node}")
        labels, num_classes = _valid_classes(given, self.num_classes, names)
        class_names = _valid_names("class_names", self.class_names, num_classes, "classes")
        features = _valid_features(self.features, len(given), names)
        indptr, indices = _valid_adjacency(self.indptr, self.indices, len(given), names)
        valid = (indptr, indices, features, labels, num_classes, names, class_names)
        for each, value in zip(fields(self), valid, strict=False):  # all but the cleaning
            object.__setattr__(self, each.name, value)  # the class is frozen

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
        """Makes a graph from pairs of node ids; an `InputError` names what does not fit.

        Args:
            edges: Pairs of node ids, shape (num_pairs, 2); each edge once, or each in both directions.
            features: Dense or SciPy sparse matrix, shape (num_nodes, num_features).
            labels: Class numbers from 0, shape (num_nodes,).
            node_names: A distinct name for each node.
            class_names: A name for each class.
            both_ways_expected: Whether to warn about edges that are there in one direction only.

        Warns:
            GraphCleanedWarning: if self-loops or duplicates were dropped, or directed edges made undirected.

        >>> path = Graph.from_edges([(0, 1), (1, 2)], [[1.0], [0.0], [1.0]], [0, 1, 0])
        >>> print(path)
        3 nodes, 2 edges, 1 features, 2 classes
        """
        label_array = _as_labels(labels)
        matrix = _as_matrix(features, len(label_array))  # whatever is wrong there is not the fault of the edges
        pairs = as_array("edges", edges)
        clean, cleaning = clean_edges(pairs if pairs.size else np.empty((0, 2), dtype=np.int64), len(label_array))
        graph = cls(
            indptr=clean.indptr,
            indices=clean.indices,
            features=matrix,
            labels=label_array,
            num_classes=max(int(label_array.max()) + 1, 0 if class_names is None else len(class_names)),
            node_names=None if node_names is None else tuple(node_names),
            class_names=None if class_names is None else tuple(class_names),
            cleaning=cleaning,
        )
        changes = cleaning.changes(graph.num_edges, both_ways_expected=both_ways_expected)
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

    @classmethod
    def from_scipy(cls, adjacency: Any, features: Any, labels: npt.ArrayLike) -> Graph:
        """Makes a graph from a SciPy sparse adjacency matrix; every stored non-zero is an edge."""
        if not scipy.sparse.issparse(adjacency):
            raise InputError(f"adjacency must be a SciPy sparse matrix, got {type(adjacency).__name__}")
        if adjacency.ndim != 2:
            raise InputError(f"adjacency must be a matrix, got shape {adjacency.shape}")
        if adjacency.shape != (np.size(labels), np.size(labels)):
            wanted, (rows, columns) = f"square with one row for each of {np.size(labels)} labels", adjacency.shape
            raise InputError(f"adjacency must be {wanted}, got {rows} × {columns}")
        check_sparse("adjacency", adjacency)
        entries = scipy.sparse.coo_array(adjacency)
        pairs = np.column_stack([entries.row, entries.col])[entries.data != 0]
        return cls.from_edges(pairs, features, labels, both_ways_expected=True)

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
        classes, class_names = _classes(as_array("labels", labels))
        index: Any = getattr(features, "index", None)
        is_named = index is not None and not callable(index) and list(index) != list(range(len(index)))
        node_names = [str(name) for name in index] if is_named else None
        return cls.from_edges([], features, classes, node_names=node_names, class_names=class_names)

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """Makes a graph from a PyTorch Geometric `Data` with `x`, `edge_index` and `y`.

        Warns:
            DataIgnoredWarning: if there are masks or edge attributes, which a `Graph` does not keep.
        """
        for name in ("x", "edge_index", "y"):
            if getattr(data, name, None) is None:
                remedy = f": {NEEDED}" if name == "x" else ""
                raise InputError(f"the PyG data must have {name}, got none{remedy}")
        edge_index = _to_numpy(data.edge_index)
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            raise InputError(f"edge_index must have shape (2, num_edges), got {edge_index.shape}")
        labels = _to_numpy(data.y)
        if labels.ndim == 2 and labels.shape[1] == 1:  # OGB stores labels as a column
            labels = labels[:, 0]
        graph = cls.from_edges(edge_index.T, _tensor_features(data.x), labels, both_ways_expected=True)
        ignored = [name for name in IGNORED if getattr(data, name, None) is not None]
        if ignored:
            reason = " (a sampler chooses the training nodes)" if ignored[0].endswith("_mask") else ""
            warnings.warn(f"PyG data: {', '.join(ignored)} ignored{reason}", DataIgnoredWarning, stacklevel=2)
        return graph

    def to_pyg(self) -> Any:
        """Turns the graph into a PyTorch Geometric `Data` with dense `x`, `edge_index` both ways, and `y`."""
        try:
            import torch
            from torch_geometric.data import Data
        except ImportError as missing:
            raise InputError(f"to_pyg needs PyTorch Geometric: pip install 'bmpaudit[torch]' ({missing})") from None
        source = np.repeat(np.arange(self.num_nodes), self.degrees)
        return Data(
            x=torch.tensor(self.dense_features),
            edge_index=torch.tensor(np.stack([source, self.indices.astype(np.int64)])),
            y=torch.tensor(self.labels),
        )

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any], features: str = "x", label: str = "y") -> Graph:
        """Makes a graph from a networkx graph whose nodes have attributes of these names."""

        def wrong(name: str, wanted: str, node: Any) -> InputError:
            brief = textwrap.shorten(repr(graph.nodes[node][name]), 60, placeholder="…")
            return InputError(f"attribute {name!r} must be {wanted}, got {brief} on node {node!r}")

        rows, labels = [], []
        for node, attributes in graph.nodes(data=True):
            for name in (features, label):
                if name not in attributes:
                    raise InputError(f"every node must have an attribute {name!r}, node {node!r} has none")
            try:
                rows.append(np.atleast_1d(np.asarray(attributes[features], dtype=np.float64)))
            except (TypeError, ValueError):
                raise wrong(features, "numbers", node) from None
            if rows[-1].ndim != 1:
                raise wrong(features, "a vector", node)
            if len(rows[-1]) != len(rows[0]):
                raise InputError(
                    f"attribute {features!r} must have the same length on every node, "
                    f"got {len(rows[0])} on node {next(iter(graph))!r} and {len(rows[-1])} on node {node!r}"
                )
            number = np.asarray(attributes[label])
            if number.ndim != 0 or not np.issubdtype(number.dtype, np.integer) or number > np.iinfo(np.int64).max:
                raise wrong(label, "a whole number", node)
            labels.append(int(number))
        number_of = {node: number for number, node in enumerate(graph)}
        pairs = [(number_of[u], number_of[v]) for u, v in graph.edges()]
        return cls.from_edges(
            np.array(pairs, dtype=np.int64).reshape(-1, 2),
            np.stack(rows) if rows else np.empty((0, 0)),
            np.array(labels, dtype=np.int64),
            node_names=None if list(number_of) == list(range(len(number_of))) else [str(node) for node in number_of],
            both_ways_expected=graph.is_directed(),
        )

    def to_networkx(self) -> networkx.Graph[Any]:
        """Turns the graph into a networkx graph with node attributes `x` and `y`."""
        try:
            import networkx
        except ImportError:
            raise InputError("to_networkx needs networkx: pip install networkx") from None
        result: networkx.Graph[Any] = networkx.Graph()
        names = self.node_names or range(self.num_nodes)
        for name, x, y in zip(names, self.dense_features, self.labels, strict=True):
            result.add_node(name, x=x, y=int(y))
        result.add_edges_from((names[u], names[v]) for u, v in self.edges)
        return result

    @classmethod
    def from_npz(cls, path: str | Path) -> Graph:
        """Reads a graph from an `.npz` archive (docs/formats.md), without unpickling anything."""
        return _files().read_npz(Path(path))

    def to_npz(self, path: str | Path) -> None:
        """Writes the graph to an `.npz` archive that `from_npz` reads."""
        _files().write_npz(self, Path(path))

    @classmethod
    def from_folder(cls, folder: str | Path) -> Graph:
        """Reads `nodes` and `edges` tables, CSV or Parquet, from a folder (docs/formats.md).

        Without an `edges` table the graph has no edges.
        """
        return _files().read_folder(Path(folder))

    @classmethod
    def from_nodes_file(cls, path: str | Path) -> Graph:
        """Reads a graph without edges from one table of nodes, CSV or Parquet (docs/formats.md)."""
        return _files().read_nodes_file(Path(path))

    def to_folder(self, folder: str | Path, format: str = "csv") -> None:  # noqa: A002 - the word users know
        """Writes `nodes` and `edges` tables, `csv` or `parquet`, into a folder that `from_folder` reads."""
        _files().write_folder(self, Path(folder), format)


def _files() -> Any:
    """The module of files, which needs pandas and takes long to import."""
    from bmpaudit.graph import files

    return files


def _tensor_features(x: Any) -> Any:
    if not (getattr(x, "is_sparse", False) or str(getattr(x, "layout", "")) == "torch.sparse_csr"):
        return _to_numpy(x)
    entries = x.detach().cpu().to_sparse_coo().coalesce()
    rows, columns = entries.indices().numpy()
    return scipy.sparse.coo_array((_to_numpy(entries.values()), (rows, columns)), shape=tuple(x.shape))


def _to_numpy(tensor: Any) -> npt.NDArray[Any]:
    if not hasattr(tensor, "detach"):  # an array or a list
        return np.asarray(tensor)
    tensor = tensor.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()  # NumPy has no bfloat16


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


def node_ids(nodes: Sequence[Any], graph: Graph, place: str) -> Ints:
    """Numbers of distinct nodes given by name or, if it is nobody's name, by number; errors begin with `place`.

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
