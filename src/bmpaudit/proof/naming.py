"""Which nodes of which models are named, and how that moves with the recalibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native
from bmpaudit.arrays import Flags, Floats, Ints, as_bytes
from bmpaudit.checks import thread_count
from bmpaudit.proof.calibration import LearntMap
from bmpaudit.proof.score_bins import ScoreBins

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
    log_odds: npt.NDArray[np.floating[Any]], memberships: Flags, precision: Floats, at_risk: float
) -> BothSides:
    """Counts what calibrated log-odds name; the map that made them is taken as given.

    Args:
        log_odds: Calibrated log-odds, shape (J, K).
        memberships: The truth, shape (J, K).
        precision: Posterior probabilities from which on a node is named, ascending, shape (P,).
        at_risk: Posterior probability of the counts by node.
    """
    counter = NamingCounter(log_odds.shape, precision, at_risk, None, log_odds.dtype, thread_count(None))
    counter.add(log_odds, memberships, slice(0, log_odds.shape[1]))
    return counter.result()


class NamingCounter:
    """Counts what is named of J models, a block of nodes at a time.

    Args:
        shape: (J, K).
        precision: Posterior probabilities from which on a node is named, ascending, shape (P,).
        at_risk: Posterior probability of the counts by node.
        pulls: How each model has moved the map that makes the log-odds; if None, the map is taken as given.
        dtype: Type of the log-odds.
        num_threads: Number of threads.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        precision: Floats,
        at_risk: float,
        pulls: MapPulls | None,
        dtype: np.dtype[Any],
        num_threads: int,
    ) -> None:
        num_models, num_nodes = shape
        nothing = np.zeros((num_models, len(precision)))
        self._precision, self._at_risk, self._num_threads = precision, at_risk, num_threads
        self._pulls = MapPulls(nothing, nothing) if pulls is None else pulls
        # As far as the map may well be off: where numbers named bend, that is what counts.
        self._steps = [
            np.maximum(MIN_STEP, 2 * pull.std(axis=0) / math.sqrt(num_models))
            for pull in (self._pulls.members, self._pulls.non_members)
        ]
        wanted = [
            (scipy.special.logit(precision) + np.stack([-step, 0 * step, step])).astype(dtype) for step in self._steps
        ]
        # A non-member is named up to minus the log-odds wanted: not from the next larger number on.
        self._from = [wanted[0], np.nextafter(-wanted[1], dtype.type(np.inf))]
        self._thresholds = np.unique(np.concatenate(self._from, axis=None))
        self._reached, self._members = np.zeros((2, num_models, len(self._thresholds) + 1), dtype=np.int64)
        self._risk = float(dtype.type(scipy.special.logit(at_risk)))
        self._nodes = np.zeros((4, num_nodes), dtype=np.int64)
        self._num_in = np.zeros(num_nodes, dtype=np.int64)

    def add(self, log_odds: npt.NDArray[np.floating[Any]], memberships: Flags, nodes: slice) -> None:
        """Counts calibrated log-odds and memberships of some nodes, both of shape (J, number of nodes)."""
        values, flags = np.ascontiguousarray(log_odds), as_bytes(memberships)
        _native.count_by_threshold(
            values, flags, self._thresholds, self._num_threads, self._reached, self._members, None
        )
        named = np.zeros((4, values.shape[1]), dtype=np.int64)
        _native.count_named_nodes(values, flags, self._risk, -self._risk, self._num_threads, named)
        self._nodes[:, nodes] = named
        self._num_in[nodes] = np.count_nonzero(memberships, axis=0)

    def result(self) -> BothSides:
        """What is named, after all nodes were added."""
        # Values at place p have reached the first p thresholds.
        reached, members = (
            counts[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.float64) for counts in (self._reached, self._members)
        )
        from_members, from_non_members = (np.searchsorted(self._thresholds, each) + 1 for each in self._from)
        in_named, in_wrong, out_wrong, out_named = self._nodes
        num_models = len(reached)
        return BothSides(
            members=self._side(
                [reached[:, at] for at in from_members],
                [members[:, at] for at in from_members],
                self._pulls.members,
                self._steps[0],
                (self._num_in, in_named, in_wrong),
            ),
            non_members=self._side(
                [reached[:, :1] - reached[:, at] for at in from_non_members],
                [(reached - members)[:, :1] - (reached - members)[:, at] for at in from_non_members],
                self._pulls.non_members,
                self._steps[1],
                (num_models - self._num_in, out_named, out_wrong),
            ),
        )

    def _side(
        self,
        named: list[Floats],
        correct: list[Floats],
        pulls: Floats,
        step: Floats,
        nodes: tuple[Ints, Ints, Ints],
    ) -> NamedNodes:
        """One side, from what is named and correct at lower log-odds, at those wanted, and at higher ones."""
        named_density, correct_density = (
            (lower - upper).mean(axis=0) / (2 * step) for lower, _, upper in (named, correct)
        )
        node_models, node_named, node_wrong = nodes
        return NamedNodes(
            precision=self._precision,
            named=named[1],
            correct=correct[1],
            named_effect=pulls * named_density,
            correct_effect=pulls * correct_density,
            at_risk=self._at_risk,
            node_models=node_models,
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
