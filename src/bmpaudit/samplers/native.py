"""Samplers that draw in C++."""

from abc import ABC, abstractmethod

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Ints
from bmpaudit.graph import Graph


class NativeSampler(ABC):
    """A sampler whose samples are drawn in C++."""

    @abstractmethod
    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""

    def sample(self, graph: Graph, rng: np.random.Generator) -> Ints:
        """Draws one sample: distinct node ids in ascending order."""
        with rng.bit_generator.lock:
            return self.kernel(graph).sample(rng.bit_generator)
