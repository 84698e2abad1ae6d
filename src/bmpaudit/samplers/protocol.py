"""What a sampler is."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph

NodeIds = npt.NDArray[np.int64]


@runtime_checkable
class Sampler(Protocol):
    """A random choice of training nodes, made from the graph and a random generator alone."""

    def sample(self, graph: Graph, rng: np.random.Generator) -> NodeIds:
        """Draws one sample: node ids, ascending, each once."""
        ...


@runtime_checkable
class ExactPriors(Sampler, Protocol):
    """A sampler whose inclusion probabilities have a closed form."""

    def exact_priors(self, graph: Graph) -> npt.NDArray[np.float64]:
        """γ_i(1) = Pr(node i is in the sample), shape (num_nodes,)."""
        ...


AnySampler = Sampler | Callable[[Graph, np.random.Generator], npt.ArrayLike]
"""A sampler, or any function of (graph, rng) that returns distinct node ids."""


class NativeSampler(ABC):
    """A sampler whose draws are made in C++."""

    @abstractmethod
    def kernel(self, graph: Graph) -> _native.Sampler:
        """The compiled sampler for this graph."""

    def sample(self, graph: Graph, rng: np.random.Generator) -> NodeIds:
        """Draws one sample: node ids, ascending, each once."""
        with rng.bit_generator.lock:
            return self.kernel(graph).sample(rng.bit_generator)


def sample_nodes(sampler: AnySampler, graph: Graph, rng: np.random.Generator) -> NodeIds:
    """Draws one sample from any sampler and checks it.

    Raises:
        InputError: if what comes back are not distinct node ids of this graph.
    """
    drawn = np.asarray(sampler.sample(graph, rng) if isinstance(sampler, Sampler) else sampler(graph, rng))
    if drawn.size == 0:
        return np.empty(0, dtype=np.int64)
    if drawn.ndim != 1 or not np.issubdtype(drawn.dtype, np.integer):
        raise InputError(f"a sampler must return a list of node ids, got {drawn.dtype} of shape {drawn.shape}")
    nodes = np.unique(drawn)
    if nodes[0] < 0 or nodes[-1] >= graph.num_nodes:
        wrong = nodes[0] if nodes[0] < 0 else nodes[-1]
        raise InputError(f"a sampler must return node ids in [0, {graph.num_nodes}), got {wrong}")
    if len(nodes) != len(drawn):
        raise InputError(f"a sampler must return distinct node ids, got {len(drawn) - len(nodes)} repeated")
    return nodes.astype(np.int64)
