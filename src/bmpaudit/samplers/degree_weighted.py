"""Sampling that prefers well-connected nodes."""

from dataclasses import dataclass

import numpy as np

from bmpaudit import _native
from bmpaudit.graph import Graph
from bmpaudit.samplers.fraction import check_fraction, positive_target_size
from bmpaudit.samplers.native import NativeSampler


@dataclass(frozen=True)
class DegreeWeighted(NativeSampler):
    """A set of fixed size whose nodes are drawn one after another with probability proportional to 1 + degree.

    The 1 is the self-loop that a GCN adds; because of it, isolated nodes can be drawn too.

    Formal guarantees:
        - A sample has exactly floor(train_fraction · N) nodes.
        - Nodes are drawn sequentially: given the nodes drawn so far, node i comes next with probability
          (1 + d_i) / Σ_{j not drawn} (1 + d_j).
        - Nodes of equal degree have equal priors, and the prior grows with the degree; it has no closed form.
        - Memberships can be positively correlated: a hub that was left out makes it likelier that few draws fell on
          hubs. So more than two memberships may change with one (docs/guarantees.md has an example).

    Attributes:
        train_fraction: Share of all nodes to draw.
    """

    train_fraction: float = 0.25

    def __post_init__(self) -> None:
        check_fraction(self.train_fraction)

    def membership_distance(self, graph: Graph) -> int:
        """Twice the size of a sample or of what is left out, whichever is less; see `sampler_distance`.

        No two sets of n out of N nodes differ in more.
        """
        size = positive_target_size(self.train_fraction, graph.num_nodes)
        return max(1, 2 * min(size, graph.num_nodes - size))

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        size = positive_target_size(self.train_fraction, graph.num_nodes)
        return _native.WeightedSubset((1 + graph.degrees).astype(np.float64), size)
