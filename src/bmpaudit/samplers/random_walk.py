"""Random-walk sampling as in GraphSAINT."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit import _native
from bmpaudit.checks import check_at_least_one
from bmpaudit.graph import Graph
from bmpaudit.samplers.protocol import NativeSampler

# Targets whose hitting probabilities are computed together: bounds memory to N times this many doubles.
_TARGETS_AT_ONCE = 512


@dataclass(frozen=True)
class RandomWalk(NativeSampler):
    """Every node that one of several short random walks visits (Zeng et al. 2020, GraphSAINT-RW).

    `num_roots` start nodes are drawn uniformly with replacement; from each, a walk takes `walk_length` steps to a
    uniformly drawn neighbour. A walk that starts on an isolated node stays there.

    Formal guarantees:
        - A sample has at least 1 and at most num_roots · (walk_length + 1) nodes.
        - Node i has prior γ_i = 1 - (1 - h_i)^num_roots, where h_i is the probability that one walk visits i.

    Attributes:
        num_roots: Number of walks, at least 1.
        walk_length: Steps of a walk, at least 1.
    """

    num_roots: int
    walk_length: int = 2

    def __post_init__(self) -> None:
        check_at_least_one(num_roots=self.num_roots, walk_length=self.walk_length)

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        return _native.RandomWalks(graph.indptr, graph.indices, self.num_roots, self.walk_length)

    def exact_priors(self, graph: Graph) -> npt.NDArray[np.float64]:
        """1 - (1 - h_i)^num_roots, with h_i by first-step analysis in O(num_nodes · num_edges · walk_length) time."""
        step = scipy.sparse.diags_array(1.0 / np.maximum(graph.degrees, 1)) @ graph.adjacency.astype(np.float64)
        visit = np.empty(graph.num_nodes)
        for first in range(0, graph.num_nodes, _TARGETS_AT_ONCE):
            targets = np.arange(first, min(first + _TARGETS_AT_ONCE, graph.num_nodes))
            column = np.arange(len(targets))
            hit = np.zeros((graph.num_nodes, len(targets)))  # hit[u, t]: a walk from u visits target t
            hit[targets, column] = 1.0
            for _ in range(self.walk_length):
                hit = step @ hit
                hit[targets, column] = 1.0
            visit[targets] = hit.mean(axis=0)
        with np.errstate(divide="ignore"):  # a node that every walk visits has prior 1
            return -np.expm1(self.num_roots * np.log1p(-visit))
