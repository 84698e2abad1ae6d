"""Making "99 %" mean 99 %: posterior log-odds recalibrated on held-out models, and a check of how well that worked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.errors import InputError
from bmpaudit.plain import plain

NUM_BINS = 100
SMALLEST_BIN = 20
EDGES = (0.0, 0.001, 0.01, 0.05, *(k / 10 for k in range(1, 10)), 0.95, 0.99, 0.999, 1.0)


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A non-decreasing map from an attack's log-odds to log-odds that can be believed.

    Isotonic regression of membership on the log-odds, pooled over nodes: challenges are sorted and divided into bins,
    finer towards both ends; each bin holds membership with frequency (C + 1/2)/(n + 1); neighbours in the wrong order
    are pooled (pool adjacent violators) until frequencies rise; between the bins' mean log-odds the map is linear.

    Formal guarantee: the map is non-decreasing and bounded, so it keeps the order of any two challenges (or makes them
    equal). Beyond the data it is constant. However extreme the score, it never promises more than the most extreme
    challenges have kept: odds of at most 2 n + 1 where n challenges were all alike. This errs on the safe side.

    What it does not promise: that a single node's odds are right. They are right on average over nodes and models of
    equal score.

    Attributes:
        scores: Mean log-odds of each bin as the attack gave them, ascending, shape (B,).
        log_odds: Log-odds that they stand for, non-decreasing, shape (B,).
        num_models: Number of models that it was learnt on.
        num_challenges: Number of challenges (model, node) that it was learnt on.
    """

    scores: Floats
    log_odds: Floats
    num_models: int
    num_challenges: int

    def __call__(self, log_odds: Floats) -> Floats:
        """Recalibrated log-odds, of the same shape."""
        values = np.asarray(log_odds, dtype=np.float64)
        if np.isnan(values).any():
            raise InputError("log-odds must not be NaN")
        return np.interp(values, self.scores, self.log_odds)

    def __str__(self) -> str:
        low, high = scipy.special.expit(self.log_odds[[0, -1]])
        return (
            f"recalibrated on {self.num_challenges:,} challenges of {self.num_models:,} models: "
            f"probabilities from {low:.2g} to {high:.5g}"
        )


def recalibrate(log_odds: Floats, memberships: Flags) -> Recalibration:
    """Learns a recalibration from held-out models.

    Args:
        log_odds: Posterior log-odds of models that are not in their own fit, shape (J, K); ±∞ is allowed.
        memberships: The truth, shape (J, K).

    Raises:
        InputError: if shapes differ, there is no member or no non-member, log-odds are NaN or all the same.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(50, 400))
    >>> members = rng.random(truth.shape) < scipy.special.expit(truth)
    >>> too_sure = recalibrate(3 * truth, members)
    >>> too_sure(np.array([-3.0, 3.0])).round() + 0.0
    array([-1.,  1.])
    """
    values, truth = _checked(log_odds, memberships)
    order = np.argsort(values, axis=None, kind="stable")
    ordered = np.clip(values.ravel()[order], -1e300, 1e300)
    if ordered[0] == ordered[-1]:
        raise InputError(f"log-odds must differ, got {ordered[0]:g} for all challenges")
    is_member = truth.ravel()[order]
    edges = _bin_edges(ordered)
    size = np.diff(edges).astype(np.float64)
    members = np.add.reduceat(is_member.astype(np.float64), edges[:-1])
    means = np.add.reduceat(ordered / size.repeat(np.diff(edges)), edges[:-1])
    size, members, block = _pool(size, members)
    calibrated = np.log(members + 0.5) - np.log(size - members + 0.5)
    return Recalibration(means, calibrated[block], len(values), len(ordered))


def _bin_edges(ordered: Floats) -> Ints:
    """Where bins begin and end: of equal size in the middle, half as large step by step towards the ends."""
    num = len(ordered)
    equal = np.linspace(0, num, NUM_BINS + 1)
    tail = np.geomspace(SMALLEST_BIN, num / NUM_BINS, 24) if num > SMALLEST_BIN * NUM_BINS else np.zeros(0)
    edges = np.unique(np.concatenate([equal, tail, num - tail]).astype(np.int64))
    # Equal scores stay in one bin.
    inner = np.searchsorted(ordered, ordered[edges[1:-1]], side="left")
    return np.unique(np.concatenate([[0], inner, [num]]))


def _pool(size: Floats, members: Floats) -> tuple[Floats, Floats, Ints]:
    """Pools neighbouring bins until frequencies rise: sizes and members of the blocks, and the block of each bin."""
    blocks: list[list[float]] = []  # size, members, number of bins
    for n, c in zip(size.tolist(), members.tolist(), strict=True):
        blocks.append([n, c, 1])
        while len(blocks) > 1 and _frequency(blocks[-2]) >= _frequency(blocks[-1]):
            last = blocks.pop()
            blocks[-1] = [mine + its for mine, its in zip(blocks[-1], last, strict=True)]
    sizes, counts, bins = np.array(blocks).T
    return sizes, counts, np.repeat(np.arange(len(blocks)), bins.astype(np.int64))


def _frequency(block: list[float]) -> float:
    return (block[1] + 0.5) / (block[0] + 1)


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often challenges of a stated probability are members: the data of a reliability diagram.

    Attributes:
        edges: Edges of the bins of stated probability, shape (B + 1,).
        num_challenges: Number of challenges in each bin, shape (B,).
        stated: Mean stated probability in each bin, shape (B,); NaN in empty bins.
        observed: Share of members in each bin, shape (B,); NaN in empty bins.
    """

    edges: Floats
    num_challenges: Ints
    stated: Floats
    observed: Floats

    @property
    def expected_calibration_error(self) -> float:
        """Mean |stated - observed| over challenges."""
        is_filled = self.num_challenges > 0
        gaps = np.abs(self.stated - self.observed)[is_filled]
        return float(np.average(gaps, weights=self.num_challenges[is_filled]))

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        values: dict[str, Any] = plain(
            {
                "edges": self.edges,
                "num_challenges": self.num_challenges,
                "stated": self.stated,
                "observed": self.observed,
                "expected_calibration_error": self.expected_calibration_error,
            }
        )
        return values

    def __str__(self) -> str:
        lines = ["  stated    observed  challenges"]
        for stated, observed, number in zip(self.stated, self.observed, self.num_challenges, strict=True):
            if number:
                lines.append(f"  {stated:8.4f}  {observed:8.4f}  {number:,}")
        return "\n".join([f"expected calibration error {self.expected_calibration_error:.4f}", *lines])


def reliability(log_odds: Floats, memberships: Flags) -> Reliability:
    """Compares stated probabilities with the truth, on models that nothing was learnt from.

    Args:
        log_odds: Posterior log-odds, shape (J, K).
        memberships: The truth, shape (J, K).

    Raises:
        InputError: if shapes differ, there is no member or no non-member, or log-odds are NaN.
    """
    values, truth = _checked(log_odds, memberships)
    stated = scipy.special.expit(values).ravel()
    edges = np.array(EDGES)
    place = np.clip(np.searchsorted(edges, stated, side="right") - 1, 0, len(edges) - 2)
    number = np.bincount(place, minlength=len(edges) - 1)
    with np.errstate(invalid="ignore"):
        return Reliability(
            edges,
            number.astype(np.int64),
            np.bincount(place, stated, len(edges) - 1) / number,
            np.bincount(place, truth.ravel(), len(edges) - 1) / number,
        )


def _checked(log_odds: Floats, memberships: Flags) -> tuple[Floats, Flags]:
    values, truth = np.asarray(log_odds, dtype=np.float64), np.asarray(memberships, dtype=np.bool_)
    if values.ndim != 2 or values.shape != truth.shape:
        raise InputError(
            f"log-odds and memberships must have one shape (num_models, num_nodes), got {values.shape} and "
            f"{truth.shape}"
        )
    if np.isnan(values).any():
        raise InputError("log-odds must not be NaN")
    if truth.all() or not truth.any():
        raise InputError(
            f"memberships must hold both sides, got no {'non-member' if truth.size and truth.all() else 'member'}"
        )
    return values, truth
