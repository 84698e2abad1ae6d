"""The options that say how training nodes are sampled, shared by every command that samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bmpaudit import samplers
from bmpaudit.checks import check_at_least_one
from bmpaudit.graph import Graph
from bmpaudit.samplers import Sampler
from bmpaudit.samplers.fraction import check_fraction

SAMPLERS = ("uniform", "snowball", "bernoulli", "stratified", "degree-weighted", "random-walk")

_OPTIONS = (
    click.option("--train-fraction", type=float, default=0.25, show_default=True, help="Share of nodes to sample."),
    click.option("--fan-out", type=int, default=5, show_default=True, help="snowball: neighbours drawn for one node."),
    click.option("--restart", is_flag=True, help="snowball: go on from a new seed when the queue runs dry."),
    click.option("--num-roots", type=int, help="random-walk: number of walks [as many as fit the train fraction]."),
    click.option("--walk-length", type=int, default=2, show_default=True, help="random-walk: steps of a walk."),
)


def sampler_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command, which hands them on to `make_sampler`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def make_sampler(
    name: str,
    graph: Graph,
    train_fraction: float,
    fan_out: int,
    restart: bool,
    num_roots: int | None,
    walk_length: int,
) -> Sampler:
    """The sampler that the options describe."""
    if name == "snowball":
        return samplers.Snowball(train_fraction, fan_out, restart)
    if name == "random-walk":
        fitting = _fitting_roots(graph, train_fraction, walk_length) if num_roots is None else num_roots
        return samplers.RandomWalk(fitting, walk_length)
    by_fraction: dict[str, Callable[[float], Sampler]] = {
        "uniform": samplers.Uniform,
        "bernoulli": samplers.Bernoulli,
        "stratified": samplers.Stratified,
        "degree-weighted": samplers.DegreeWeighted,
    }
    return by_fraction[name](train_fraction)


def _fitting_roots(graph: Graph, train_fraction: float, walk_length: int) -> int:
    check_fraction(train_fraction)
    check_at_least_one(walk_length=walk_length)
    return max(1, round(train_fraction * graph.num_nodes / (walk_length + 1)))
