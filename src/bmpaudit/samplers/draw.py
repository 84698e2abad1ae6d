"""Many samples: memberships, one row a sample."""

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.samplers.protocol import AnySampler, NativeSampler, sample_nodes
from bmpaudit.streams import Purpose, check_seed, stream

Progress = Callable[[int], None]
"""Is told how many samples are done."""

# Work is handed to C++ in parts of about this many membership flags, so that a stop request is heard between them.
_FLAGS_AT_ONCE = 20_000_000


def draw_memberships(
    graph: Graph,
    sampler: AnySampler,
    num_samples: int,
    seed: int,
    *,
    first: int = 0,
    num_threads: int | None = None,
) -> npt.NDArray[np.bool_]:
    """Draws samples number first, …, first + num_samples - 1 of a seed.

    Sample j is `sampler.sample(graph, stream(seed, j))`: it depends on (graph, sampler, seed, j) and on nothing else.

    Returns:
        Whether each node is in each sample, shape (num_samples, num_nodes).

    >>> from bmpaudit import datasets, samplers
    >>> memberships = draw_memberships(datasets.load("demo"), samplers.Uniform(0.25), 4, seed=1)
    >>> memberships.sum(axis=1)
    array([250, 250, 250, 250])
    """
    check_seed(seed)
    check_at_least_one(num_samples=num_samples)
    if first < 0:
        raise InputError(f"first must be at least 0, got first={first}")
    if isinstance(sampler, NativeSampler):
        flags = sampler.kernel(graph).memberships(seed, Purpose.SAMPLE, first, num_samples, _threads(num_threads))
        return flags.view(np.bool_)
    memberships = np.zeros((num_samples, graph.num_nodes), dtype=np.bool_)
    for row in range(num_samples):
        memberships[row, sample_nodes(sampler, graph, stream(seed, first + row))] = True
    return memberships


def count_memberships(
    graph: Graph,
    sampler: AnySampler,
    num_samples: int,
    seed: int,
    purpose: Purpose,
    progress: Progress = lambda _: None,
    num_threads: int | None = None,
) -> npt.NDArray[np.int64]:
    """How many of the first `num_samples` samples of a seed and purpose hold each node, shape (num_nodes,)."""
    check_seed(seed)
    check_at_least_one(num_samples=num_samples)
    counts = np.zeros(graph.num_nodes, dtype=np.int64)
    if isinstance(sampler, NativeSampler):
        kernel = sampler.kernel(graph)
        part = max(1, _FLAGS_AT_ONCE // graph.num_nodes)
        for first in range(0, num_samples, part):
            size = min(part, num_samples - first)
            counts += kernel.counts(seed, purpose, first, size, _threads(num_threads))
            progress(first + size)
    else:
        for index in range(num_samples):
            counts[sample_nodes(sampler, graph, stream(seed, index, purpose))] += 1
            progress(index + 1)
    return counts


def _threads(num_threads: int | None) -> int:
    return num_threads or os.cpu_count() or 1
