"""Snowball sampling: neighbours of neighbours of a random seed."""

from dataclasses import dataclass

from bmpaudit import _native
from bmpaudit.checks import check_at_least_one
from bmpaudit.graph import Graph
from bmpaudit.samplers.fraction import check_fraction, positive_target_size
from bmpaudit.samplers.protocol import NativeSampler


@dataclass(frozen=True)
class Snowball(NativeSampler):
    """Grows a sample from one seed along the edges: the paper's snowball sampling.

    The seed is a uniformly drawn node and the first in a first-in-first-out queue. Each node taken from the queue
    draws min(fan_out, degree) of all its neighbours, uniformly without replacement and in random order; those not yet
    in the sample join it and the queue, until the target floor(train_fraction · N) is reached. If the queue runs dry
    before that, the sample ends short of its target, or, with `restart`, goes on from a new seed drawn uniformly
    among the nodes not yet in.

    Formal guarantees:
        - Without restart a sample is connected in the graph, has at least 1 node and at most the target, and a
          component smaller than the target bounds its samples.
        - With restart a sample has exactly the target size.
        - Every node has prior γ ≥ 1/N, as the seed; beyond that priors have no closed form and are estimated.
        - Each node added has a neighbour in the sample that came before it, or is a seed.

    Attributes:
        train_fraction: Share of nodes to reach, in (0, 1).
        fan_out: Most neighbours drawn for one node, at least 1.
        restart: Whether to go on from a new seed when the queue runs dry.
    """

    train_fraction: float
    fan_out: int = 5
    restart: bool = False

    def __post_init__(self) -> None:
        check_fraction(self.train_fraction)
        check_at_least_one(fan_out=self.fan_out)

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        target = positive_target_size(self.train_fraction, graph.num_nodes)
        fan_out = min(self.fan_out, graph.num_nodes)
        return _native.Snowball(graph.indptr, graph.indices, target, fan_out, self.restart)
