"""Samplers of any kind, the user's own included: what they return is checked, and errors name the sampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Floats, Ints
from bmpaudit.errors import InputError, one_line
from bmpaudit.graph import Graph
from bmpaudit.interfaces import ExactPriors, Sampler
from bmpaudit.registry import SAMPLER, name_of
from bmpaudit.samplers.native import NativeSampler
from bmpaudit.streams import Purpose, stream

AnySampler: TypeAlias = Sampler | Callable[[Graph, np.random.Generator], npt.ArrayLike]
"""A sampler, or any function of (graph, rng) that returns distinct node ids."""


def sampler_name(sampler: AnySampler) -> str:
    """The name of a sampler in messages: `snowball`, or `module:Name` of the user's own."""
    return name_of(SAMPLER, sampler)


def node_label(graph: Graph, node: int) -> str:
    """A node's name in messages, or its number if it has none."""
    return str(node) if graph.node_names is None else repr(graph.node_names[node])


def sample_nodes(sampler: AnySampler, graph: Graph, rng: np.random.Generator) -> Ints:
    """Draws one sample from any sampler and checks it; the node ids come back in ascending order.

    Raises:
        InputError: if the sampler fails or does not return distinct node ids of this graph; the message names it.
    """
    draw = _draw_function(sampler)
    try:
        drawn = draw(graph, rng)
        nodes = np.asarray(drawn)
    except InputError:
        raise
    except Exception as failure:  # the user's code may raise anything
        raise InputError(f"sampler {sampler_name(sampler)} failed: {one_line(failure)}") from failure
    if nodes.ndim == 1 and nodes.size == 0:
        return np.empty(0, dtype=np.int64)
    return _distinct_nodes(nodes, drawn, sampler, graph)


def _distinct_nodes(nodes: npt.NDArray[Any], drawn: Any, sampler: AnySampler, graph: Graph) -> Ints:
    name = sampler_name(sampler)
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


def _draw_function(sampler: AnySampler) -> Callable[[Graph, np.random.Generator], npt.ArrayLike]:
    if isinstance(sampler, type):
        raise InputError(f"sampler {sampler_name(sampler)} is a class, not an object: use {sampler.__name__}()")
    draw = getattr(sampler, "sample", sampler)
    if not callable(draw):
        raise InputError(
            f"sampler must have a method sample(graph, rng) or be a function of (graph, rng), got {sampler!r}"
        )
    return draw


def check_repeatable(sampler: AnySampler, graph: Graph, seed: int) -> None:
    """Draws the same sample twice from equal generators: all randomness must come from the generator.

    Raises:
        InputError: if the two differ, or the sampler is broken.
    """
    if isinstance(sampler, NativeSampler):
        return
    first, second = (sample_nodes(sampler, graph, stream(seed, 0, Purpose.PRIOR)) for _ in range(2))
    if not np.array_equal(first, second):
        raise InputError(
            f"sampler {sampler_name(sampler)} must take all its randomness from rng, "
            "got two different samples from equal generators"
        )


def exact_priors(sampler: ExactPriors, graph: Graph) -> Floats:
    """The sampler's own formula for γ, checked.

    Raises:
        InputError: if it fails or does not give one probability for each node; the message names the sampler.
    """
    name = sampler_name(sampler)
    try:
        prob = np.asarray(sampler.exact_priors(graph), dtype=np.float64)
    except InputError:
        raise
    except Exception as failure:  # the user's code may raise anything
        raise InputError(f"exact_priors of sampler {name} failed: {one_line(failure)}") from failure
    if prob.shape != (graph.num_nodes,):
        raise InputError(
            f"exact_priors of sampler {name} must have shape ({graph.num_nodes},), one for each node, got {prob.shape}"
        )
    is_wrong = ~((prob >= 0) & (prob <= 1))  # NaN is wrong too
    if is_wrong.any():
        node = int(np.argmax(is_wrong))
        raise InputError(
            f"exact_priors of sampler {name} must be in [0, 1], got {prob[node]} for node {node_label(graph, node)}"
        )
    return prob
