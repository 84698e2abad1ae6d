"""The options that say how training nodes are sampled, shared by every command that samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bmpaudit import samplers
from bmpaudit.interfaces import Sampler

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
        return samplers.RandomWalk(train_fraction, walk_length, num_roots)
    by_fraction: dict[str, Callable[[float], Sampler]] = {
        "uniform": samplers.Uniform,
        "bernoulli": samplers.Bernoulli,
        "stratified": samplers.Stratified,
        "degree-weighted": samplers.DegreeWeighted,
    }
    return by_fraction[name](train_fraction)
