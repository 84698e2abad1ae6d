"""The built-in samplers, which draw in C++."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import scipy.sparse

from bmpaudit import _native
from bmpaudit.graph import Graph
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.values import Floats, Ints


@dataclass(frozen=True)
class NativeSampler(ABC):
    """A sampler whose samples are drawn in C++.

    Attributes:
        train_fraction: Share of all nodes to draw.
    """

    train_fraction: float = 0.25

    def __post_init__(self) -> None:
        if isinstance(self.train_fraction, bool) or not 0 < self.train_fraction < 1:
            raise InputError(f"train_fraction must be in (0, 1), got train_fraction={self.train_fraction}")

    @abstractmethod
    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""

    def sample(self, graph: Graph, rng: np.random.Generator) -> Ints:
        """Draws one sample: distinct node ids in ascending order."""
        with rng.bit_generator.lock:
            return self.kernel(graph).sample(rng.bit_generator)

    def target_size(self, graph: Graph) -> int:
        """floor(train_fraction · N), which must be at least one node."""
        size = share_of(self.train_fraction, graph.num_nodes)
        if size == 0:
            raise InputError(f"train_fraction={self.train_fraction} of {graph.num_nodes} nodes is less than one node")
        return size


def share_of(fraction: float, number: int) -> int:
    """floor(f·N) in decimal arithmetic: 0.29 of 100 is 29, although 0.29 * 100 < 29 in floating point.

    >>> share_of(0.29, 100)
    29
    """
    return math.floor(Decimal(repr(float(fraction))) * number)


def _check_edges(sampler: str, graph: Graph) -> None:
    if not graph.num_edges and graph.num_nodes > 1:
        raise InputError(
            f"{sampler} sampling follows edges, and there are none: use uniform, bernoulli or stratified sampling"
        )


class Uniform(NativeSampler):
    """A set of nodes of fixed size, all such sets equally likely (the paper's "random sampling").

    Formal guarantees:
        - A sample has exactly n = floor(train_fraction · N) nodes.
        - Every node has prior γ = n/N and every pair of nodes is in together with probability n(n-1)/(N(N-1)).
        - Memberships are dependent: changing one changes another, so ε-MDP gives 2ε-MP (see `mdp_to_mp`).
    """

    def membership_distance(self, graph: Graph) -> int:
        """2: whoever joins takes the place of another; see `sampler_distance`."""
        return min(2, graph.num_nodes)

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        return _native.GroupedSubset(np.zeros(graph.num_nodes, dtype=np.int32), [self.target_size(graph)])

    def exact_priors(self, graph: Graph) -> Floats:
        """n/N for every node."""
        return np.full(graph.num_nodes, self.target_size(graph) / graph.num_nodes)


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

    fan_out: int = 5
    restart: bool = False
    any_order: bool = False
    walked_edges: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least_one(fan_out=self.fan_out)

    def membership_distance(self, graph: Graph) -> int:
        """Twice the target, if it is less than all nodes; see `sampler_distance`."""
        return min(graph.num_nodes, 2 * self.target_size(graph))

    def training_edges(self, graph: Graph, rng: np.random.Generator) -> Ints | None:
        """The edges walked along, if models are trained on these only."""
        if not self.walked_edges:
            return None
        with rng.bit_generator.lock:
            return self.kernel(graph).walked_edges(rng.bit_generator)

    def kernel(self, graph: Graph) -> _native.Snowball:
        """The compiled sampler for this graph."""
        if not self.restart:
            _check_edges("snowball", graph)
        target, fan_out = self.target_size(graph), min(self.fan_out, graph.num_nodes)
        return _native.Snowball(graph.indptr, graph.indices, target, fan_out, self.restart, self.any_order)


class Bernoulli(NativeSampler):
    """Each node with the same probability, independently of the others (Poisson sampling).

    Formal guarantees:
        - Memberships are independent, each with prior γ = train_fraction; so ε-MDP gives ε-MP (see `mdp_to_mp`).
        - The sample size is binomial; a sample may be empty.

    Attributes:
        train_fraction: Probability that a node is drawn.
    """

    def membership_distance(self, graph: Graph) -> int:  # noqa: ARG002
        """1: memberships are independent; see `sampler_distance`."""
        return 1

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        return _native.IndependentCoins(graph.num_nodes, self.train_fraction)

    def exact_priors(self, graph: Graph) -> Floats:
        """train_fraction for every node."""
        return np.full(graph.num_nodes, float(self.train_fraction))


class Stratified(NativeSampler):
    """The same share of every class, drawn uniformly without replacement within each class.

    Formal guarantees:
        - A sample has exactly n_c = max(1, floor(train_fraction · N_c)) nodes of each class c that has N_c > 0 nodes,
          so no class is ever missing.
        - A node of class c has prior γ = n_c/N_c, which is 1 in a class of one node.
        - Classes are drawn independently of each other.

    Attributes:
        train_fraction: Share of each class to draw.
    """

    def membership_distance(self, graph: Graph) -> int:
        """2: whoever joins takes the place of another of the class; see `sampler_distance`."""
        return min(2, graph.num_nodes)

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        return _native.GroupedSubset(graph.labels.astype(np.int32), self._sizes(graph))

    def exact_priors(self, graph: Graph) -> Floats:
        """n_c/N_c for every node of class c."""
        sizes = np.bincount(graph.labels, minlength=graph.num_classes)
        return (np.array(self._sizes(graph)) / np.maximum(sizes, 1))[graph.labels]

    def _sizes(self, graph: Graph) -> list[int]:
        sizes = np.bincount(graph.labels, minlength=graph.num_classes).tolist()
        return [min(size, max(1, share_of(self.train_fraction, size))) for size in sizes]


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
    """

    def membership_distance(self, graph: Graph) -> int:
        """Twice the size of a sample or of what is left out, whichever is less; see `sampler_distance`.

        No two sets of n out of N nodes differ in more.
        """
        size = self.target_size(graph)
        return max(1, 2 * min(size, graph.num_nodes - size))

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        return _native.WeightedSubset((1 + graph.degrees).astype(np.float64), self.target_size(graph))


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

    walk_length: int = 2
    num_roots: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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
        _check_edges("random-walk", graph)
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
