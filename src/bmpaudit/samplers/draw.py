"""Samplers of any kind, the user's own included: what they return is checked, and errors name the sampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmpaudit.graph import Graph
from bmpaudit.interfaces import Sampler, TrainingEdges
from bmpaudit.registry import SAMPLER, name_of
from bmpaudit.samplers.builtin import NativeSampler
from bmpaudit.util.errors import InputError, check_at_least_one, one_line, thread_count
from bmpaudit.util.streams import Purpose, check_seed, stream
from bmpaudit.util.values import Flags, Ints

AnySampler: TypeAlias = Sampler | Callable[[Graph, np.random.Generator], npt.ArrayLike]
"""A sampler, or any function of (graph, rng) that returns distinct node ids."""


def sampler_name(sampler: AnySampler) -> str:
    """The name of a sampler in messages: `snowball`, or `module:Name` of the user's own."""
    return name_of(SAMPLER, sampler)


def sample_nodes(sampler: AnySampler, graph: Graph, rng: np.random.Generator) -> Ints:
    """Draws one sample from any sampler and checks it; the distinct node ids come back in ascending order."""
    name = sampler_name(sampler)
    if isinstance(sampler, type):
        raise InputError(f"sampler {name} is a class, not an object: use {sampler.__name__}()")
    draw: Any = getattr(sampler, "sample", sampler)
    if not callable(draw):
        raise InputError(
            f"sampler must have a method sample(graph, rng) or be a function of (graph, rng), got {sampler!r}"
        )
    try:
        drawn = draw(graph, rng)
        nodes = np.asarray(drawn)
    except InputError:
        raise
    except Exception as failure:  # the user's code may raise anything
        raise InputError(f"sampler {name} failed: {one_line(failure)}") from failure
    if nodes.ndim == 1 and nodes.size == 0:
        return np.empty(0, dtype=np.int64)
    if nodes.ndim != 1 or not np.issubdtype(nodes.dtype, np.integer):
        what = f"{nodes.dtype} of shape {nodes.shape}" if nodes.ndim else type(drawn).__name__
        hint = "; for a mask, return np.flatnonzero(mask)" if nodes.dtype == np.bool_ and nodes.ndim == 1 else ""
        raise InputError(f"sampler {name} must return a list of node ids, got {what}{hint}")
    distinct = np.unique(nodes)
    if distinct[0] < 0 or distinct[-1] >= graph.num_nodes:
        wrong = distinct[0] if distinct[0] < 0 else distinct[-1]
        raise InputError(f"sampler {name} must return node ids in [0, {graph.num_nodes}), got {wrong}")
    if len(distinct) != len(nodes):
        raise InputError(f"sampler {name} must return distinct node ids, got {len(nodes) - len(distinct)} repeated")
    return distinct.astype(np.int64)


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
    """Draws samples number first, …, first + num_samples - 1: whether each node is in each, shape (J, num_nodes).

    Sample j is `sampler.sample(graph, stream(seed, j))`: it depends on (graph, sampler, seed, j) and on nothing else.
    The sampler may be any function of (graph, rng) that returns node ids; of built-in ones, `num_threads` (all
    processors if not given) draw at once. `purpose` says which random streams to use; the default gives the samples
    that shadow models are trained on.

    >>> from bmpaudit import datasets, samplers
    >>> memberships = draw_memberships(datasets.load("demo"), samplers.Uniform(0.25), 4, seed=1)
    >>> memberships.sum(axis=1)
    array([250, 250, 250, 250])
    """
    check_seed(seed)
    check_at_least_one(num_samples=num_samples)
    if first < 0:
        raise InputError(f"first must be at least 0, got first={first}")
    threads = thread_count(num_threads)
    if isinstance(sampler, NativeSampler):
        return sampler.kernel(graph).memberships(seed, purpose, first, num_samples, threads).view(np.bool_)
    memberships = np.zeros((num_samples, graph.num_nodes), dtype=np.bool_)
    for row in range(num_samples):
        memberships[row, sample_nodes(sampler, graph, stream(seed, first + row, purpose))] = True
    return memberships


def training_edges(graph: Graph, sampler: AnySampler, indices: Ints, seed: int) -> npt.NDArray[np.object_] | None:
    """The edges that each of some models is trained on: an array of node pairs for each, of shape (num_edges, 2).

    None if models are trained on all edges among their nodes.
    """
    if not isinstance(sampler, TrainingEdges):
        return None
    drawn = np.empty(len(indices), dtype=object)
    for row, index in enumerate(indices.tolist()):
        given = sampler.training_edges(graph, stream(seed, index, Purpose.SAMPLE))
        if given is None:
            return None
        edges = np.asarray(given)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            what = f"{edges.dtype} of shape {edges.shape}"
            raise InputError(f"training_edges must be whole numbers of shape (num_edges, 2), got {what}")
        wrong = edges[(edges < 0) | (edges >= graph.num_nodes)]
        if len(wrong):
            raise InputError(f"training_edges must be node ids in [0, {graph.num_nodes}), got {wrong[0]}")
        drawn[row] = edges.astype(np.int64)
    return drawn


def compressed_rows(edges: Ints, num_nodes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Undirected edges in compressed rows, `indptr` and `indices`; what is there twice, or both ways, counts once."""
    both = np.concatenate([edges, edges[:, ::-1]])
    rows, columns = np.divmod(np.unique(both[:, 0] * num_nodes + both[:, 1]), num_nodes)
    indptr = np.concatenate([[0], np.bincount(rows, minlength=num_nodes).cumsum()])
    return indptr.astype(np.int64), columns.astype(np.int32)
