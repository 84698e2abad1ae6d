"""A graph without the edges that exceed a bound on degrees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse

from bmpaudit.graph import Graph

_ORDER_SEED = 20_250_101  # which edges go is public, and the same for everybody


def bound_degrees(graph: Graph, max_degree: int) -> Graph:
    """The same nodes, and of the edges as many as a greedy pass keeps: no node has more than `max_degree` neighbours.

    Edges come in a fixed random order; one is kept if both ends still have room. What is kept depends on the graph
    alone, so that a sample is not in it: for any two samples, the edges among the nodes they share are the same.
    """
    if graph.num_edges == 0 or graph.degrees.max() <= max_degree:
        return graph
    edges = graph.edges
    order = np.random.default_rng(_ORDER_SEED).permutation(len(edges))
    room = [max_degree] * graph.num_nodes
    kept = np.zeros(len(edges), dtype=np.bool_)
    for number, (one, other) in zip(order.tolist(), edges[order].tolist(), strict=True):
        if room[one] and room[other]:
            room[one] -= 1
            room[other] -= 1
            kept[number] = True
    one, other = edges[kept].T
    shape = (graph.num_nodes, graph.num_nodes)
    ends = (np.concatenate([one, other]), np.concatenate([other, one]))
    adjacency = scipy.sparse.coo_array((np.ones(2 * len(one), dtype=np.int8), ends), shape=shape).tocsr()
    adjacency.sort_indices()
    return replace(
        graph,
        indptr=adjacency.indptr.astype(graph.indptr.dtype),
        indices=adjacency.indices.astype(graph.indices.dtype),
        cleaning=replace(graph.cleaning, num_edges=len(one)),
    )
