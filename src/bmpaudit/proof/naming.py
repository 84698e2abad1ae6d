"""Which nodes of which models are named, from posterior log-odds about models that are not in their own fit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native
from bmpaudit.attack.challenges import NUM_FOLDS, BlockJob, map_blocks
from bmpaudit.attack.evidence import Evidence, can_be_attacked
from bmpaudit.attack.performance import RocWithinModels, roc_within_models
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof.calibration import (
    LearntMap,
    Recalibration,
    ReliabilityCounter,
    ScoreBins,
    constant_map,
    looked_at,
    recalibrate_bins,
)
from bmpaudit.util.errors import thread_count
from bmpaudit.util.matrices import ScratchMatrix, columns, model_blocks, node_blocks
from bmpaudit.util.values import Flags, Floats, Floats32, Ints, as_bytes


@dataclass(frozen=True, eq=False)
class Band:
    """Means over models with confidence limits.

    Attributes:
        mean: Means, shape (P,).
        low: Lower limits, shape (P,).
        high: Upper limits, shape (P,).
    """

    mean: Floats
    low: Floats
    high: Floats

    @property
    def half_width(self) -> Floats:
        """Half of the distance between the limits, shape (P,)."""
        return (self.high - self.low) / 2

    def clipped(self, lowest: float, highest: float) -> Band:
        """The same with limits held to what is possible."""
        return Band(self.mean, np.maximum(self.low, lowest), np.minimum(self.high, highest))


def band(per_model: Floats, level: float) -> Band:
    """Limits of the mean of independent models by Student's t after Hall's transformation, which undoes the skewness.

    With T = √J (mean - μ)/s and a = skewness/√J, the law of T + a T²/3 + a² T³/27 + a/6 is that of Student's t up to
    terms in 1/J, where that of T itself is only up to 1/√J (Hall 1992, On the removal of skewness by transformation).
    The cubic rises with T, so limits are found by inverting it. Each side is missed about equally often.

    Args:
        per_model: Values of J models, shape (J, P), at least two.
        level: Confidence level.
    """
    num_models = len(per_model)
    mean, deviation = per_model.mean(axis=0), per_model.std(axis=0, ddof=1)
    error = deviation / math.sqrt(num_models)
    # Where models are all alike there is no spread, and so no skewness.
    standard = (per_model - mean) / np.where(deviation > 0, deviation, 1.0)
    skewness = (standard**3).mean(axis=0) / math.sqrt(num_models)
    quantile = float(scipy.special.stdtrit(num_models - 1, (1 + level) / 2))
    return Band(
        mean, mean - error * untransformed(quantile, skewness), mean - error * untransformed(-quantile, skewness)
    )


def untransformed(value: float, skewness: Floats) -> Floats:
    """T for which T + a T²/3 + a² T³/27 + a/6 is the value, where a is the skewness."""
    is_skewed = np.abs(skewness) > 1e-6
    a = np.where(is_skewed, skewness, 1.0)
    result: Floats = np.where(is_skewed, 3 / a * (np.cbrt(1 + a * (value - a / 6)) - 1), value)
    return result


# How often each node is named.


@dataclass(frozen=True, eq=False)
class NodeExposure:
    """How often each node is named, among the models for which that is right.

    Attributes:
        node: Node ids, shape (K,).
        num_models: Number of models that the node is in (or, for non-members, not in), shape (K,).
        num_named: Number of these that name it, shape (K,).
        num_wrong: Number of all other models that name it, wrongly, shape (K,).
        level: Confidence level of `low` and `high`, for each node by itself.
    """

    node: Ints
    num_models: Ints
    num_named: Ints
    num_wrong: Ints
    level: float

    @property
    def share(self) -> Floats:
        """Share of these models that name the node, shape (K,); NaN without such models."""
        with np.errstate(invalid="ignore"):
            return self.num_named / self.num_models

    @property
    def share_correct(self) -> Floats:
        """Share of the models naming the node that are right, shape (K,); NaN if it is never named."""
        with np.errstate(invalid="ignore"):
            return self.num_named / (self.num_named + self.num_wrong)

    @property
    def low(self) -> Floats:
        """Lower Clopper-Pearson limits of the share, shape (K,)."""
        limit = scipy.special.betaincinv(
            np.maximum(self.num_named, 1), self.num_models - self.num_named + 1.0, (1 - self.level) / 2
        )
        return np.where(self.num_named == 0, 0.0, limit)

    @property
    def high(self) -> Floats:
        """Upper Clopper-Pearson limits of the share, shape (K,)."""
        rest = self.num_models - self.num_named
        limit = scipy.special.betainccinv(self.num_named + 1.0, np.maximum(rest, 1), (1 - self.level) / 2)
        return np.where(rest == 0, 1.0, limit)

    def ranked(self) -> Ints:
        """Positions of the nodes from the most to the least exposed.

        By the lower limit of the share times the share that is correct, then by the share: a node that is named whether
        that is right or not is not exposed, and one that is only named wrongly comes last, with those never named.
        """
        risk = self.low * np.nan_to_num(self.share_correct)
        return np.lexsort((self.node, -np.nan_to_num(self.share), -risk))


# Which nodes of which models are named, and how that moves with the recalibration.


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


# Posterior log-odds about models that are not in their own fit, and what they name once they are calibrated.


class NamedBlock(NamedTuple):
    """Log-odds and truth of all models about some nodes.

    Attributes:
        nodes: Their place among the nodes that were scored.
        log_odds: Shape (J, number of nodes); an array of its own.
        truth: Shape (J, number of nodes).
    """

    nodes: slice
    log_odds: Floats32
    truth: Flags


@dataclass(frozen=True, eq=False)
class _PosteriorOdds(BlockJob[tuple[Floats32, Flags]]):
    """Log-odds of all models about a block, shape (J, number of nodes), and which of its nodes could be scored.

    Attributes:
        log_prior_odds: log η of the nodes to score.
    """

    log_prior_odds: Floats

    def run(self, block: slice, num_threads: int, progress: Progress) -> tuple[Floats32, Flags]:
        """Scores, plus the log prior odds; these alone for what cannot be scored."""
        nodes, prior = self.models.nodes_in(block), self.log_prior_odds[block]
        log_odds = np.empty((self.models.num_models, len(nodes)), dtype=np.float32)
        is_scored = np.ones(len(nodes), dtype=np.bool_)
        for rows, scores in self.scores(block, num_threads, progress):
            is_here = can_be_attacked(nodes, scores.not_auditable)
            llr = scores.log_likelihood_ratio
            known = llr if is_here.all() else np.where(is_here, llr, 0.0)
            np.add(known, prior, out=log_odds[rows], casting="same_kind")  # no array of doubles in between
            is_scored &= is_here
        return log_odds, is_scored


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Posterior log-odds of J models about the nodes of `models`, none of them in its own fit.

    Attributes:
        models: The models, and the K nodes that were to be scored.
        table: Log-odds, shape (J, K).
        is_scored: Which of the nodes could be scored, shape (K,).
        num_threads: Number of threads.
        executor: Workers that have scored them, if any.
    """

    models: Evidence
    table: Floats32 | ScratchMatrix
    is_scored: Flags
    num_threads: int
    executor: Executor | None

    @classmethod
    def score(
        cls,
        attack: Attack,
        models: Evidence,
        log_prior_odds: Floats,
        table: Floats32 | ScratchMatrix,
        num_threads: int,
        executor: Executor | None,
        progress: Progress,
    ) -> LeftOut:
        """Scores each model with a fit on others; what cannot be scored gets the log prior odds.

        Args:
            attack: Any attack.
            models: The models.
            log_prior_odds: log η of all nodes of the graph, shape (N,).
            table: Is filled with the log-odds, shape (J, K).
            num_threads: Number of threads.
            executor: Workers that score blocks of nodes, if any.
            progress: Called with the number of nodes done.
        """
        is_scored = np.ones(models.num_targets, dtype=np.bool_)
        job = _PosteriorOdds(attack, models, None, log_prior_odds[models.nodes])
        for block, made in map_blocks(job, num_threads=num_threads, executor=executor, progress=progress):
            table[:, block], is_scored[block] = made
        return cls(models, table, is_scored, num_threads, executor)

    @property
    def nodes(self) -> Ints:
        """Ids of the nodes that could be scored."""
        return self.models.nodes[self.is_scored]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of models, and of nodes that could be scored."""
        return self.models.num_models, int(self.is_scored.sum())

    def blocks(self) -> Iterator[NamedBlock]:
        """All nodes that could be scored, a block at a time."""
        num_before = 0
        for block in node_blocks(*reversed(self.table.shape)):
            is_here, nodes = self.is_scored[block], self.models.nodes_in(block)
            here = self.table[:, block]
            values = np.array(here if is_here.all() else here[:, is_here], order="C")
            truth = columns(self.models.memberships, nodes[is_here])
            yield NamedBlock(slice(num_before, num_before + values.shape[1]), values, truth)
            num_before += values.shape[1]

    def some(self) -> NamedBlock:
        """All nodes that could be scored, or evenly spaced ones if that is too much to look at."""
        places = np.flatnonzero(self.is_scored)[looked_at(*self.shape)]
        truth = columns(self.models.memberships, self.models.nodes[places])
        return NamedBlock(slice(0, len(places)), columns(self.table, places), truth)

    def roc(self, false_positive_rate: float) -> RocWithinModels:
        """AUC and true positive rate of each model, over its nodes."""
        parts, places = [], np.flatnonzero(self.is_scored)
        for rows in model_blocks(*self.table.shape):
            values = columns(self.table[rows], places)
            truth = columns(self.models.memberships[rows], self.models.nodes[places])
            parts.append(roc_within_models(values, truth, false_positive_rate, num_threads=self.num_threads))
        return RocWithinModels(*(np.concatenate(each) for each in zip(*parts, strict=True)))


class Calibrated(NamedTuple):
    """What calibrated log-odds come to.

    Attributes:
        counts: What is named.
        recalibration: The map learnt on all models.
    """

    counts: BothSides
    recalibration: Recalibration


def calibrated(
    left_out: LeftOut, precision: Floats, at_risk: float, diagram: ReliabilityCounter | None = None
) -> Calibrated:
    """Calibrates the log-odds of each model with a map learnt on others, and counts what they name.

    Args:
        left_out: The log-odds, with members and non-members.
        precision: Posterior probabilities from which on a node is named, ascending, shape (P,).
        at_risk: Posterior probability of the counts by node.
        diagram: If given, compares the calibrated probabilities with the truth.
    """
    some, num_models, num_threads = left_out.some(), left_out.models.num_models, left_out.num_threads
    num_folds = min(NUM_FOLDS, num_models)
    if some.log_odds.min() == some.log_odds.max():
        maps, pulls = [constant_map(some.log_odds, some.truth)] * (num_folds + 1), None
    else:
        bins = ScoreBins.of(some.log_odds, some.truth, num_threads=num_threads)
        learnt = _learnt_maps(bins, num_folds)
        maps, pulls = [each.recalibration for each in learnt], map_pulls(learnt[-1], bins, precision)
    counter = NamingCounter(left_out.shape, precision, at_risk, pulls, left_out.table.dtype, num_threads)
    map_of = np.repeat(np.arange(num_folds), np.diff(_fold_bounds(num_models, num_folds)))
    log_odds = np.stack([each.log_odds for each in maps])
    for block in left_out.blocks():
        _native.interpolate_rows(block.log_odds, maps[0].scores, log_odds, map_of, num_threads)
        counter.add(block.log_odds, block.truth, block.nodes)
        if diagram is not None:
            diagram.add(block.log_odds, block.truth)
    return Calibrated(counter.result(), maps[-1])


def _fold_bounds(num_models: int, num_folds: int) -> list[int]:
    return [num_models * fold // num_folds for fold in range(num_folds + 1)]


def _learnt_maps(bins: ScoreBins, num_folds: int) -> list[LearntMap]:
    """For each fold of the models the map learnt on all others, and last the one learnt on all."""
    learnt = []
    for first, last in pairwise(_fold_bounds(bins.num_models, num_folds)):
        others = np.ones(bins.num_models, dtype=np.bool_)
        others[first:last] = False
        learnt.append(recalibrate_bins(bins, others))
    return [*learnt, recalibrate_bins(bins)]
