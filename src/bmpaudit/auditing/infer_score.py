"""How right an inference is, where it is known who was in, and whether the shadow models give away as much."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.special

from bmpaudit.arrays import Flags, Floats
from bmpaudit.attack.performance import attack_performance
from bmpaudit.attack.rules import Weak
from bmpaudit.attack.scores import ChallengeScores
from bmpaudit.auditing.infer_check import BehaviourCheck, compare_with_shadows
from bmpaudit.errors import InputError

CERTAINTIES = (0.95, 0.99)
FALSE_POSITIVE_RATE = 0.01


@dataclass(frozen=True)
class Named:
    """The nodes that are named at one certainty.

    Attributes:
        certainty: Posterior probability from which on a node is named.
        members: Number of nodes named as members.
        expected_members: Expected number of members among them.
        members_by_prior: Number of nodes that the prior alone would name as members.
        non_members: Number of nodes named as non-members.
        expected_non_members: Expected number of non-members among them.
        non_members_by_prior: Number of nodes that the prior alone would name as non-members.
        members_right: Number of the nodes named as members that are; None if that is not known.
        non_members_right: Number of the nodes named as non-members that are; None if that is not known.
    """

    certainty: float
    members: int
    expected_members: float
    members_by_prior: int
    non_members: int
    expected_non_members: float
    non_members_by_prior: int
    members_right: int | None = None
    non_members_right: int | None = None


def count_named(certainty: float, log_odds: Floats, log_prior_odds: Floats, truth: Flags | None) -> Named:
    """Counts who is named; all arrays of shape (N,)."""
    threshold, prob = scipy.special.logit(certainty), scipy.special.expit(log_odds)
    is_in, is_out = log_odds >= threshold, log_odds <= -threshold
    return Named(
        certainty=certainty,
        members=int(is_in.sum()),
        expected_members=float(prob[is_in].sum()),
        members_by_prior=int((log_prior_odds >= threshold).sum()),
        non_members=int(is_out.sum()),
        expected_non_members=float((1 - prob[is_out]).sum()),
        non_members_by_prior=int((log_prior_odds <= -threshold).sum()),
        members_right=None if truth is None else int((is_in & truth).sum()),
        non_members_right=None if truth is None else int((is_out & ~truth).sum()),
    )


@dataclass(frozen=True)
class InferenceScore:
    """How well an inference did, where it is known who was in.

    Attributes:
        num_members: Number of members.
        auc: Probability that a member's odds exceed a non-member's.
        tpr_at_1_percent: Largest share of members found with at most 1 % of the non-members taken for one.
        standing: How this compares with the shadow models, each scored by a fit on the others, under the sampler's
            prior. Of models trained as the plan says, approximately a share a at most has a p-value ≤ a. The formal
            guarantee of `BehaviourCheck` does not hold here, as the models are not treated quite alike: with J of them,
            a shadow model is scored by a fit on J - 1 and recalibrated by a map that was learnt from it too; the
            released model by a fit on J and a map that was not.
    """

    num_members: int
    auc: float
    tpr_at_1_percent: float
    standing: BehaviourCheck

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        return {**asdict(self), "standing": self.standing.to_plain()}


@dataclass(frozen=True, eq=False)
class LogOdds:
    """Posterior log-odds of membership about one model, shape (K,), or about many, shape (J, K).

    Attributes:
        score: As the attack has them, which orders nodes most finely.
        calibrated: Recalibrated, so that they can be believed.
    """

    score: Floats
    calibrated: Floats


def score_inference(
    mine: LogOdds,
    truth: Flags,
    prior_shift: Floats,
    shadows: LogOdds,
    memberships: Flags,
    has_learnt_little: Flags,
) -> InferenceScore:
    """Scores an inference and ranks it among those about the shadow models.

    Args:
        mine: Log-odds about the released model under the sampler's prior.
        truth: Who was in, shape (K,).
        prior_shift: What the declared prior adds to the log-odds, shape (K,).
        shadows: Log-odds about each shadow model, by a fit on the others.
        memberships: Who was in each of them, shape (J, K).
        has_learnt_little: Group of each shadow model and of the released one, which comes last, shape (J + 1,).

    Raises:
        InputError: if the nodes that can be attacked are all members, or all not.
    """
    if truth.all() or not truth.any():
        raise InputError(
            f"of the {truth.size:,} nodes that can be attacked there must be members and non-members, got "
            f"{truth.sum():,} members"
        )
    is_mixed = memberships.any(axis=1) & ~memberships.all(axis=1)
    rows = zip(shadows.score[is_mixed], shadows.calibrated[is_mixed], memberships[is_mixed], strict=True)
    theirs = [_result(LogOdds(score, calibrated), members) for score, calibrated, members in rows]
    result = _result(mine, truth)
    by_name = {name: np.array([each[name] for each in theirs]) for name in result}
    standing = compare_with_shadows(by_name, result, has_learnt_little[np.append(is_mixed, True)])
    auc, tpr = _auc_and_tpr(mine.score + prior_shift, truth)
    return InferenceScore(int(truth.sum()), auc, tpr, standing)


def _result(log_odds: LogOdds, truth: Flags) -> dict[str, float]:
    auc, tpr = _auc_and_tpr(log_odds.score, truth)
    result = {"AUC": auc, "TPR at 1 %": tpr}
    for certainty in CERTAINTIES:
        is_named = log_odds.calibrated >= scipy.special.logit(certainty)
        result[f"members named rightly at {100 * certainty:g} %"] = float((is_named & truth).sum())
        result[f"members named wrongly at {100 * certainty:g} %"] = float((is_named & ~truth).sum())
    return result


def _auc_and_tpr(scores: Floats, truth: Flags) -> tuple[float, float]:
    everyone = np.ones(truth.size, dtype=np.bool_)
    one_model = ChallengeScores(
        np.arange(truth.size), scores[None], truth[None], np.full(truth.size, 0.5), everyone, threshold=0.0
    )
    performance = attack_performance(one_model, Weak(), (FALSE_POSITIVE_RATE,))
    return performance.auc, performance.tpr_at_fpr[FALSE_POSITIVE_RATE]
