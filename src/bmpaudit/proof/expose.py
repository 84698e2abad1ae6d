"""From the models of one release to their exposure: scored, recalibrated and counted, no model by what it taught."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.arrays import Floats, Ints
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.inputs import prior_probs
from bmpaudit.attack.performance import RocWithinModels
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.attack.scoring import NUM_FOLDS
from bmpaudit.checks import thread_count
from bmpaudit.errors import InputError
from bmpaudit.interfaces import Attack, LeaveOneOutAttack, Progress
from bmpaudit.proof.bounds import check_level
from bmpaudit.proof.exposure import AT_RISK, PRECISIONS, exposure_of
from bmpaudit.proof.left_out import LeftOut, calibrated
from bmpaudit.proof.naming import BothSides, NamedNodes
from bmpaudit.proof.release_exposure import ModelTable, ReleaseExposure
from bmpaudit.proof.reliability import ReliabilityCounter
from bmpaudit.tables import columns, model_blocks, new_table, take_rows

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
    executor: Executor | None = None,
    progress: Progress = lambda _: None,
) -> ReleaseExposure:
    """Finds out what the models of one release give away: how many nodes can be named, how surely, and which.

    Each model is judged by others. It is scored with a fit on all others (on nine tenths of them, if the attack cannot
    leave models out); its posterior log-odds, score plus log prior odds, are recalibrated with a map learnt on the nine
    tenths of the models that it is not part of. (Their scores rest on fits that contain it, as one of many: nothing is
    proven here.) All is repeated within each half of the models, which tells how much more an adversary with more
    models could name (see `ExposureCurve`).

    Scores take 4 bytes for each model and node, in memory or, if that is too much, in a temporary file; all else is
    worked out in blocks of nodes.

    Args:
        attack: Any attack; one that does not fuse queries takes evidence of a single query.
        models: Models of one release.
        prior_prob: γ(1) of all nodes of the graph, or "shadow-frequency" as in `challenge`.
        level: Confidence level of limits.
        num_threads: Number of threads; the result does not depend on it.
        executor: Workers that score blocks of nodes, if there is more than one block; the result does not depend on it.
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
    threads, num_models = thread_count(num_threads), models.num_models
    table = new_table(num_models, len(open_nodes))
    left_out = LeftOut.score(attack, models.about(open_nodes), log_odds, table, threads, executor, progress)
    nodes = left_out.nodes
    if not len(nodes):
        raise InputError(f"no node can be named: the attack can score none with {num_models} models")
    num_in = models.about(nodes).num_in
    if not num_in.any() or (num_in == num_models).all():
        raise InputError(f"memberships must hold both sides, got no {'non-member' if num_in.any() else 'member'}")
    roc = left_out.roc(FALSE_POSITIVE_RATE)
    diagram = ReliabilityCounter(num_models, table.dtype, threads)
    counts, learnt = calibrated(left_out, np.array(PRECISIONS), AT_RISK, diagram)
    half = _with_half(attack, left_out, log_odds, lambda done: progress(len(open_nodes) + done))
    num_members = float(models.num_in.sum() / num_models)
    return ReleaseExposure(
        exposure=exposure_of(
            counts, half, nodes, num_members, len(targets) - num_members, level, scipy.special.expit(log_odds[nodes])
        ),
        recalibration=learnt,
        reliability=diagram.result(),
        models=_table(left_out, roc, counts),
        num_nodes=len(nodes),
        num_left_out=len(targets) - len(nodes),
        num_fitting=_num_fitting(attack, num_models),
    )


def _with_half(attack: Attack, whole: LeftOut, log_odds: Floats, progress: Progress) -> BothSides | None:
    """What is named with half as many models, overwriting the table; None if there are too few models."""
    num_models, middle = whole.models.num_models, whole.models.num_models // 2
    if middle < MIN_HALF:
        return None
    parts = []
    for rows in (slice(0, middle), slice(middle, num_models)):
        models = whole.models.take(rows)
        num_done = rows.start * len(models.nodes) // num_models
        left_out = LeftOut.score(
            attack,
            models,
            log_odds,
            take_rows(whole.table, rows),
            whole.num_threads,
            whole.executor,
            lambda done, before=num_done: progress(before + done // 2),  # type: ignore[misc]
        )
        # Of a node that half of the models cannot score, nothing is known but the prior.
        left_out = replace(left_out, is_scored=whole.is_scored)
        num_in = models.about(left_out.nodes).num_in
        if not num_in.any() or (num_in == len(models.indices)).all():
            return None
        parts.append(calibrated(left_out, np.array(PRECISIONS), AT_RISK).counts)
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


def _table(left_out: LeftOut, roc: RocWithinModels, counts: BothSides) -> ModelTable:
    def whole(numbers: Floats) -> Ints:
        return numbers.astype(np.int64)

    memberships, nodes = left_out.models.memberships, left_out.nodes
    blocks = model_blocks(*memberships.shape)
    num_members = [np.count_nonzero(columns(memberships[rows], nodes), axis=1) for rows in blocks]
    members, others = counts.members, counts.non_members
    return ModelTable(
        index=left_out.models.indices,
        num_members=np.concatenate(num_members),
        auc=roc.auc,
        true_positive_rate=roc.true_positive_rate,
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
