"""Independent sampling of nodes."""

from dataclasses import dataclass

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Floats
from bmpaudit.graph import Graph
from bmpaudit.samplers.fraction import check_fraction
from bmpaudit.samplers.native import NativeSampler


@dataclass(frozen=True)
class Bernoulli(NativeSampler):
    """Each node with the same probability, independently of the others (Poisson sampling).

    Formal guarantees:
        - Memberships are independent, each with prior γ = train_fraction; so ε-MDP gives ε-MP (see `mdp_to_mp`).
        - The sample size is binomial; a sample may be empty.

    Attributes:
        train_fraction: Probability that a node is drawn.
    """

    train_fraction: float = 0.25

    def __post_init__(self) -> None:
        check_fraction(self.train_fraction)

    def membership_distance(self, graph: Graph) -> int:  # noqa: ARG002
        """1: memberships are independent; see `sampler_distance`."""
        return 1

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        return _native.IndependentCoins(graph.num_nodes, self.train_fraction)

    def exact_priors(self, graph: Graph) -> Floats:
        """train_fraction for every node."""
        return np.full(graph.num_nodes, float(self.train_fraction))
