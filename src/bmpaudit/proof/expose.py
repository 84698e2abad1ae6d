"""From the models of one release to their exposure: scored, recalibrated and counted, no model by what it taught."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.arrays import Flags, Floats, Floats32, Ints
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.inputs import prior_probs
from bmpaudit.attack.not_auditable import can_be_attacked
from bmpaudit.attack.performance import area_under_roc, true_positive_rate
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.attack.scoring import NUM_FOLDS, score_blocks
from bmpaudit.checks import thread_count
from bmpaudit.errors import InputError
from bmpaudit.interfaces import Attack, LeaveOneOutAttack, Progress
from bmpaudit.proof.bounds import check_level
from bmpaudit.proof.calibration import Recalibration, checked_log_odds, constant_map, recalibrate_bins
from bmpaudit.proof.exposure import AT_RISK, PRECISIONS, exposure_of
from bmpaudit.proof.naming import BothSides, NamedNodes, count_named, map_pulls
from bmpaudit.proof.release_exposure import ModelTable, ReleaseExposure
from bmpaudit.proof.reliability import reliability
from bmpaudit.proof.score_bins import ScoreBins, row_chunks

FALSE_POSITIVE_RATE = 0.01
MIN_HALF = 4
"""Smallest number of models that a half may have."""


def expose(
    attack: Attack,
    models: Evidence,
    prior_prob: npt.ArrayLike | str,
    *,
    level: float = 0.95,
    num_threads: int | None = None,
    progress: Progress | None = None,
) -> ReleaseExposure:
    """Finds out what the models of one release give away: how many nodes can be named, how surely, and which.

    Each model is judged by others. It is scored with a fit on all others (on nine tenths of them, if the attack cannot
    leave models out); its posterior log-odds, score plus log prior odds, are recalibrated with a map learnt on the nine
    tenths of the models that it is not part of. (Their scores rest on fits that contain it, as one of many: nothing is
    proven here.) All is repeated within each half of the models, which tells how much more an adversary with more
    models could name (see `ExposureCurve`).

    Sorting and counting take some 0.6 s per million challenges; with the Student attack, two queries and neighbours
    the whole takes five to six times as long as scoring all models once, as each half learns its prior anew. Beside the
    models themselves, which take 4 bytes per query and 1 for the membership, it takes 4 bytes of memory for each model
    and node, and what scoring a block of nodes needs.

    Args:
        attack: Any attack; one that does not fuse queries takes evidence of a single query.
        models: Models of one release.
        prior_prob: γ(1) of all nodes of the graph, or "shadow-frequency" as in `challenge`.
        level: Confidence level of limits.
        num_threads: Number of threads; the result does not depend on it.
        progress: Called with the number of nodes scored so far; there are twice as many to score as nodes.

    Raises:
        InputError: if there are fewer than 2 models, inputs do not fit together, no node can be named, there is no
            member or no non-member, or scores are NaN.
    """
    check_level(level)
    if not isinstance(attack, Attack):
        raise InputError(f"attack must have fuses_queries and score(...), got {attack!r}")
    if not attack.fuses_queries and len(models.queries) != 1:
        raise InputError(
            f"attack {type(attack).__name__} does not fuse queries and takes one at a time, got "
            f"{', '.join(models.queries)}"
        )
    if models.num_models < 2:
        raise InputError(f"there must be at least 2 models to fit on others, got {models.num_models}")
    log_odds = log_prior_odds(prior_probs(prior_prob, models))
    targets = models.nodes
    open_nodes = targets[np.isfinite(log_odds[targets])]
    if not len(open_nodes):
        raise InputError("no node can be named, as all priors are 0 or 1")
    run = _Run(attack, log_odds, models.num_models, thread_count(num_threads), progress)
    left_out = _scored(run, models.about(open_nodes), 0)
    if not left_out.is_scored.any():
        raise InputError(f"no node can be named: the attack can score none with {models.num_models} models")
    nodes = open_nodes[left_out.is_scored]
    values = left_out.log_odds if left_out.is_scored.all() else left_out.log_odds[:, left_out.is_scored]
    is_all = len(nodes) == models.num_nodes
    truth = models.memberships if is_all else np.take(models.memberships, nodes, axis=1)
    checked_log_odds(values, truth)
    auc, rate = _within_models(values, truth)
    counts, learnt = _recalibrated(values, truth)
    diagram = reliability(values, truth)
    half = _with_half(run, models.about(nodes), values, truth, len(open_nodes))
    num_members = float(models.num_in.sum() / models.num_models)
    return ReleaseExposure(
        exposure=exposure_of(
            counts, half, nodes, num_members, len(targets) - num_members, level, scipy.special.expit(log_odds[nodes])
        ),
        recalibration=learnt,
        reliability=diagram,
        models=_table(models, truth, auc, rate, counts),
        num_nodes=len(nodes),
        num_left_out=len(targets) - len(nodes),
        num_fitting=_num_fitting(attack, models.num_models),
    )


class _Run(NamedTuple):
    attack: Attack
    log_prior_odds: Floats
    num_models: int
    num_threads: int
    progress: Progress | None


class _LeftOut(NamedTuple):
    """Posterior log-odds of models that are not in their own fit, shape (J, K), and which nodes were scored."""

    log_odds: Floats32
    is_scored: Flags


def _scored(run: _Run, models: Evidence, num_done: int, into: Floats32 | None = None) -> _LeftOut:
    nodes = models.nodes
    values = np.empty((models.num_models, len(nodes)), dtype=np.float32) if into is None else into
    is_scored = np.ones(len(nodes), dtype=np.bool_)
    log_odds = run.log_prior_odds[nodes]
    for block in score_blocks(run.attack, models, None, num_threads=run.num_threads):
        values[block.rows, block.columns] = block.log_likelihood_ratio + log_odds[block.columns]
        is_scored[block.columns] &= can_be_attacked(nodes[block.columns], block.not_auditable)
        if run.progress is not None:
            # A half, or a fold of an attack that cannot leave models out, scores a part of the models.
            first, last, _ = block.rows.indices(models.num_models)
            done = first * len(nodes) + (last - first) * block.columns.stop
            run.progress(num_done + done // run.num_models)
    return _LeftOut(values, is_scored)


def _recalibrated(values: Floats32, truth: Flags) -> tuple[BothSides, Recalibration]:
    """Replaces log-odds by calibrated ones, each model's with a map learnt on others; the map learnt on all."""
    precision = np.array(PRECISIONS)
    if values.min() == values.max():
        flat = constant_map(values, truth)
        values[:] = flat(values)
        return count_named(values, truth, precision, AT_RISK), flat
    bins = ScoreBins.of(values, truth)
    num_models = len(values)
    num_folds = min(NUM_FOLDS, num_models)
    for first, last in pairwise(num_models * fold // num_folds for fold in range(num_folds + 1)):
        others = np.ones(num_models, dtype=np.bool_)
        others[first:last] = False
        mapped = recalibrate_bins(bins, others).recalibration
        for rows in row_chunks(last - first, values.shape[1]):
            within = slice(first + rows.start, first + rows.stop)
            values[within] = mapped(values[within])
    learnt = recalibrate_bins(bins)
    return count_named(values, truth, precision, AT_RISK, map_pulls(learnt, bins, precision)), learnt.recalibration


def _with_half(run: _Run, models: Evidence, values: Floats32, truth: Flags, num_done: int) -> BothSides | None:
    """What is named with half as many models, overwriting the log-odds; None if there are too few models."""
    num_models, middle = models.num_models, models.num_models // 2
    if middle < MIN_HALF:
        return None
    parts = []
    for rows in (slice(0, middle), slice(middle, num_models)):
        left_out = _scored(
            run, models.take(rows), num_done + rows.start * len(models.nodes) // num_models, values[rows]
        )
        # Of a node that half of the models cannot score, nothing is known but the prior.
        values[rows, ~left_out.is_scored] = run.log_prior_odds[models.nodes[~left_out.is_scored]]
        if truth[rows].all() or not truth[rows].any():
            return None
        counts, _ = _recalibrated(values[rows], truth[rows])
        parts.append(counts)
    return BothSides(_joined(parts[0].members, parts[1].members), _joined(parts[0].non_members, parts[1].non_members))


def _joined(first: NamedNodes, second: NamedNodes) -> NamedNodes:
    """Models of both, one after the other."""
    return NamedNodes(
        precision=first.precision,
        named=np.concatenate([first.named, second.named]),
        correct=np.concatenate([first.correct, second.correct]),
        named_effect=np.concatenate([first.named_effect, second.named_effect]),
        correct_effect=np.concatenate([first.correct_effect, second.correct_effect]),
        at_risk=first.at_risk,
        node_models=first.node_models + second.node_models,
        node_named=first.node_named + second.node_named,
        node_wrong=first.node_wrong + second.node_wrong,
    )


def _within_models(values: Floats32, truth: Flags) -> tuple[Floats, Floats]:
    """AUC and true positive rate of each model, over its nodes; NaN where one side is empty."""
    auc, rate = np.full((2, len(values)), np.nan)
    for model, (scores, is_member) in enumerate(zip(values, truth, strict=True)):
        out_scores, in_scores = np.sort(scores[~is_member]), np.sort(scores[is_member])
        if len(out_scores) and len(in_scores):
            auc[model] = area_under_roc(out_scores, in_scores)
            rate[model] = true_positive_rate(out_scores, in_scores, FALSE_POSITIVE_RATE)
    return auc, rate


def _table(models: Evidence, truth: Flags, auc: Floats, rate: Floats, counts: BothSides) -> ModelTable:
    def whole(numbers: Floats) -> Ints:
        return numbers.astype(np.int64)

    members, others = counts.members, counts.non_members
    return ModelTable(
        index=models.indices,
        num_members=truth.sum(axis=1, dtype=np.int64),
        auc=auc,
        true_positive_rate=rate,
        precision=members.precision,
        members_named=whole(members.named),
        members_correct=whole(members.correct),
        members_effect=members.correct_effect,
        non_members_named=whole(others.named),
        non_members_correct=whole(others.correct),
        non_members_effect=others.correct_effect,
    )


def _num_fitting(attack: Attack, num_models: int) -> int:
    if isinstance(attack, LeaveOneOutAttack):
        return num_models - 1
    return num_models - -(-num_models // min(NUM_FOLDS, num_models))
