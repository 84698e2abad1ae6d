"""Random-walk sampling as in GraphSAINT."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from bmpaudit import _native
from bmpaudit.arrays import Floats
from bmpaudit.checks import check_at_least_one
from bmpaudit.graph import Graph
from bmpaudit.samplers.fraction import check_fraction
from bmpaudit.samplers.native import NativeSampler
from bmpaudit.samplers.needs_edges import check_edges

# Targets whose hitting probabilities are computed together: bounds memory to N times this many doubles.
_TARGETS_AT_ONCE = 512


@dataclass(frozen=True)
class RandomWalk(NativeSampler):
    """All nodes visited by several short random walks (Zeng et al. 2020, GraphSAINT-RW).

    Start nodes are drawn uniformly with replacement; from each, a walk takes `walk_length` steps, each to a uniformly
    drawn neighbour. A walk that starts on an isolated node stays there. Unless `num_roots` is given, the number of
    walks is R = max(1, round(train_fraction · N / (walk_length + 1))): the share of nodes that would be drawn if no
    two walks met.

    Formal guarantees:
        - A sample has at least 1 and at most R · (walk_length + 1) nodes.
        - Node i has prior γ_i = 1 - (1 - h_i)^R, where h_i is the probability that one walk visits i.

    Attributes:
        train_fraction: Largest share of nodes to visit, which sets the number of walks.
        walk_length: Number of steps of a walk.
        num_roots: Number of walks, if not to follow from the train fraction.
    """

    train_fraction: float = 0.25
    walk_length: int = 2
    num_roots: int | None = None

    def __post_init__(self) -> None:
        check_fraction(self.train_fraction)
        check_at_least_one(walk_length=self.walk_length)
        if self.num_roots is not None:
            check_at_least_one(num_roots=self.num_roots)

    def num_walks(self, graph: Graph) -> int:
        """R, the number of walks on this graph."""
        if self.num_roots is not None:
            return self.num_roots
        return max(1, round(self.train_fraction * graph.num_nodes / (self.walk_length + 1)))

    def membership_distance(self, graph: Graph) -> int:
        """Twice the largest sample, if it is less than all nodes; see `sampler_distance`."""
        return min(graph.num_nodes, 2 * self.num_walks(graph) * (self.walk_length + 1))

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        check_edges("random-walk", graph)
        return _native.RandomWalks(graph.indptr, graph.indices, self.num_walks(graph), self.walk_length)

    def exact_priors(self, graph: Graph) -> Floats:
        """1 - (1 - h_i)^R, with h_i by first-step analysis in O(num_nodes · num_edges · walk_length) time."""
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
            return -np.expm1(self.num_walks(graph) * np.log1p(-visit))
