"""All that a recalibration has to know of the scores of many models: how many fall where, and how many are members."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.attack.student_features import evenly_spaced
from bmpaudit.errors import InputError

MAX_CHALLENGES = 20_000_000
"""Beyond that many, evenly spaced nodes are looked at."""

NUM_BINS = 100
SMALLEST_BIN = 20
NUM_TAIL_BINS = 24
LARGEST_SCORE = 1e30  # in place of infinity

KNOT_SHARES = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 5e-4, 2e-4, 1e-4)
"""Shares of the challenges above, and below, each knot."""

MIN_BEYOND_KNOT = 50  # challenges
MAX_CHUNK = 2**22  # challenges looked at once


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
    def of(cls, scores: npt.NDArray[np.floating[Any]], memberships: Flags) -> ScoreBins:
        """Bins of scores, shape (J, K) as memberships; ±∞ is allowed.

        Raises:
            InputError: if all scores are the same.
        """
        num_models, num_nodes = scores.shape
        if scores.size > MAX_CHALLENGES:
            nodes = evenly_spaced(np.arange(num_nodes), max(1, MAX_CHALLENGES // num_models))
            scores, memberships = scores[:, nodes], memberships[:, nodes]
        ordered = np.clip(np.sort(scores, axis=None), -LARGEST_SCORE, LARGEST_SCORE)
        if ordered[0] == ordered[-1]:
            raise InputError(f"log-odds must differ, got {ordered[0]:g} for all challenges")
        edges = _bin_edges(ordered)
        size = np.diff(edges)
        mean = np.add.reduceat(ordered / size.repeat(size).astype(np.float64), edges[:-1])
        first_of_next = ordered[edges[1:-1]]
        in_bin, members = np.zeros((2, num_models, len(size)), dtype=np.int64)
        for rows in row_chunks(*scores.shape):
            place = np.searchsorted(first_of_next, scores[rows], side="right")
            in_bin[rows] = count_by_row(place, len(size))
            members[rows] = count_by_row(place, len(size), memberships[rows])
        return cls(mean, _knots(ordered), in_bin, members)

    @property
    def num_models(self) -> int:
        """J."""
        return len(self.num_challenges)


def row_chunks(num_rows: int, num_columns: int) -> Iterator[slice]:
    """Parts of the rows of a large array, few enough to work on at once."""
    step = max(1, MAX_CHUNK // max(num_columns, 1))
    for first in range(0, num_rows, step):
        yield slice(first, min(first + step, num_rows))


def count_by_row(place: npt.NDArray[np.intp], num_places: int, is_counted: Flags | None = None) -> Ints:
    """How often each place from 0 to `num_places` - 1 occurs in each row, shape (rows, num_places)."""
    flat = place + num_places * np.arange(len(place))[:, None]
    counted = flat.ravel() if is_counted is None else flat[is_counted]
    return np.bincount(counted, minlength=len(place) * num_places).reshape(len(place), num_places)


def _bin_edges(ordered: npt.NDArray[np.floating[Any]]) -> Ints:
    """Where bins begin and end: of equal size in the middle, half as large step by step towards the ends."""
    num = len(ordered)
    equal = np.linspace(0, num, NUM_BINS + 1)
    has_tails = num > SMALLEST_BIN * NUM_BINS
    tail = np.geomspace(SMALLEST_BIN, num / NUM_BINS, NUM_TAIL_BINS) if has_tails else np.zeros(0)
    edges = np.unique(np.concatenate([equal, tail, num - tail]).astype(np.int64))
    # Equal scores stay in one bin.
    inner = np.searchsorted(ordered, ordered[edges[1:-1]], side="left")
    return np.unique(np.concatenate([[0], inner, [num]]))


def _knots(ordered: npt.NDArray[np.floating[Any]]) -> Floats:
    last = len(ordered) - 1
    beyond = [int(share * last) for share in KNOT_SHARES if share * len(ordered) >= MIN_BEYOND_KNOT]
    places = [0, *beyond, *(last - number for number in beyond), last]
    return np.unique(ordered[places].astype(np.float64))
