"""What the Student attack looks at: a node's own statistics and the mean over its neighbours, under each query."""

from __future__ import annotations

import numpy as np

from bmpaudit.arrays import Flags, Floats, Floats32, Ints
from bmpaudit.attack.evidence import Evidence
from bmpaudit.tables import columns, evenly_spaced

MIN_OWN_VARIANCE = 1e-6
"""Share of a feature's variance that the features before it must leave unexplained."""

MAX_LOOKED_AT = 256  # nodes that tell whether features depend on each other


def have_neighbours(models: Evidence, nodes: Ints, with_neighbours: bool) -> Flags:
    """Which of some nodes have neighbours, if these are looked at at all, shape (K,)."""
    if not with_neighbours or models.graph is None:
        return np.zeros(len(nodes), dtype=np.bool_)
    starts = models.graph.indptr
    return starts[nodes + 1] > starts[nodes]


def node_features(
    models: Evidence, nodes: Ints, with_neighbours: bool, num_threads: int, is_kept: Flags | None = None
) -> Floats32:
    """Features of some nodes: the statistic under each query, then the mean over the node's neighbours under each.

    Args:
        models: The models.
        nodes: Ids of K nodes; all with neighbours if these are looked at.
        with_neighbours: Whether the mean over neighbours is one of the features.
        num_threads: Number of threads.
        is_kept: Which features are wanted, shape (V,); all if None.

    Returns:
        Shape (number of features wanted, J, K).
    """
    queries = models.queries
    num_features = 2 * len(queries) if with_neighbours else len(queries)
    wanted = np.arange(num_features) if is_kept is None else np.flatnonzero(is_kept)
    features = np.empty((len(wanted), models.num_models, len(nodes)), dtype=np.float32)
    for into, feature in zip(features, wanted.tolist(), strict=True):
        if feature < len(queries):
            table = models.statistics[queries[feature]]
        else:
            table = models.neighbour_means(queries[feature - len(queries)], num_threads)
        into[:] = columns(table, nodes)
    return features


def independent_features(features: Floats32) -> Flags:
    """Which features vary and are not a linear function of those before them, shape (V,).

    A model that ignores edges answers alike to every query; a node without neighbours is answered alike with all edges
    and with none. Such a feature says nothing new. Memberships are not looked at.

    Args:
        features: Shape (V, J, K).
    """
    num_features = len(features)
    nodes = evenly_spaced(np.arange(features.shape[2]), MAX_LOOKED_AT)
    values = features[:, :, nodes].transpose(2, 0, 1).astype(np.float64)
    values -= values.mean(axis=2, keepdims=True)
    lengths = np.linalg.norm(values, axis=2, keepdims=True)
    values /= np.where(lengths > 0, lengths, 1.0)  # so that every node counts alike
    correlation: Floats = (values @ values.transpose(0, 2, 1)).sum(axis=0)
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
