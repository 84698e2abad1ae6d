"""From any list of node pairs to a clean undirected adjacency, with a report of what was changed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import InputError


class GraphCleanedWarning(UserWarning):
    """The edges given were not those of a simple undirected graph; the message says what was changed."""


@dataclass(frozen=True)
class EdgeCleaning:
    """What it took to make a simple undirected graph of the pairs that were given.

    Attributes:
        num_pairs: Pairs (u, v) as given.
        num_self_loops: Pairs with u = v, dropped.
        num_duplicates: Pairs given before in the same direction, dropped.
        num_one_way: Distinct pairs (u, v) without a (v, u), made to count in both directions.
        num_edges: Undirected edges that came out.
    """

    num_pairs: int
    num_self_loops: int
    num_duplicates: int
    num_one_way: int
    num_edges: int

    @property
    def is_mixed(self) -> bool:
        """Whether some edges came in one direction and others in both."""
        return 0 < self.num_one_way < self.num_edges

    def changes(self, *, both_ways_expected: bool) -> str:
        """The changes in words, empty if there were none.

        Args:
            both_ways_expected: Whether the source writes an undirected edge as two pairs (PyG, SciPy), so that one
                pair alone is a directed edge; else one pair an edge, all edges, is a form as good as the other.
        """
        dropped = []
        if self.num_self_loops:
            dropped.append(f"{self.num_self_loops:,} self-loops")
        if self.num_duplicates:
            dropped.append(f"{self.num_duplicates:,} duplicates")
        told = [f"{' and '.join(dropped)} dropped"] if dropped else []
        if self.num_one_way and (both_ways_expected or self.is_mixed):
            told.append(f"{self.num_one_way:,} one-way edges made two-way")
        return ", ".join(told)


@dataclass(frozen=True)
class CleanEdges:
    """A simple undirected graph: compressed sparse rows with ascending neighbours, and the report."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    cleaning: EdgeCleaning


def clean_edges(pairs: npt.NDArray[np.integer], num_nodes: int) -> CleanEdges:
    """Makes `pairs` symmetric and drops self-loops and duplicates.

    Args:
        pairs: Node ids, shape (num_pairs, 2).
        num_nodes: Ids must be below this.

    Raises:
        InputError: if a pair names a node that is not there.
    """
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"edges must have shape (num_edges, 2), got {pairs.shape}")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise InputError(f"edges must be whole numbers, got {pairs.dtype}")
    outside = (pairs < 0) | (pairs >= num_nodes)
    if outside.any():
        row = int(np.argmax(outside.any(axis=1)))
        u, v = (int(end) for end in pairs[row])
        raise InputError(f"edge {row} joins nodes {u} and {v}, but node ids must be in [0, {num_nodes})")

    source, target = pairs.astype(np.int64).T
    is_loop = source == target
    arcs, times = np.unique((source * num_nodes + target)[~is_loop], return_counts=True)
    reverse = (arcs % num_nodes) * num_nodes + arcs // num_nodes
    num_one_way = int(np.count_nonzero(~np.isin(reverse, arcs, assume_unique=True)))
    both = np.union1d(arcs, reverse)

    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(both // num_nodes, minlength=num_nodes), out=indptr[1:])
    cleaning = EdgeCleaning(
        num_pairs=len(pairs),
        num_self_loops=int(np.count_nonzero(is_loop)),
        num_duplicates=int(np.sum(times - 1)),
        num_one_way=num_one_way,
        num_edges=len(both) // 2,
    )
    return CleanEdges(indptr, (both % num_nodes).astype(np.int32), cleaning)
