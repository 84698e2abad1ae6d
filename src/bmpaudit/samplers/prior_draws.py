"""Finding the priors of any sampler: by formula, or by many draws within a time budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from bmpaudit.arrays import Ints
from bmpaudit.checks import check_at_least_one, thread_count
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.interfaces import ExactPriors, Progress
from bmpaudit.samplers.any_sampler import AnySampler, check_repeatable, exact_priors, sample_nodes
from bmpaudit.samplers.draw import count_memberships
from bmpaudit.samplers.floor import pilot_size
from bmpaudit.samplers.native import NativeSampler
from bmpaudit.samplers.priors import Priors
from bmpaudit.streams import Purpose, check_seed, stream

DEFAULT_DRAWS = 100_000
MIN_DRAWS = 400


def prior_probabilities(
    graph: Graph,
    sampler: AnySampler,
    *,
    num_draws: int = DEFAULT_DRAWS,
    seed: int = 0,
    exact: bool = True,
    seconds: float | None = None,
    num_threads: int | None = None,
    progress: Progress = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Priors:
    """The probability that a sample holds each node.

    Exact where the sampler has a closed form; otherwise the frequency over many draws, which are independent of the
    samples that shadow models are trained on. The paper takes the frequency over those J samples themselves, which
    biases the floor of Prop. 1 upward: the largest of N noisy frequencies lies above the largest probability.

    With a time budget the number of draws depends on the clock, and nothing else does: the result says how many there
    were (`Priors.num_draws`), and calling again with that `num_draws` and no budget gives the identical result. Keep
    that number wherever the priors must be found again.

    Args:
        graph: The whole graph.
        sampler: A sampler, or any function of (graph, rng) that returns node ids.
        num_draws: Maximum number of samples to draw where there is no closed form.
        seed: Random seed; draw j depends on (seed, j) only.
        exact: Whether a closed form may be used.
        seconds: Time budget for samplers written in Python, which may be slow; at least 400 samples are drawn, or
            `num_draws` if that is less. Built-in samplers are fast and always draw `num_draws`. No limit if not given.
        num_threads: Number of threads for built-in samplers; all processors if not given.
        progress: Called with the number of samples drawn so far.
        clock: Gives the time in seconds.

    Raises:
        InputError: if the sampler is broken; the message names it.

    >>> from bmpaudit import datasets, samplers
    >>> priors = prior_probabilities(datasets.load("demo"), samplers.Uniform(0.25))
    >>> priors.is_exact, float(priors.prob[0]), round(priors.floor.right, 4)
    (True, 0.25, -1.0986)
    """
    check_seed(seed)
    check_at_least_one(num_draws=num_draws)
    if seconds is not None and not seconds > 0:
        raise InputError(f"seconds must be greater than 0, got seconds={seconds}")
    threads = thread_count(num_threads)
    check_repeatable(sampler, graph, seed)
    if exact and isinstance(sampler, ExactPriors):
        return Priors.from_formula(sampler, exact_priors(sampler, graph))
    if not isinstance(sampler, NativeSampler):
        return _draw_until(graph, sampler, num_draws, seed, clock() + (seconds or math.inf), progress, clock)
    num_pilot = pilot_size(num_draws)

    def count(first: int, num_samples: int) -> Ints:
        return count_memberships(
            graph,
            sampler,
            num_samples,
            seed,
            first=first,
            purpose=Purpose.PRIOR,
            num_threads=threads,
            progress=lambda done: progress(first + done),
        )

    pilot = count(0, num_pilot) if num_pilot else np.zeros(graph.num_nodes, dtype=np.int64)
    return Priors.from_counts(sampler, pilot + count(num_pilot, num_draws - num_pilot), pilot, num_draws)


def _draw_until(
    graph: Graph,
    sampler: AnySampler,
    num_draws: int,
    seed: int,
    end: float,
    progress: Progress,
    clock: Callable[[], float],
) -> Priors:
    counts = np.zeros(graph.num_nodes, dtype=np.int64)
    counts_at = {0: counts.copy()}  # by number of draws, at the powers of two: one of them is the pilot
    done = 0
    while done < num_draws and (done < MIN_DRAWS or clock() < end):
        counts[sample_nodes(sampler, graph, stream(seed, done, Purpose.PRIOR))] += 1
        done += 1
        progress(done)
        if done & (done - 1) == 0:
            counts_at[done] = counts.copy()
    return Priors.from_counts(sampler, counts, counts_at[pilot_size(done)], done)
