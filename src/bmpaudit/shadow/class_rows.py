"""What a model says of every single feature: class rows, from unit queries or from its weights.

A unit query asks about a made-up node without edges that has one feature alone, which is a legal input of any model.
What the logits have more than those of a node without features is the class row of the feature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

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
    whole = [each for each in releases if not (each.changes_outputs or gives_embeddings(each)) and models_of(each) == 1]
    is_native = is_deep = False
    # Not those of a class of the user's own: a folder is to be read without running its code.
    if isinstance(model, NativeModel) and registry.name_of(MODEL, model) in registry.ENTRIES[MODEL]:
        is_native, is_deep = True, len(model.native_layers(2)) > 1
    return tuple(
        RowSet(access, release)
        for access in accesses
        for release in whole
        if access == QUERIES or is_deep or (is_native and release.last_layer_noise == 0)
    )


class UnitNodes:
    """Made-up nodes without edges: one for each feature, which has that alone, and one without features.

    A feature has the size that it has in the graph: the root mean square of its values that are not 0.
    """

    def __init__(self, graph: Graph) -> None:
        features = scipy.sparse.csc_array(graph.features)
        counts = np.diff(features.indptr)
        squares = np.asarray(features.multiply(features).sum(axis=0), dtype=np.float64).ravel()
        scale = np.sqrt(squares / np.maximum(counts, 1))
        self.scale: Floats32 = np.where(scale > 0, scale, 1.0).astype(np.float32)
        number = graph.num_features
        ends = np.minimum(np.arange(number + 2), number)
        self.graph = Graph(
            indptr=np.zeros(number + 2, dtype=np.int64),
            indices=np.empty(0, dtype=np.int32),
            features=scipy.sparse.csr_array((self.scale, np.arange(number), ends), shape=(number + 1, number)),
            labels=np.arange(number + 1) % graph.num_classes,  # of no consequence
            num_classes=graph.num_classes,
            cleaning=EdgeCleaning(0, 0, 0, 0),
        )

    def class_rows(self, logits: Floats32) -> tuple[Floats32, Floats32]:
        """Class rows (…, F, C) and their lengths (…, F) from the logits of the nodes, shape (…, F + 1, C).

        A row is that of a feature of size 1, as if the model were linear.
        """
        rows = (logits[..., :-1, :] - logits[..., -1:, :]) / self.scale[:, None]
        return rows, np.linalg.norm(rows, axis=-1)


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
