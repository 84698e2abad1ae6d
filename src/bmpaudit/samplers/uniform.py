"""Uniform sampling without replacement."""

from dataclasses import dataclass

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Floats
from bmpaudit.graph import Graph
from bmpaudit.samplers.fraction import check_fraction, positive_target_size
from bmpaudit.samplers.native import NativeSampler


@dataclass(frozen=True)
class Uniform(NativeSampler):
    """A set of nodes of fixed size, all such sets equally likely (the paper's "random sampling").

    Formal guarantees:
        - A sample has exactly n = floor(train_fraction · N) nodes.
        - Every node has prior γ = n/N and every pair of nodes is in together with probability n(n-1)/(N(N-1)).
        - Memberships are dependent: changing one changes another, so ε-MDP gives 2ε-MP (see `mdp_to_mp`).

    Attributes:
        train_fraction: Share of all nodes to draw.
    """

    train_fraction: float = 0.25

    def __post_init__(self) -> None:
        check_fraction(self.train_fraction)

    def membership_distance(self, graph: Graph) -> int:
        """2: whoever joins takes the place of another; see `sampler_distance`."""
        return min(2, graph.num_nodes)

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        size = positive_target_size(self.train_fraction, graph.num_nodes)
        return _native.GroupedSubset(np.zeros(graph.num_nodes, dtype=np.int32), [size])

    def exact_priors(self, graph: Graph) -> Floats:
        """n/N for every node."""
        size = positive_target_size(self.train_fraction, graph.num_nodes)
        return np.full(graph.num_nodes, size / graph.num_nodes)
