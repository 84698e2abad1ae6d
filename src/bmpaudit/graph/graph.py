"""The graph that everything else is about."""

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

from bmpaudit.errors import InputError
from bmpaudit.graph.edges import EdgeCleaning, GraphCleanedWarning, clean_edges

if TYPE_CHECKING:
    import networkx

Features: TypeAlias = npt.NDArray[np.float32] | scipy.sparse.csr_array

# Below this share of non-zeros, compressed rows are smaller and faster than a dense matrix.
SPARSE_BELOW = 0.25

# More than any data set has; a label beyond is an identifier that was not numbered.
MAX_CLASSES = 65_536


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected graph with features and a class label on every node.

    Made by `from_edges` or another `from_…` method, which validate and clean; never changes afterwards (its arrays
    are read-only). Two graphs are equal when their contents are: names do not count.

    Attributes:
        indptr: Row starts of the adjacency, shape (num_nodes + 1,).
        indices: Neighbours, ascending within a row, each edge in both directions, shape (2 * num_edges,).
        features: Shape (num_nodes, num_features); compressed sparse rows if under a quarter is non-zero, else
            dense, whichever way they were given.
        labels: Class of each node, shape (num_nodes,), values in [0, num_classes).
        num_classes: How many classes there are.
        node_names: A name for each node, if given.
        class_names: A name for each class, if given.
        cleaning: What was changed about the edges given.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    features: Features
    labels: npt.NDArray[np.int64]
    num_classes: int
    node_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    cleaning: EdgeCleaning = field(kw_only=True)

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
            edges: Pairs, shape (num_pairs, 2); each edge once, or each in both directions.
            features: Dense or SciPy-sparse, shape (num_nodes, num_features).
            labels: Whole numbers from 0, shape (num_nodes,).
            node_names: A distinct name for each node.
            class_names: A name for each class.
            both_ways_expected: Whether an edge that comes in one direction only is worth a warning.

        Raises:
            InputError: if something does not fit; the message names it.

        Warns:
            GraphCleanedWarning: if self-loops or duplicates were dropped or directed edges made undirected.

        >>> path = Graph.from_edges([(0, 1), (1, 2)], [[1.0], [0.0], [1.0]], [0, 1, 0])
        >>> print(path)
        3 nodes, 2 edges, 1 features, 2 classes
        """
        label_array = _validated_labels(labels)
        num_nodes = len(label_array)
        feature_matrix = _validated_features(features, num_nodes)
        num_classes = int(label_array.max()) + 1
        if class_names is not None:
            if len(class_names) < num_classes:
                raise InputError(f"labels go up to {num_classes - 1}, but there are {len(class_names)} class_names")
            num_classes = len(class_names)
        if node_names is not None:
            if len(node_names) != num_nodes:
                raise InputError(f"node_names must have one name for each of {num_nodes} nodes, got {len(node_names)}")
            if len(set(node_names)) != num_nodes:
                raise InputError("node_names must be distinct")
        pairs = _as_array("edges", edges)
        clean = clean_edges(pairs if pairs.size else np.empty((0, 2), dtype=np.int64), num_nodes)
        changes = clean.cleaning.changes(both_ways_expected=both_ways_expected)
        if changes:
            warnings.warn(f"edges: {changes}", GraphCleanedWarning, stacklevel=2)
        for array in (clean.indptr, clean.indices, label_array):
            array.setflags(write=False)
        return cls(
            indptr=clean.indptr,
            indices=clean.indices,
            features=feature_matrix,
            labels=label_array,
            num_classes=num_classes,
            node_names=None if node_names is None else tuple(node_names),
            class_names=None if class_names is None else tuple(class_names),
            cleaning=clean.cleaning,
        )

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
        """SHA-256 of nodes, edges, features and labels: the same on every machine, without regard to names."""
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

    # Ways in and out. The work is done in the module named for the other side, which is imported only when called.

    @classmethod
    def from_scipy(cls, adjacency: Any, features: Any, labels: npt.ArrayLike) -> Graph:
        """Makes a graph from a SciPy sparse adjacency matrix; any stored non-zero is an edge."""
        from bmpaudit.graph.scipy_matrix import from_scipy

        return from_scipy(adjacency, features, labels)

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """Makes a graph from a PyTorch Geometric `Data` with `x`, `edge_index` and `y`."""
        from bmpaudit.graph.pyg import from_pyg

        return from_pyg(data)

    def to_pyg(self) -> Any:
        """Turns the graph into a PyTorch Geometric `Data` with dense `x`, `edge_index` both ways, and `y`."""
        from bmpaudit.graph.pyg import to_pyg

        return to_pyg(self)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any], features: str = "x", label: str = "y") -> Graph:
        """Makes a graph from a networkx graph whose nodes carry attributes of these names."""
        from bmpaudit.graph.networkx_graph import from_networkx

        return from_networkx(graph, features, label)

    def to_networkx(self) -> networkx.Graph[Any]:
        """Turns the graph into a networkx graph with node attributes `x` and `y`."""
        from bmpaudit.graph.networkx_graph import to_networkx

        return to_networkx(self)

    @classmethod
    def from_npz(cls, path: str | Path) -> Graph:
        """Reads a graph from an `.npz` archive (docs/formats.md); nothing in it is unpickled."""
        from bmpaudit.graph.npz import read_npz

        return read_npz(Path(path))

    def to_npz(self, path: str | Path) -> None:
        """Writes the graph to an `.npz` archive that `from_npz` reads."""
        from bmpaudit.graph.npz import write_npz

        write_npz(self, Path(path))

    @classmethod
    def from_folder(cls, folder: str | Path) -> Graph:
        """Reads `nodes` and `edges` tables, CSV or Parquet, from a folder (docs/formats.md)."""
        from bmpaudit.graph.folder import read_folder

        return read_folder(Path(folder))

    def to_folder(self, folder: str | Path, format: str = "csv") -> None:  # noqa: A002 - the word users know
        """Writes `nodes` and `edges` tables, `csv` or `parquet`, into a folder that `from_folder` reads."""
        from bmpaudit.graph.folder import write_folder

        write_folder(self, Path(folder), format)


def _as_array(what: str, given: npt.ArrayLike) -> npt.NDArray[Any]:
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as wrong:  # rows of different length
        raise InputError(f"{what} must be an array: {wrong}") from None


def _validated_labels(labels: npt.ArrayLike) -> npt.NDArray[np.int64]:
    given = _as_array("labels", labels)
    if given.ndim != 1:
        raise InputError(f"labels must have shape (num_nodes,), got {given.shape}")
    if len(given) == 0:
        raise InputError("a graph must have at least one node, got 0 labels")
    if not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"labels must be whole numbers, got {given.dtype}")
    if given.min() < 0:
        node = int(np.argmin(given))
        raise InputError(f"labels must not be negative (every node needs a class), got {given[node]} at node {node}")
    if given.max() >= MAX_CLASSES:
        raise InputError(f"labels must be below {MAX_CLASSES}, got {given.max()}; number the classes from 0")
    if given.min() == given.max():
        raise InputError(f"labels must name at least two classes, got only class {given[0]}")
    return given.astype(np.int64)


def _validated_features(features: Any, num_nodes: int) -> Features:
    dense = None if scipy.sparse.issparse(features) else _dense_float32(features)
    sparse = _sparse_float32(features) if dense is None else scipy.sparse.csr_array(dense)
    sparse.sum_duplicates()
    rows, columns = sparse.shape
    if rows != num_nodes:
        raise InputError(f"features must have one row for each of {num_nodes} labels, got {rows} rows")
    if columns == 0:
        raise InputError("features must have at least one column, got 0")
    if not np.isfinite(sparse.data).all():
        entry = int(np.argmin(np.isfinite(sparse.data)))
        node = int(np.searchsorted(sparse.indptr, entry, side="right")) - 1
        raise InputError(f"features must be finite, got {sparse.data[entry]} at node {node}")
    sparse.eliminate_zeros()
    if sparse.nnz >= SPARSE_BELOW * rows * columns:
        dense = sparse.toarray() if dense is None else dense
        dense.setflags(write=False)
        return dense
    for part in (sparse.data, sparse.indices, sparse.indptr):
        part.setflags(write=False)
    return sparse


def _dense_float32(features: Any) -> npt.NDArray[np.float32]:
    given = _as_array("features", features)
    if given.ndim != 2:
        raise InputError(f"features must have shape (num_nodes, num_features), got {given.shape}")
    return _float32(given, order="C")


def _sparse_float32(features: Any) -> scipy.sparse.csr_array:
    try:
        if hasattr(features, "check_format"):
            # An index that points outside would make compiled code read foreign memory.
            features.check_format(full_check=True)
    except ValueError as wrong:
        raise InputError(f"features must be a valid sparse matrix: {wrong}") from None
    return _float32(scipy.sparse.csr_array(features))


def _float32(matrix: Any, **options: Any) -> Any:
    """A copy, so that what the caller holds stays theirs to change."""
    if np.iscomplexobj(matrix):
        raise InputError("features must be real numbers, got complex ones")
    try:
        with np.errstate(over="ignore"):  # a number too large becomes infinite, which is refused
            return matrix.astype(np.float32, copy=True, **options)
    except (TypeError, ValueError) as wrong:
        raise InputError(f"features must be numbers: {wrong}") from None
