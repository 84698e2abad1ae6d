"""Uniform sampling within each class."""

from dataclasses import dataclass

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Floats
from bmpaudit.graph import Graph
from bmpaudit.samplers.fraction import check_fraction, target_size
from bmpaudit.samplers.native import NativeSampler


@dataclass(frozen=True)
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

    train_fraction: float = 0.25

    def __post_init__(self) -> None:
        check_fraction(self.train_fraction)

    def membership_distance(self, graph: Graph) -> int:
        """2: whoever joins takes the place of another of the class; see `sampler_distance`."""
        return min(2, graph.num_nodes)

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        return _native.GroupedSubset(graph.labels.astype(np.int32), self._sizes(graph))

    def exact_priors(self, graph: Graph) -> Floats:
        """n_c/N_c for every node of class c."""
        class_sizes = np.bincount(graph.labels, minlength=graph.num_classes)
        return (np.array(self._sizes(graph)) / np.maximum(class_sizes, 1))[graph.labels]

    def _sizes(self, graph: Graph) -> list[int]:
        class_sizes = np.bincount(graph.labels, minlength=graph.num_classes)
        return [min(int(size), max(1, target_size(self.train_fraction, int(size)))) for size in class_sizes]
