"""Prior probabilities of nodes from the sampler, exact or estimated, and what they give away (the floor of Prop. 1)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.special

from bmpaudit.graph import Graph
from bmpaudit.graph.graph import describe_node
from bmpaudit.interfaces import ExactPriors, Progress
from bmpaudit.privacy import EpsilonPair, prior_floor
from bmpaudit.samplers.builtin import NativeSampler
from bmpaudit.samplers.draw import AnySampler, sample_nodes, sampler_name
from bmpaudit.util.errors import InputError, check_at_least_one, one_line, thread_count
from bmpaudit.util.streams import Purpose, check_seed, stream
from bmpaudit.util.values import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_LEVEL = 0.95

# Nodes within this many standard deviations of the pilot's extreme are candidates; any choice gives a valid bound.
_CANDIDATE_WIDTH = 3.0


@dataclass(frozen=True)
class PriorFloor:
    """Prop. 1: no training algorithm on this sampler is (ε_L, ε_R)-BMP below this pair."""

    left: float  # -log η_min, or a lower confidence bound of it
    right: float  # log η_max, or a lower confidence bound of it
    level: float | None = None  # confidence that both bounds hold together; None where the priors are exact


def pilot_size(num_draws: int) -> int:
    """The number of pilot draws among `num_draws`: the largest power of two that is at most a quarter of them.

    Being a power of two, it can be kept while drawing, before the final number of draws is known.

    >>> pilot_size(100_000), pilot_size(4), pilot_size(3)
    (16384, 1, 0)
    """
    return 1 << (num_draws // 4).bit_length() - 1 if num_draws >= 4 else 0


def floor_bound(counts: Ints, pilot_counts: Ints, num_draws: int, level: float = DEFAULT_LEVEL) -> PriorFloor:
    """Lower confidence bounds of -log η_min and log η_max from how often each node was drawn, in all and in the pilot.

    The extreme of many frequencies is biased: the rarest of N nodes in a finite number of draws is rarer than the
    rarest node is. So the draws are split. The first ones, the pilot, choose candidates: the nodes within three
    standard deviations of the most extreme count. The other draws bound each candidate's prior by a one-sided
    Clopper–Pearson bound, Bonferroni over the candidates, and the best of them bounds the extreme of all nodes. As the
    candidates depend on the pilot alone, the bound holds exactly at its level, whatever the dependence between nodes.
    Each side gets half of 1 - level, so both hold together.

    A single candidate would need no correction, and all nodes as candidates no pilot: both give looser bounds, the
    first where many nodes share the extreme, the second where one node stands apart.
    """
    error_prob = (1 - level) / 2
    num_pilot = pilot_size(num_draws)
    num_rest, rest = num_draws - num_pilot, counts - pilot_counts
    bounds = []
    for pilot, others in ((pilot_counts, rest), (num_pilot - pilot_counts, num_rest - rest)):  # in, and out
        least = int(pilot.min())
        spread = np.sqrt(least * (1 - least / max(num_pilot, 1)) + 1)
        candidates = others[pilot <= least + _CANDIDATE_WIDTH * spread]
        _, rarest = clopper_pearson(candidates.min(), num_rest, error_prob / len(candidates))
        bounds.append(-float(scipy.special.logit(float(rarest))))
    return PriorFloor(bounds[0], bounds[1], level)


def clopper_pearson(successes: Ints | int, num_trials: Ints | int, error_prob: float) -> tuple[Floats, Floats]:
    """Lower and upper Clopper–Pearson bounds of a binomial probability, each wrong with at most `error_prob`.

    >>> low, high = clopper_pearson(0, 100, 0.05)
    >>> float(low), round(float(high), 4)
    (0.0, 0.0295)
    """
    count = np.asarray(successes, dtype=np.float64)
    failures = num_trials - count
    low = scipy.special.betaincinv(np.maximum(count, 1), failures + 1, error_prob)
    high = scipy.special.betainccinv(count + 1, np.maximum(failures, 1), error_prob)
    return np.where(count == 0, 0.0, low), np.where(failures == 0, 1.0, high)


COLUMNS = ("node", "prior_prob", "standard_error", "num_draws", "num_pilot")


@dataclass(frozen=True, eq=False, repr=False)
class Priors:
    """Prior membership probabilities of all nodes under one sampler, as `prior_probabilities` finds them.

    The standard error of an estimate is the standard deviation of the Beta posterior under Jeffreys' prior: √(γ(1-γ)/n)
    for all practical purposes, but not 0 for a node that was never, or always, drawn.
    """

    sampler: AnySampler
    prob: Floats  # γ_i(1), exact or estimated, shape (num_nodes,)
    standard_error: Floats  # of each estimate, shape (num_nodes,); zeros where γ is exact
    num_draws: int  # behind an estimate; 0 where γ is exact
    pilot_counts: Ints  # how many of the first draws, which serve `floor_bound`, hold each node, shape (num_nodes,)

    @classmethod
    def from_formula(cls, sampler: AnySampler, prob: Floats) -> Priors:
        """Exact priors."""
        return cls(sampler, prob, np.zeros_like(prob), 0, np.zeros(len(prob), dtype=np.int64))

    @classmethod
    def from_counts(cls, sampler: AnySampler, counts: Ints, pilot_counts: Ints, num_draws: int) -> Priors:
        """Priors estimated by how often each node was drawn, in all draws and in the pilot."""
        mean = (counts + 0.5) / (num_draws + 1)
        standard_error = np.sqrt(mean * (1 - mean) / (num_draws + 2))
        return cls(sampler, counts / num_draws, standard_error, num_draws, pilot_counts)

    @property
    def is_exact(self) -> bool:
        """Whether γ comes from a closed form."""
        return self.num_draws == 0

    @property
    def odds(self) -> Floats:
        """η_i = γ_i(1)/γ_i(0); infinite where γ is 1."""
        with np.errstate(divide="ignore"):
            return self.prob / (1.0 - self.prob)

    @cached_property
    def floor(self) -> PriorFloor:
        """What the sampler alone gives away (Prop. 1): exact, or a bound that holds with confidence 0.95."""
        if self.is_exact:
            return PriorFloor(self.floor_estimate.left, self.floor_estimate.right)
        return floor_bound(self._counts, self.pilot_counts, self.num_draws)

    @property
    def floor_estimate(self) -> EpsilonPair[float]:
        """The extremes of the estimated log-odds: too high on average unless the priors are exact, so no bound."""
        return prior_floor(self.odds)

    def confidence_bounds(self, level: float = DEFAULT_LEVEL) -> tuple[Floats, Floats]:
        """Lower and upper bounds of γ, each of shape (num_nodes,), that hold for all nodes together.

        Clopper–Pearson bounds, Bonferroni over nodes and sides; both are γ itself where it is exact. For statements
        that must not take an estimated prior as known.
        """
        if self.is_exact:
            return self.prob, self.prob
        return clopper_pearson(self._counts, self.num_draws, (1 - level) / (2 * len(self.prob)))

    @property
    def _counts(self) -> Ints:
        return np.rint(self.prob * self.num_draws).astype(np.int64)

    def to_frame(self) -> pd.DataFrame:
        """A table with one row per node: `node`, `prior_prob`, `standard_error`, `num_draws`, `num_pilot`."""
        import pandas as pd

        columns = (np.arange(len(self.prob)), self.prob, self.standard_error, self.num_draws, self.pilot_counts)
        return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))

    @classmethod
    def from_frame(cls, sampler: AnySampler, frame: pd.DataFrame) -> Priors:
        """Priors from a table that `to_frame` made."""
        try:
            prob, standard_error = (frame[name].to_numpy(dtype=np.float64) for name in COLUMNS[1:3])
            node, num_draws, pilot_counts = (frame[COLUMNS[i]].to_numpy(dtype=np.int64) for i in (0, 3, 4))
        except KeyError as missing:
            columns = ", ".join(COLUMNS)
            raise InputError(f"a table of priors must have the columns {columns}, got no {missing.args[0]}") from None
        except (TypeError, ValueError) as failure:
            raise InputError(f"a table of priors must hold numbers: {failure}") from failure
        if len(prob) == 0 or not np.array_equal(node, np.arange(len(prob))):
            raise InputError("a table of priors must list the nodes 0, 1, 2, … in this order")
        if not ((prob >= 0) & (prob <= 1)).all():
            raise InputError("prior_prob must be in [0, 1] in a table of priors")
        if (num_draws != num_draws[0]).any() or num_draws[0] < 0:
            raise InputError("num_draws must be the same whole number for all nodes in a table of priors")
        num_pilot = pilot_size(int(num_draws[0]))
        if not ((pilot_counts >= 0) & (pilot_counts <= num_pilot)).all():
            raise InputError(f"num_pilot must be between 0 and {num_pilot} in a table of priors")
        return cls(sampler, prob, standard_error, int(num_draws[0]), pilot_counts)

    def __repr__(self) -> str:
        estimated = f"from {self.num_draws:,} draws, standard error up to {self.standard_error.max():.2g}"
        source = "exact" if self.is_exact else estimated
        return (
            f"Priors(sampler={sampler_name(self.sampler)}, {len(self.prob):,} nodes, "
            f"{self.prob.min():.4g} to {self.prob.max():.4g}, {source})"
        )


def sampler_distance(sampler: AnySampler, graph: Graph) -> int:
    """An upper bound on `privacy.membership_distance` of a sampler on a graph: D, by which ε-MDP becomes D·ε-MP.

    A sampler that has a method `membership_distance(graph)` is believed; of any other, all memberships may change with
    one, so that the bound is the number of nodes.

    >>> from bmpaudit.samplers import Bernoulli, Uniform
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], [[1.0]] * 3, [0, 1, 0])
    >>> sampler_distance(Bernoulli(0.5), graph), sampler_distance(Uniform(0.5), graph)
    (1, 2)
    """
    own = getattr(sampler, "membership_distance", None)
    if own is None:
        return graph.num_nodes
    distance = own(graph)
    is_whole = isinstance(distance, (int, np.integer)) and not isinstance(distance, bool)
    if not is_whole or not 1 <= distance <= graph.num_nodes:
        raise InputError(
            f"membership_distance of sampler {sampler_name(sampler)} must be in [1, {graph.num_nodes}], got {distance}"
        )
    return int(distance)


DEFAULT_DRAWS = 100_000
MIN_DRAWS = 400

# C++ gets the work in parts of about this many membership flags, so that Ctrl-C takes effect between them.
_FLAGS_AT_ONCE = 20_000_000


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
    if not isinstance(sampler, NativeSampler):
        first, second = (sample_nodes(sampler, graph, stream(seed, 0, Purpose.PRIOR)) for _ in range(2))
        if not np.array_equal(first, second):
            raise InputError(
                f"sampler {sampler_name(sampler)} must take all its randomness from rng, "
                "got two different samples from equal generators"
            )
    if exact and isinstance(sampler, ExactPriors):
        return Priors.from_formula(sampler, exact_priors(sampler, graph))
    # Counts by number of draws, where they may be the pilot's: at the powers of two.
    counts, counts_at = np.zeros(graph.num_nodes, dtype=np.int64), {0: np.zeros(graph.num_nodes, dtype=np.int64)}
    done = 0
    if isinstance(sampler, NativeSampler):
        kernel, part = sampler.kernel(graph), max(1, _FLAGS_AT_ONCE // graph.num_nodes)
        for stop in (pilot_size(num_draws), num_draws):
            while done < stop:
                size = min(part, stop - done)
                counts += kernel.counts(seed, Purpose.PRIOR, done, size, threads)
                done += size
                progress(done)
            counts_at[done] = counts.copy()
    else:
        end = clock() + (seconds or math.inf)
        while done < num_draws and (done < MIN_DRAWS or clock() < end):
            counts[sample_nodes(sampler, graph, stream(seed, done, Purpose.PRIOR))] += 1
            done += 1
            progress(done)
            if done & (done - 1) == 0:
                counts_at[done] = counts.copy()
    return Priors.from_counts(sampler, counts, counts_at[pilot_size(done)], done)


def exact_priors(sampler: ExactPriors, graph: Graph) -> Floats:
    """The sampler's own formula for γ, which must give one probability for each node."""
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
        place = describe_node(node, graph.node_names)
        raise InputError(f"exact_priors of sampler {name} must be in [0, 1], got {prob[node]} for {place}")
    return prob
