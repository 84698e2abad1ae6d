"""From any list of node pairs to a simple undirected graph, with a record of what was changed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.errors import InputError
from bmpaudit.graph.features import type_of


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
