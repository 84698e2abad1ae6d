"""How right an inference is, where it is known who was in, and whether the shadow models give away as much."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.special

from bmpaudit.arrays import Flags, Floats
from bmpaudit.attack.performance import roc_within_models
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
    theirs = _results(shadows.score[is_mixed], shadows.calibrated[is_mixed], memberships[is_mixed])
    result = {
        name: float(values[0])
        for name, values in _results(mine.score[None], mine.calibrated[None], truth[None]).items()
    }
    standing = compare_with_shadows(theirs, result, has_learnt_little[np.append(is_mixed, True)])
    roc = roc_within_models((mine.score + prior_shift)[None], truth[None], FALSE_POSITIVE_RATE)
    return InferenceScore(int(truth.sum()), float(roc.auc[0]), float(roc.true_positive_rate[0]), standing)


def _results(scores: Floats, calibrated: Floats, truth: Flags) -> dict[str, Floats]:
    """What is found out about each of J models; all arrays of shape (J, K)."""
    roc = roc_within_models(scores, truth, FALSE_POSITIVE_RATE)
    results = {"AUC": roc.auc, "TPR at 1 %": roc.true_positive_rate}
    for certainty in CERTAINTIES:
        is_named = calibrated >= scipy.special.logit(certainty)
        for word, is_so in (("rightly", truth), ("wrongly", ~truth)):
            numbers = np.count_nonzero(is_named & is_so, axis=1).astype(np.float64)
            results[f"members named {word} at {100 * certainty:g} %"] = numbers
    return results
