"""Which nodes of which models are named, and how that moves with the recalibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.proof.calibration import LearntMap
from bmpaudit.proof.score_bins import ScoreBins, count_by_row, row_chunks

MIN_STEP = 0.25
"""Smallest distance in log-odds over which it is counted how many more nodes a lower threshold would name."""


@dataclass(frozen=True, eq=False)
class NamedNodes:
    """What is named of J models about K nodes, on one side.

    Attributes:
        precision: Posterior probabilities from which on a node is named, ascending, shape (P,).
        named: Number of nodes named in each model, shape (J, P).
        correct: Number of those that are right, shape (J, P).
        named_effect: What each model has done to the mean of `named` through the recalibration, times J, shape (J, P);
            0 on average, and everywhere if the recalibration is taken as given.
        correct_effect: The same for `correct`.
        at_risk: Posterior probability of the counts by node.
        node_models: Number of models for which it is right to name the node, shape (K,).
        node_named: Number of these that name it at `at_risk`, shape (K,).
        node_wrong: Number of all others that name it at `at_risk`, shape (K,).
    """

    precision: Floats
    named: Floats
    correct: Floats
    named_effect: Floats
    correct_effect: Floats
    at_risk: float
    node_models: Ints
    node_named: Ints
    node_wrong: Ints


@dataclass(frozen=True, eq=False)
class BothSides:
    """What is named as members and as non-members."""

    members: NamedNodes
    non_members: NamedNodes


def count_named(
    log_odds: npt.NDArray[np.floating[Any]],
    memberships: Flags,
    precision: Floats,
    at_risk: float,
    pulls: MapPulls | None = None,
) -> BothSides:
    """Counts what calibrated log-odds name.

    Args:
        log_odds: Calibrated log-odds, shape (J, K).
        memberships: The truth, shape (J, K).
        precision: Posterior probabilities from which on a node is named, ascending, shape (P,).
        at_risk: Posterior probability of the counts by node.
        pulls: How each model has moved the map that made the log-odds; if None, the map is taken as given.
    """
    nothing = np.zeros((len(log_odds), len(precision)))
    at_members, at_non_members = (nothing, nothing) if pulls is None else (pulls.members, pulls.non_members)
    return BothSides(
        _count_side(log_odds, memberships, precision, at_risk, at_members, is_member=True),
        _count_side(log_odds, memberships, precision, at_risk, at_non_members, is_member=False),
    )


def _count_side(
    log_odds: npt.NDArray[np.floating[Any]],
    memberships: Flags,
    precision: Floats,
    at_risk: float,
    pulls: Floats,
    *,
    is_member: bool,
) -> NamedNodes:
    num_models, num_nodes = log_odds.shape
    # As far as the map may well be off: where numbers named bend, that is what counts.
    step = np.maximum(MIN_STEP, 2 * pulls.std(axis=0) / math.sqrt(num_models))
    wanted = (scipy.special.logit(precision) + np.stack([-step, 0 * step, step])).astype(log_odds.dtype)
    thresholds = np.unique(wanted)
    num_places = len(thresholds) + 1
    reached, correct = np.zeros((2, num_models, num_places), dtype=np.int64)
    node_named, node_wrong = np.zeros((2, num_nodes), dtype=np.int64)
    risk = log_odds.dtype.type(scipy.special.logit(at_risk))
    for rows in row_chunks(num_models, num_nodes):
        values = log_odds[rows] if is_member else -log_odds[rows]
        is_right = memberships[rows] if is_member else ~memberships[rows]
        place = np.searchsorted(thresholds, values, side="right")
        reached[rows] = count_by_row(place, num_places)
        correct[rows] = count_by_row(place, num_places, is_right)
        is_named = values >= risk
        node_named += (is_named & is_right).sum(axis=0)
        node_wrong += (is_named & ~is_right).sum(axis=0)
    # Values at place p have reached the first p thresholds.
    at = np.searchsorted(thresholds, wanted) + 1
    lower, named, upper = (reached[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.float64)[:, each] for each in at)
    lower_correct, named_correct, upper_correct = (
        correct[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.float64)[:, each] for each in at
    )
    num_in = memberships.sum(axis=0, dtype=np.int64)
    named_density = (lower - upper).mean(axis=0) / (2 * step)
    correct_density = (lower_correct - upper_correct).mean(axis=0) / (2 * step)
    return NamedNodes(
        precision=precision,
        named=named,
        correct=named_correct,
        named_effect=pulls * named_density,
        correct_effect=pulls * correct_density,
        at_risk=at_risk,
        node_models=num_in if is_member else num_models - num_in,
        node_named=node_named,
        node_wrong=node_wrong,
    )


@dataclass(frozen=True, eq=False)
class MapPulls:
    """How far each of J models has moved a map at the thresholds, towards naming more, times J; 0 on average.

    The regression is an M-estimate, so to first order the log-odds that it gives to a score move by the sum over models
    of what the model's residuals pull them by. The mean number named moves by that, times the number of nodes per unit
    of log-odds at the threshold.

    Attributes:
        members: At the thresholds from which on members are named, shape (J, P).
        non_members: At those of non-members, shape (J, P).
    """

    members: Floats
    non_members: Floats


def map_pulls(learnt: LearntMap, bins: ScoreBins, precision: Floats) -> MapPulls:
    """What each model in the bins has done to the map learnt on all of them."""
    prob = scipy.special.expit(learnt.regression(bins.mean_score))
    residuals = bins.num_members - bins.num_challenges * prob
    logits = scipy.special.logit(precision)

    def pulls(sign: float) -> Floats:
        thresholds = learnt.regression.inverse(sign * logits)
        moves = sign * residuals @ learnt.regression.sensitivity(thresholds, bins.mean_score).T
        result: Floats = bins.num_models * (moves - moves.mean(axis=0))
        return result

    return MapPulls(pulls(1.0), pulls(-1.0))
