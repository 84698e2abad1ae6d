"""An undirected graph with features and labels on its nodes."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.errors import InputError
from bmpaudit.graph.edges import EdgeCleaning, GraphCleanedWarning, clean_edges
from bmpaudit.graph.features import Features, as_array, as_matrix, canonical_features
from bmpaudit.graph.validation import (
    as_labels,
    check_distinct,
    valid_adjacency,
    valid_labels,
    valid_names,
    valid_num_classes,
)

if TYPE_CHECKING:
    import networkx


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
        from bmpaudit.graph.scipy_matrix import from_scipy

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
        from bmpaudit.graph.plain_table import from_table

        return from_table(features, labels)

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """Makes a graph from a PyTorch Geometric `Data` with `x`, `edge_index` and `y`.

        Warns:
            DataIgnoredWarning: if there are masks or edge attributes, which a `Graph` does not keep.
        """
        from bmpaudit.graph.pyg import from_pyg

        return from_pyg(data)

    def to_pyg(self) -> Any:
        """Turns the graph into a PyTorch Geometric `Data` with dense `x`, `edge_index` both ways, and `y`."""
        from bmpaudit.graph.pyg import to_pyg

        return to_pyg(self)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any], features: str = "x", label: str = "y") -> Graph:
        """Makes a graph from a networkx graph whose nodes have attributes of these names."""
        from bmpaudit.graph.networkx_graph import from_networkx

        return from_networkx(graph, features, label)

    def to_networkx(self) -> networkx.Graph[Any]:
        """Turns the graph into a networkx graph with node attributes `x` and `y`."""
        from bmpaudit.graph.networkx_graph import to_networkx

        return to_networkx(self)

    @classmethod
    def from_npz(cls, path: str | Path) -> Graph:
        """Reads a graph from an `.npz` archive (docs/formats.md), without unpickling anything."""
        from bmpaudit.graph.npz import read_npz

        return read_npz(Path(path))

    def to_npz(self, path: str | Path) -> None:
        """Writes the graph to an `.npz` archive that `from_npz` reads."""
        from bmpaudit.graph.npz import write_npz

        write_npz(self, Path(path))

    @classmethod
    def from_folder(cls, folder: str | Path) -> Graph:
        """Reads `nodes` and `edges` tables, CSV or Parquet, from a folder (docs/formats.md).

        Without an `edges` table the graph has no edges.
        """
        from bmpaudit.graph.folder import read_folder

        return read_folder(Path(folder))

    @classmethod
    def from_nodes_file(cls, path: str | Path) -> Graph:
        """Reads a graph without edges from one table of nodes, CSV or Parquet (docs/formats.md)."""
        from bmpaudit.graph.folder import read_nodes_file

        return read_nodes_file(Path(path))

    def to_folder(self, folder: str | Path, format: str = "csv") -> None:  # noqa: A002 - the word users know
        """Writes `nodes` and `edges` tables, `csv` or `parquet`, into a folder that `from_folder` reads."""
        from bmpaudit.graph.folder import write_folder

        write_folder(self, Path(folder), format)
