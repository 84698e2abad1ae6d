"""The attack on one released model, fitted on the shadow models and recalibrated on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Flags, Floats, Floats32, Ints
from bmpaudit.attack import Evidence, NotAuditable, Strong, challenge
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.auditing.infer_score import LogOdds
from bmpaudit.errors import InputError
from bmpaudit.interfaces import Attack
from bmpaudit.proof import Recalibration, recalibrate
from bmpaudit.proof.scoring import Source, sources_of

RULES = {"strong": Strong()}

MOST_SCORES = 20_000_000
"""Challenges of shadow models that the calibration looks at; beyond that, nodes are thinned evenly."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the shadow models say about an attack, each scored by a fit on the others.

    Attributes:
        source: The attack, and the queries that it sees.
        node: Ids of the K nodes that can be attacked, shape (K,); evenly spaced ones of a large graph.
        log_odds: Posterior log-odds about each model, shape (J, K).
        memberships: The truth, shape (J, K).
        recalibration: The map that was learnt from them.
    """

    source: Source
    node: Ints
    log_odds: LogOdds
    memberships: Flags
    recalibration: Recalibration

    @property
    def log_loss(self) -> float:
        """Mean of -log of the probability that was given to the truth."""
        surprise = np.where(self.memberships, -self.log_odds.calibrated, self.log_odds.calibrated)
        return float(np.logaddexp(0.0, surprise).mean())


def _calibration(source: Source, models: Evidence, prior_prob: Floats, num_threads: int | None) -> Calibration:
    scores = challenge(
        source.attack,
        source.seen(models),
        prior_prob,
        RULES,
        with_scores=True,
        most_scores=MOST_SCORES,
        num_threads=num_threads,
    ).scores
    if scores is None:
        raise InputError(f"attack {source.name}: no node can be attacked with {models.num_models} models")
    values = scores.of("strong")
    learnt = recalibrate(values, scores.memberships)
    return Calibration(source, scores.node, LogOdds(values, learnt(values)), scores.memberships, learnt)


def calibrate(attack: Attack, models: Evidence, prior_prob: Floats, num_threads: int | None) -> Calibration:
    """Scores the shadow models; of an attack that takes one query at a time, under the query that tells most.

    Which query that is, is found on the shadow models alone: the one with the smallest log-loss.
    """
    sources = sources_of((attack,), models.queries)
    tried = [_calibration(source, models, prior_prob, num_threads) for source in sources]
    return min(tried, key=lambda each: each.log_loss)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What an attack says of one model under the sampler's prior.

    Attributes:
        log_odds: Posterior log-odds of every node, shape (N,); those of the prior where there was no attack.
        is_attacked: Which nodes could be attacked, shape (N,).
        not_auditable: The other nodes, and why.
    """

    log_odds: LogOdds
    is_attacked: Flags
    not_auditable: tuple[NotAuditable, ...]


def attack_released(
    calibration: Calibration,
    models: Evidence,
    released: Mapping[str, Floats32],
    prior_prob: Floats,
    num_threads: int | None,
) -> Posterior:
    """Scores a released model with a fit on all shadow models.

    Args:
        calibration: What was learnt from the shadow models.
        models: The shadow models.
        released: By query, the statistic of every node under the released model, shape (N,).
        prior_prob: The sampler's priors, shape (N,).
        num_threads: Number of threads.
    """
    source = calibration.source
    # Its memberships are unknown; the attack does not see them, and the errors are not looked at.
    nobody = np.zeros((1, models.num_nodes), dtype=np.bool_)
    challenged = Evidence(
        {query: released[query][None] for query in models.queries},
        nobody,
        models.indices[-1:] + 1,
        models.graph,
    )
    fitted = source.seen(models)
    made = challenge(
        source.attack,
        source.seen(challenged),
        prior_prob,
        RULES,
        fitting=fitted,
        with_scores=True,
        num_threads=num_threads,
    )
    if made.scores is None:
        raise InputError(f"attack {source.name}: no node can be attacked with {models.num_models} models")
    score = log_prior_odds(prior_prob)
    calibrated = score.copy()
    score[made.scores.node] = made.scores.of("strong")[0]
    calibrated[made.scores.node] = calibration.recalibration(score[made.scores.node])
    is_attacked = np.zeros(models.num_nodes, dtype=np.bool_)
    is_attacked[made.scores.node] = True
    return Posterior(LogOdds(score, calibrated), is_attacked, made.not_auditable)
