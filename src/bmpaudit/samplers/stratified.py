"""Uniform sampling within each class."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.graph import Graph
from bmpaudit.samplers.fraction import check_fraction, target_size
from bmpaudit.samplers.protocol import NativeSampler


@dataclass(frozen=True)
class Stratified(NativeSampler):
    """The same share of every class, uniformly and without replacement within a class.

    Formal guarantees:
        - A sample has exactly n_c = max(1, floor(train_fraction · N_c)) nodes of each class c that has N_c > 0 nodes:
          no class is ever missing.
        - A node of class c has prior γ = n_c/N_c; in a class of one node that is 1.
        - Classes are drawn independently of each other.

    Attributes:
        train_fraction: Share of each class to draw, in (0, 1).
    """

    train_fraction: float

    def __post_init__(self) -> None:
        check_fraction(self.train_fraction)

    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""
        return _native.GroupedSubset(graph.labels.astype(np.int32), self._sizes(graph))

    def exact_priors(self, graph: Graph) -> npt.NDArray[np.float64]:
        """n_c/N_c for every node of class c."""
        class_sizes = np.bincount(graph.labels, minlength=graph.num_classes)
        return (np.array(self._sizes(graph)) / np.maximum(class_sizes, 1))[graph.labels]

    def _sizes(self, graph: Graph) -> list[int]:
        class_sizes = np.bincount(graph.labels, minlength=graph.num_classes)
        return [min(int(size), max(1, target_size(self.train_fraction, int(size)))) for size in class_sizes]
