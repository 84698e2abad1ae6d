"""Many samples at once: memberships, one row per sample, or how often each node was drawn."""

from __future__ import annotations

import numpy as np

from bmpaudit.arrays import Flags, Ints
from bmpaudit.checks import check_at_least_one, thread_count
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.samplers.any_sampler import AnySampler, sample_nodes
from bmpaudit.samplers.native import NativeSampler
from bmpaudit.streams import Purpose, check_seed, stream

# C++ gets the work in parts of about this many membership flags, so that Ctrl-C takes effect between them.
_FLAGS_AT_ONCE = 20_000_000


def draw_memberships(
    graph: Graph,
    sampler: AnySampler,
    num_samples: int,
    seed: int,
    *,
    first: int = 0,
    purpose: Purpose = Purpose.SAMPLE,
    num_threads: int | None = None,
) -> Flags:
    """Draws samples number first, …, first + num_samples - 1 of a seed.

    Sample j is `sampler.sample(graph, stream(seed, j))`: it depends on (graph, sampler, seed, j) and on nothing else.

    Args:
        graph: The whole graph.
        sampler: A sampler, or any function of (graph, rng) that returns node ids.
        num_samples: Number of samples.
        seed: Random seed.
        first: Index of the first sample.
        purpose: Which random streams to use; the default gives the samples that shadow models are trained on.
        num_threads: Number of threads for built-in samplers; all processors if not given.

    Returns:
        Whether each node is in each sample, shape (num_samples, num_nodes).

    >>> from bmpaudit import datasets, samplers
    >>> memberships = draw_memberships(datasets.load("demo"), samplers.Uniform(0.25), 4, seed=1)
    >>> memberships.sum(axis=1)
    array([250, 250, 250, 250])
    """
    _check_range(num_samples, seed, first)
    threads = thread_count(num_threads)
    if isinstance(sampler, NativeSampler):
        return sampler.kernel(graph).memberships(seed, purpose, first, num_samples, threads).view(np.bool_)
    memberships = np.zeros((num_samples, graph.num_nodes), dtype=np.bool_)
    for row in range(num_samples):
        memberships[row, sample_nodes(sampler, graph, stream(seed, first + row, purpose))] = True
    return memberships


def count_memberships(
    graph: Graph,
    sampler: AnySampler,
    num_samples: int,
    seed: int,
    *,
    first: int = 0,
    purpose: Purpose = Purpose.SAMPLE,
    num_threads: int | None = None,
    progress: Progress = lambda _: None,
) -> Ints:
    """The number of samples that hold each node, shape (num_nodes,): the column sums of `draw_memberships`.

    Takes the same arguments, and `progress`, which is called with the number of samples drawn so far.
    """
    _check_range(num_samples, seed, first)
    threads = thread_count(num_threads)
    counts = np.zeros(graph.num_nodes, dtype=np.int64)
    if isinstance(sampler, NativeSampler):
        kernel = sampler.kernel(graph)
        part = max(1, _FLAGS_AT_ONCE // graph.num_nodes)
        for start in range(0, num_samples, part):
            size = min(part, num_samples - start)
            counts += kernel.counts(seed, purpose, first + start, size, threads)
            progress(start + size)
    else:
        for row in range(num_samples):
            counts[sample_nodes(sampler, graph, stream(seed, first + row, purpose))] += 1
            progress(row + 1)
    return counts


def _check_range(num_samples: int, seed: int, first: int) -> None:
    check_seed(seed)
    check_at_least_one(num_samples=num_samples)
    if first < 0:
        raise InputError(f"first must be at least 0, got first={first}")
