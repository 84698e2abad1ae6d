"""Snowball sampling: neighbours of neighbours of a random seed."""

from dataclasses import dataclass

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Ints
from bmpaudit.checks import check_at_least_one
from bmpaudit.graph import Graph
from bmpaudit.samplers.fraction import check_fraction, positive_target_size
from bmpaudit.samplers.native import NativeSampler
from bmpaudit.samplers.needs_edges import check_edges


@dataclass(frozen=True)
class Snowball(NativeSampler):
    """Grows a sample along the edges from one seed node: the paper's snowball sampling.

    The seed is drawn uniformly and starts a queue: first in, first out or, with `any_order`, the next node is drawn
    uniformly from all that wait. Each node taken from the queue draws min(fan_out, degree) of all its neighbours,
    uniformly without replacement and in random order; those not yet in the sample join the sample and the queue, until
    the target floor(train_fraction · N) is reached. If the queue is empty before that, the sample stays short of its
    target or, with `restart`, continues from a new seed, drawn uniformly from the nodes that are not in the sample.

    Formal guarantees:
        - Without restart a sample is connected, has at least 1 node and at most the target, and never exceeds the
          component of its seed.
        - With restart a sample has exactly the target size.
        - Every node has prior γ ≥ 1/N, because it may be the seed; beyond that, priors have no closed form and are
          estimated.
        - Every sampled node is a seed or has a neighbour that joined the sample before it.
        - Edges walked along, from a node to the neighbours it has drawn that are in the sample then, connect all nodes
          that are no seeds with a seed.

    Attributes:
        train_fraction: Share of all nodes to reach.
        fan_out: Maximum number of neighbours drawn for one node.
        restart: Whether to continue from a new seed node when no neighbours are left.
        any_order: Whether the next node is any that waits, not the one that waited longest.
        walked_edges: Whether models are trained only on edges that the sampling walked along.
    """

    train_fraction: float = 0.25
    fan_out: int = 5
    restart: bool = False
    any_order: bool = False
    walked_edges: bool = False

    def __post_init__(self) -> None:
        check_fraction(self.train_fraction)
        check_at_least_one(fan_out=self.fan_out)

    def membership_distance(self, graph: Graph) -> int:
        """Twice the target, if it is less than all nodes; see `sampler_distance`."""
        return min(graph.num_nodes, 2 * positive_target_size(self.train_fraction, graph.num_nodes))

    def training_edges(self, graph: Graph, rng: np.random.Generator) -> Ints | None:
        """The edges walked along, if models are trained on these only."""
        if not self.walked_edges:
            return None
        with rng.bit_generator.lock:
            return self.kernel(graph).walked_edges(rng.bit_generator)

    def kernel(self, graph: Graph) -> _native.Snowball:
        """The compiled sampler for this graph."""
        if not self.restart:
            check_edges("snowball", graph)
        target = positive_target_size(self.train_fraction, graph.num_nodes)
        fan_out = min(self.fan_out, graph.num_nodes)
        return _native.Snowball(graph.indptr, graph.indices, target, fan_out, self.restart, self.any_order)
