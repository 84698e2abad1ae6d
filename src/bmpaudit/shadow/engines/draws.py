"""What training draws: the same nodes, edges and batches as in C++, from the same random words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bmpaudit.arrays import Ints
from bmpaudit.shadow.models.training import ALL_NEIGHBORS


def random_order(rng: np.random.Generator, size: int) -> Ints:
    """The numbers below `size` in random order: that of one random word for each."""
    order: Ints = np.argsort(rng.bit_generator.random_raw(size), kind="stable")
    return order


def random_subset(rng: np.random.Generator, size: int, count: int) -> Ints:
    """`count` of the numbers below `size`, ascending: those with the smallest words."""
    return np.sort(random_order(rng, size)[:count])


def validation_nodes(rng: np.random.Generator, size: int, share: float) -> Ints:
    """A share of a sample's nodes, at least one and not all."""
    return random_subset(rng, size, min(max(round(share * size), 1), size - 1))


class Neighborhoods(NamedTuple):
    """A graph by the neighbours of each node: those of node i are `indices[indptr[i] : indptr[i + 1]]`."""

    indptr: Ints
    indices: Ints

    @classmethod
    def of_edges(cls, sources: Ints, targets: Ints, num_nodes: int) -> Neighborhoods:
        """From both directions of every edge."""
        order = np.lexsort((targets, sources))
        return cls(np.searchsorted(sources[order], np.arange(num_nodes + 1)), targets[order])

    @property
    def sources(self) -> Ints:
        """The node that each of `indices` is a neighbour of."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def without_some(self, share: float, rng: np.random.Generator) -> Neighborhoods:
        """The graph without a share of its edges, both directions of an edge together."""
        sources, num_nodes = self.sources, len(self.indptr) - 1
        ends = np.minimum(sources, self.indices) * num_nodes + np.maximum(sources, self.indices)
        edges, number = np.unique(ends, return_inverse=True)
        is_left = np.ones(len(edges), dtype=bool)
        is_left[random_subset(rng, len(edges), round(share * len(edges)))] = False
        kept = is_left[number]
        return Neighborhoods(np.searchsorted(sources[kept], np.arange(num_nodes + 1)), self.indices[kept])


class Batch(NamedTuple):
    """A mini-batch.

    Attributes:
        nodes: Its nodes; those that carry the loss come first.
        num_seeds: How many those are.
        sources: Where each sampled edge comes from, as places in `nodes`.
        targets: The node that it was sampled for.
    """

    nodes: Ints
    num_seeds: int
    sources: Ints
    targets: Ints


def batches(
    graph: Neighborhoods, seeds: Ints, batch_size: int, neighbors: Sequence[int], rng: np.random.Generator
) -> Iterator[Batch]:
    """The mini-batches of one epoch."""
    order = seeds[random_order(rng, len(seeds))]
    for start in range(0, len(order), batch_size):
        yield sampled_batch(graph, order[start : start + batch_size], neighbors, rng)


def sampled_batch(graph: Neighborhoods, seeds: Ints, neighbors: Sequence[int], rng: np.random.Generator) -> Batch:
    """Some nodes with sampled neighbours: hop by hop, of each node that the hop before has first reached."""
    nodes: list[int] = seeds.tolist()
    places = {node: place for place, node in enumerate(nodes)}
    sources: list[int] = []
    targets: list[int] = []
    begin = 0
    for most in neighbors:
        end = len(nodes)
        for target in range(begin, end):
            around = graph.indices[graph.indptr[nodes[target]] : graph.indptr[nodes[target] + 1]]
            if most != ALL_NEIGHBORS and len(around) > most:
                around = around[random_subset(rng, len(around), most)]
            for node in around.tolist():
                if node not in places:
                    places[node] = len(nodes)
                    nodes.append(node)
                sources.append(places[node])
                targets.append(target)
        begin = end
    return Batch(np.array(nodes), len(seeds), np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64))
