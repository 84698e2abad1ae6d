"""What the Student attack looks at: a node's own statistics and the mean over its neighbours, under each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bmpaudit.arrays import Flags, Floats, Floats32, Ints
from bmpaudit.attack.evidence import Evidence

if TYPE_CHECKING:
    from bmpaudit.graph import Graph

MIN_OWN_VARIANCE = 1e-6
"""Share of a feature's variance that the features before it must leave unexplained."""

MAX_CHUNK = 2**16  # statistics averaged at once, few enough to stay in the cache
MAX_LOOKED_AT = 256  # nodes that tell whether features depend on each other


class NodeGroup(NamedTuple):
    """Nodes that have the same features.

    Attributes:
        nodes: Node ids, ascending.
        with_neighbours: Whether the mean over neighbours is one of the features.
    """

    nodes: Ints
    with_neighbours: bool


def node_groups(models: Evidence, with_neighbours: bool) -> list[NodeGroup]:
    """All nodes of the graph: those whose neighbours are looked at, and the others."""
    every_node = np.arange(models.num_nodes)
    if not with_neighbours or models.graph is None:
        return [NodeGroup(every_node, False)]
    is_connected = models.graph.degrees > 0
    groups = [NodeGroup(every_node[is_connected], True), NodeGroup(every_node[~is_connected], False)]
    return [group for group in groups if len(group.nodes)]


def node_features(models: Evidence, nodes: Ints, with_neighbours: bool, is_kept: Flags | None = None) -> Floats32:
    """Features of some nodes: the statistic under each query, then the mean over the node's neighbours under each.

    Args:
        models: The models.
        nodes: Ids of K nodes; all with neighbours if these are looked at.
        with_neighbours: Whether the mean over neighbours is one of the features.
        is_kept: Which features are wanted, shape (V,); all if None.

    Returns:
        Shape (number of features wanted, J, K).
    """
    num_queries = len(models.queries)
    num_features = 2 * num_queries if with_neighbours else num_queries
    wanted = np.arange(num_features) if is_kept is None else np.flatnonzero(is_kept)
    statistics = list(models.statistics.values())
    features = np.empty((len(wanted), models.num_models, len(nodes)), dtype=np.float32)
    for into, feature in zip(features, wanted.tolist(), strict=True):
        if feature < num_queries:
            np.take(statistics[feature], nodes, axis=1, out=into, mode="clip")
        elif models.graph is not None:
            _fill_with_neighbours(into, statistics[feature - num_queries], models.graph, nodes)
    return features


def _fill_with_neighbours(into: Floats32, statistics: Floats32, graph: Graph, nodes: Ints) -> None:
    adjacency, degrees = graph.adjacency[nodes].astype(np.float64), graph.degrees[nodes]
    step = max(1, MAX_CHUNK // graph.num_nodes)
    for first in range(0, len(statistics), step):
        rows = slice(first, first + step)
        sums = adjacency @ np.ascontiguousarray(statistics[rows].T, dtype=np.float64)
        into[rows] = (sums / degrees[:, None]).T


def independent_features(features: Floats32) -> Flags:
    """Which features vary and are not a linear function of those before them, shape (V,).

    A model that ignores edges answers alike to every query; a node without neighbours is answered alike with all edges
    and with none. Such a feature says nothing new. Memberships are not looked at.

    Args:
        features: Shape (V, J, K).
    """
    num_features = len(features)
    correlation = np.zeros((num_features, num_features))
    for node in evenly_spaced(np.arange(features.shape[2]), MAX_LOOKED_AT):
        values = features[:, :, node].astype(np.float64)
        values -= values.mean(axis=1, keepdims=True)
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        values /= np.where(lengths > 0, lengths, 1.0)  # so that every node counts alike
        correlation += values @ values.T
    is_kept = np.zeros(num_features, dtype=np.bool_)
    for feature in range(num_features):
        variance = correlation[feature, feature]
        if variance > 0 and _unexplained(correlation, is_kept, feature) > MIN_OWN_VARIANCE * variance:
            is_kept[feature] = True
    return is_kept


def _unexplained(correlation: Floats, is_kept: Flags, feature: int) -> float:
    kept = np.flatnonzero(is_kept)
    if not len(kept):
        return float(correlation[feature, feature])
    theirs = correlation[np.ix_(kept, kept)]
    with_it = correlation[kept, feature]
    return float(correlation[feature, feature] - with_it @ np.linalg.solve(theirs, with_it))


def evenly_spaced(nodes: Ints, most: int) -> Ints:
    """All of the nodes, or so many of them, evenly spaced."""
    return nodes if len(nodes) <= most else nodes[np.arange(most) * len(nodes) // most]
