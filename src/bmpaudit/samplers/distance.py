"""How many memberships may change with one: D, by which ε-MDP becomes D·ε-MP."""

from __future__ import annotations

import numpy as np

from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.samplers.any_sampler import AnySampler, sampler_name


def sampler_distance(sampler: AnySampler, graph: Graph) -> int:
    """An upper bound on `privacy.membership_distance` of a sampler on a graph.

    A sampler that has a method `membership_distance(graph)` is believed; of any other, all memberships may change with
    one, so that the bound is the number of nodes.

    Raises:
        InputError: if the sampler's own bound is not a whole number from 1 to the number of nodes.

    >>> from bmpaudit.samplers import Bernoulli, Uniform
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], [[1.0]] * 3, [0, 1, 0])
    >>> sampler_distance(Bernoulli(0.5), graph), sampler_distance(Uniform(0.5), graph)
    (1, 2)
    """
    own = getattr(sampler, "membership_distance", None)
    if own is None:
        return graph.num_nodes
    distance = own(graph)
    is_whole = isinstance(distance, (int, np.integer)) and not isinstance(distance, bool)
    if not is_whole or not 1 <= distance <= graph.num_nodes:
        raise InputError(
            f"membership_distance of sampler {sampler_name(sampler)} must be in [1, {graph.num_nodes}], got {distance}"
        )
    return int(distance)
