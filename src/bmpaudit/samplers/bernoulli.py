"""Independent sampling of nodes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.graph import Graph
from bmpaudit.samplers.fraction import check_fraction
from bmpaudit.samplers.protocol import NativeSampler


@dataclass(frozen=True)
class Bernoulli(NativeSampler):
    """Each node by a coin of its own (Poisson sampling).

    Formal guarantees:
        - Memberships are independent, each with prior γ = train_fraction; so ε-MDP gives ε-MP (see `mdp_to_mp`).
        - The size of a sample is binomial; it can be 0.

    Attributes:
        train_fraction: Probability that a node is drawn, in (0, 1).
    """

    train_fraction: float

    def __post_init__(self) -> None:
        check_fraction(self.train_fraction)

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        return _native.IndependentCoins(graph.num_nodes, self.train_fraction)

    def exact_priors(self, graph: Graph) -> npt.NDArray[np.float64]:
        """train_fraction for every node."""
        return np.full(graph.num_nodes, float(self.train_fraction))
