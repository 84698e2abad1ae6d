"""All that a recalibration has to know of the scores of many models: how many fall where, and how many are members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.arrays import Flags, Floats, Ints, as_bytes
from bmpaudit.checks import thread_count
from bmpaudit.errors import InputError
from bmpaudit.tables import evenly_spaced

MAX_CHALLENGES = 20_000_000
"""Beyond that many, evenly spaced nodes are looked at."""

NUM_BINS = 100
SMALLEST_BIN = 20
NUM_TAIL_BINS = 24
LARGEST_SCORE = 1e30  # in place of infinity

KNOT_SHARES = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 5e-4, 2e-4, 1e-4)
"""Shares of the challenges above, and below, each knot."""

MIN_BEYOND_KNOT = 50  # challenges
AnyFloats: TypeAlias = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """Scores of J models in B bins: of equal size in the middle, ever smaller towards both ends.

    Where a bin begins depends on all scores and on no membership.

    Attributes:
        mean_score: Mean score in each bin, ascending, shape (B,).
        knots: Scores between which a map is linear, ascending.
        num_challenges: Number of challenges of each model in each bin, shape (J, B).
        num_members: Number of members among them, shape (J, B).
    """

    mean_score: Floats
    knots: Floats
    num_challenges: Ints
    num_members: Ints

    @classmethod
    def of(cls, scores: AnyFloats, memberships: Flags, *, num_threads: int | None = None) -> ScoreBins:
        """Bins of scores, shape (J, K) as memberships; ±∞ is allowed.

        Raises:
            InputError: if all scores are the same.
        """
        num_models, num_nodes = scores.shape
        nodes = looked_at(num_models, num_nodes)
        if len(nodes) < num_nodes:
            scores, memberships = scores[:, nodes], memberships[:, nodes]
        scores = np.ascontiguousarray(scores)
        ordered = scores.flatten()
        _native.sort_numbers(ordered)
        np.clip(ordered, -LARGEST_SCORE, LARGEST_SCORE, out=ordered)
        if ordered[0] == ordered[-1]:
            raise InputError(f"log-odds must differ, got {ordered[0]:g} for all challenges")
        edges = _bin_edges(ordered)
        size = np.diff(edges)
        mean = np.add.reduceat(ordered, edges[:-1], dtype=np.float64) / size
        in_bin, members = np.zeros((2, num_models, len(size)), dtype=np.int64)
        _native.count_by_threshold(
            scores, as_bytes(memberships), ordered[edges[1:-1]], thread_count(num_threads), in_bin, members, None
        )
        return cls(mean, _knots(ordered), in_bin, members)

    @property
    def num_models(self) -> int:
        """J."""
        return len(self.num_challenges)


def looked_at(num_models: int, num_nodes: int) -> Ints:
    """Positions of the nodes whose scores go into bins."""
    return evenly_spaced(np.arange(num_nodes), max(1, MAX_CHALLENGES // num_models))


def _bin_edges(ordered: AnyFloats) -> Ints:
    """Where bins begin and end: of equal size in the middle, half as large step by step towards the ends."""
    num = len(ordered)
    equal = np.linspace(0, num, NUM_BINS + 1)
    has_tails = num > SMALLEST_BIN * NUM_BINS
    tail = np.geomspace(SMALLEST_BIN, num / NUM_BINS, NUM_TAIL_BINS) if has_tails else np.zeros(0)
    edges = np.unique(np.concatenate([equal, tail, num - tail]).astype(np.int64))
    # Equal scores stay in one bin.
    inner = np.searchsorted(ordered, ordered[edges[1:-1]], side="left")
    return np.unique(np.concatenate([[0], inner, [num]]))


def _knots(ordered: AnyFloats) -> Floats:
    last = len(ordered) - 1
    beyond = [int(share * last) for share in KNOT_SHARES if share * len(ordered) >= MIN_BEYOND_KNOT]
    places = [0, *beyond, *(last - number for number in beyond), last]
    return np.unique(ordered[places].astype(np.float64))
