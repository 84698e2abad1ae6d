"""Posterior log-odds about models that are not in their own fit, and what they name once they are calibrated."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Flags, Floats, Floats32, Ints
from bmpaudit.attack.blocks import BlockJob, map_blocks
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.not_auditable import can_be_attacked
from bmpaudit.attack.performance import RocWithinModels, roc_within_models
from bmpaudit.attack.scoring import NUM_FOLDS
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof.calibration import LearntMap, Recalibration, constant_map, recalibrate_bins
from bmpaudit.proof.naming import BothSides, NamingCounter, map_pulls
from bmpaudit.proof.reliability import ReliabilityCounter
from bmpaudit.proof.score_bins import ScoreBins, looked_at
from bmpaudit.tables import ScratchTable, columns, model_blocks, node_blocks


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
    table: Floats32 | ScratchTable
    is_scored: Flags
    num_threads: int
    executor: Executor | None

    @classmethod
    def score(
        cls,
        attack: Attack,
        models: Evidence,
        log_prior_odds: Floats,
        table: Floats32 | ScratchTable,
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
