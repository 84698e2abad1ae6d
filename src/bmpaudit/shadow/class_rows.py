"""What a model says of every single feature: class rows, from unit queries or from its weights.

A unit query asks about a made-up node without edges that has one feature alone, which is a legal input of any model.
What the logits have more than those of a node without features is the class row of the feature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from bmpaudit import registry
from bmpaudit.graph import Graph
from bmpaudit.graph.graph import EdgeCleaning
from bmpaudit.interfaces import Release
from bmpaudit.models import NativeModel
from bmpaudit.registry import MODEL, RELEASE
from bmpaudit.releases import QUERIES, gives_embeddings, models_of
from bmpaudit.util.values import Floats, Floats32

NODES_PER_FEATURE = 4  # from which on features are asked about together
LEAST_VARIANCE = 1e-9  # along a principal direction, as a share of the largest
RIDGE = 0.1  # of the last layer's Gram matrix over classes, as a share of its mean eigenvalue


class RowSet(NamedTuple):
    """Class rows of each model, as one kind of access to one release gives them."""

    access: str  # `queries`, or `weights`
    release: Release

    @property
    def name(self) -> str:
        """`queries_clean`, `weights_noisy`, and so on."""
        return f"{self.access}_{registry.label(RELEASE, self.release)}"


def row_sets(accesses: Sequence[str], releases: Sequence[Release], model: object) -> tuple[RowSet, ...]:
    """The class rows that a plan keeps, of releases that give out the model itself.

    Weights are those of built-in models whose first layer has no noise on it.
    """
    # None of a release or a model of the user's own class: a folder is to be read without running its code.
    built_in = [each for each in releases if registry.name_of(RELEASE, each) in registry.ENTRIES[RELEASE]]
    whole = [each for each in built_in if not (each.changes_outputs or gives_embeddings(each)) and models_of(each) == 1]
    is_native = is_deep = False
    if isinstance(model, NativeModel) and registry.name_of(MODEL, model) in registry.ENTRIES[MODEL]:
        is_native, is_deep = True, len(model.native_layers(2)) > 1
    return tuple(
        RowSet(access, release)
        for access in accesses
        for release in whole
        if access == QUERIES or is_deep or (is_native and release.last_layer_noise == 0)
    )


class UnitNodes:
    """Made-up nodes without edges, and what their logits say of every single feature.

    Of many features there is a node for each, which has that alone, and one without features. A feature has the size
    that it has in the graph: the root mean square of its values that are not 0. Where nodes are at least four times as
    many as features, of which each then has many, there are two nodes for each principal direction of the features: at
    one standard deviation of the graph's nodes from their mean, to either side.
    """

    def __init__(self, graph: Graph) -> None:
        number = graph.num_features
        self._directions: Floats32 | None = None
        nodes: Any
        if NODES_PER_FEATURE * number <= graph.num_nodes:
            mean, scale, self._directions = _principal_directions(graph)
            offsets = scale[:, None] * self._directions.T
            nodes = np.concatenate([mean + offsets, mean - offsets])
        else:
            features = scipy.sparse.csc_array(graph.features)
            squares = np.asarray(features.multiply(features).sum(axis=0), dtype=np.float64).ravel()
            scale = np.sqrt(squares / np.maximum(np.diff(features.indptr), 1)).astype(np.float32)
            scale[scale == 0] = 1.0
            ends = np.minimum(np.arange(number + 2), number)
            nodes = scipy.sparse.csr_array((scale, np.arange(number), ends), shape=(number + 1, number))
        self.scale: Floats32 = scale
        self.graph = Graph(
            indptr=np.zeros(nodes.shape[0] + 1, dtype=np.int64),
            indices=np.empty(0, dtype=np.int32),
            features=nodes,
            labels=np.arange(nodes.shape[0]) % graph.num_classes,  # of no consequence
            num_classes=graph.num_classes,
            cleaning=EdgeCleaning(0, 0, 0, 0),
        )

    def class_rows(self, logits: Floats32) -> tuple[Floats32, Floats32]:
        """Class rows (…, F, C) and their lengths (…, F) from the logits of the nodes, shape (…, nodes, C).

        A row is that of a feature of size 1, as if the model were linear.
        """
        if self._directions is None:
            rows = (logits[..., :-1, :] - logits[..., -1:, :]) / self.scale[:, None]
        else:
            above, below = np.split(logits, 2, axis=-2)
            rows = self._directions @ ((above - below) / (2 * self.scale[:, None]))
        return rows, np.linalg.norm(rows, axis=-1)


def _principal_directions(graph: Graph) -> tuple[Floats32, Floats32, Floats32]:
    """Mean of the features (F,), standard deviations along principal directions (F,), and these as columns (F, F)."""
    mean = np.asarray(graph.features.mean(axis=0), dtype=np.float64).ravel()
    products: Any = graph.features.T @ graph.features
    dense = products.toarray() if scipy.sparse.issparse(products) else products
    variances, directions = np.linalg.eigh(dense.astype(np.float64) / graph.num_nodes - np.outer(mean, mean))
    largest = max(float(variances[-1]), 1e-30)
    scale = np.sqrt(np.maximum(variances, LEAST_VARIANCE * largest))
    return mean.astype(np.float32), scale.astype(np.float32), directions.astype(np.float32)


class WeightRows:
    """Class rows from the weights of built-in models, as C++ has them."""

    def __init__(self, graph: Graph, model: NativeModel) -> None:
        self.graph, self.model = graph, model
        counts = np.bincount(graph.labels, minlength=graph.num_classes)
        share = (1 / np.maximum(counts, 1))[graph.labels]
        nodes = np.arange(graph.num_nodes)
        shape = graph.num_classes, graph.num_nodes
        average = scipy.sparse.csr_array((share, (graph.labels, nodes)), shape=shape)
        means = average @ graph.features
        self._class_means: Floats = means.toarray() if scipy.sparse.issparse(means) else np.asarray(means)

    def class_rows(self, flat: Floats32, release: Release) -> tuple[Floats32, Floats32]:
        """Class rows (F, C), and the lengths of the first layer's rows (F,).

        With W the product of the layers after the first, less its mean over the classes, row f is (W Wᵀ + ridge)⁻¹ W
        times the weights of feature f in the first layer: what hidden units tell of the classes, activations left
        aside. If there is noise on the last layer, W is what the first makes of the mean features of each class.
        """
        first, *others = self._own_weights(flat)
        if release.last_layer_noise > 0:
            chain = self._class_means @ first.T
        else:
            chain = reduce(lambda product, weight: weight @ product, others) if others else np.eye(len(first))
        chain = chain - chain.mean(axis=0)
        gram = chain @ chain.T
        size = np.trace(gram) / len(gram)
        lengths = np.linalg.norm(first, axis=0).astype(np.float32)
        if size == 0:
            return np.zeros((first.shape[1], len(gram)), dtype=np.float32), lengths
        rows = np.linalg.solve(gram + RIDGE * size * np.eye(len(gram)), chain) @ first
        return rows.T.astype(np.float32), lengths

    def _own_weights(self, flat: Floats32) -> Iterator[Floats]:
        """Of each layer the weights on a node's own input, shape (units, inputs)."""
        place, inputs = 0, self.graph.num_features
        for layer in self.model.native_layers(self.graph.num_classes):
            for shapes in layer.parameter_shapes(inputs):
                parts: dict[str, Floats32] = {}
                for name, shape in shapes.items():
                    size = math.prod(shape)
                    parts[name] = flat[place : place + size].reshape(shape)
                    place += size
                weight = parts.get("root_weight", parts.get("weight"))
                if weight is not None and weight.ndim == 2:  # others normalise
                    yield weight.astype(np.float64)
            inputs = layer.units
