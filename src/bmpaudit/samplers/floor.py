"""The floor of Prop. 1 as a confidence bound: what the sampler alone gives away, whatever is trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from bmpaudit.arrays import Floats, Ints
from bmpaudit.errors import InputError

DEFAULT_LEVEL = 0.95

# Nodes within this many standard deviations of the pilot's extreme are candidates; any choice gives a valid bound.
_CANDIDATE_WIDTH = 3.0


@dataclass(frozen=True)
class PriorFloor:
    """Prop. 1: no training algorithm on this sampler is (ε_L, ε_R)-BMP below this pair.

    Attributes:
        left: -log η_min, or a lower confidence bound of it.
        right: log η_max, or a lower confidence bound of it.
        level: Confidence that both bounds hold together; None where the priors are exact, and so is the floor.
    """

    left: float
    right: float
    level: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the floor follows from exact priors."""
        return self.level is None


def pilot_size(num_draws: int) -> int:
    """The number of pilot draws among `num_draws`: the largest power of two that is at most a quarter of them.

    Being a power of two, it can be kept while drawing, before the final number of draws is known.

    >>> pilot_size(100_000), pilot_size(4), pilot_size(3)
    (16384, 1, 0)
    """
    return 1 << (num_draws // 4).bit_length() - 1 if num_draws >= 4 else 0


def floor_bound(counts: Ints, pilot_counts: Ints, num_draws: int, level: float = DEFAULT_LEVEL) -> PriorFloor:
    """Lower confidence bounds of -log η_min and log η_max from how often each node was drawn.

    The extreme of many frequencies is biased: the rarest of N nodes in a finite number of draws is rarer than the
    rarest node is. So the draws are split. The first ones, the pilot, choose candidates: the nodes within three
    standard deviations of the most extreme count. The other draws bound each candidate's prior by a one-sided
    Clopper–Pearson bound, Bonferroni over the candidates, and the best of them bounds the extreme of all nodes. As the
    candidates depend on the pilot alone, the bound holds exactly at its level, whatever the dependence between nodes.
    Each side gets half of 1 - level, so both hold together.

    A single candidate would need no correction, and all nodes as candidates no pilot: both give looser bounds, the
    first where many nodes share the extreme, the second where one node stands apart.

    Args:
        counts: Number of draws that hold each node, shape (num_nodes,).
        pilot_counts: The same over the first `pilot_size(num_draws)` draws.
        num_draws: Number of draws.
        level: Confidence that both bounds hold, in (0, 1).
    """
    check_level(level)
    error_prob = (1 - level) / 2
    num_pilot = pilot_size(num_draws)
    num_rest, rest = num_draws - num_pilot, counts - pilot_counts
    rarest = _bound_smallest(pilot_counts, num_pilot, rest, num_rest, error_prob)
    rarest_out = _bound_smallest(num_pilot - pilot_counts, num_pilot, num_rest - rest, num_rest, error_prob)
    return PriorFloor(left=-_logit(rarest), right=-_logit(rarest_out), level=level)


def _bound_smallest(pilot: Ints, num_pilot: int, rest: Ints, num_rest: int, error_prob: float) -> float:
    """An upper confidence bound of the smallest probability."""
    least = int(pilot.min())
    spread = np.sqrt(least * (1 - least / max(num_pilot, 1)) + 1)
    candidates = rest[pilot <= least + _CANDIDATE_WIDTH * spread]
    _, high = clopper_pearson(candidates.min(), num_rest, error_prob / len(candidates))
    return float(high)


def clopper_pearson(successes: Ints | int, num_trials: int, error_prob: float) -> tuple[Floats, Floats]:
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


def check_level(level: float) -> None:
    """Raises `InputError` unless the confidence level lies strictly between 0 and 1."""
    if not 0 < level < 1:
        raise InputError(f"level must be in (0, 1), got level={level}")


def _logit(prob: float) -> float:
    return float(scipy.special.logit(prob))
