"""What others report of an attack, over all challenges at once: accuracy, AUC, true positives at few false ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.attack.challenges import ChallengeScores
from bmpaudit.attack.decision import Decision
from bmpaudit.errors import InputError


@dataclass(frozen=True)
class AttackPerformance:
    """One attack on all nodes taken together.

    Such figures hide which nodes leak, and a threshold shared by all nodes is not the decision of Algorithm 2; they
    are here to be set beside those of other work.

    Attributes:
        num_out: Challenges in which the node was not a member.
        num_in: Challenges in which it was.
        accuracy: The share of right decisions.
        auc: The probability that a member's score exceeds a non-member's, ties counting half.
        tpr_at_fpr: For each false positive rate asked for, the largest true positive rate of a threshold whose false
            positive rate is not above it.
    """

    num_out: int
    num_in: int
    accuracy: float
    auc: float
    tpr_at_fpr: Mapping[float, float]

    def __str__(self) -> str:
        rates = "".join(f", TPR {tpr:.1%} at FPR {fpr:g}" for fpr, tpr in self.tpr_at_fpr.items())
        return f"{self.num_out + self.num_in:,} challenges: accuracy {self.accuracy:.1%}, AUC {self.auc:.3f}{rates}"


@dataclass(frozen=True, eq=False)
class RocCurve:
    """True positive rates against false positive rates, both ascending from 0 to 1, shape (P,)."""

    false_positive_rate: npt.NDArray[np.float64]
    true_positive_rate: npt.NDArray[np.float64]


def roc_curve(scores: ChallengeScores, decision: Decision = "strong", num_points: int = 120) -> RocCurve:
    """The curve at thresholds whose false positive rates are spread evenly, on a logarithmic and a plain scale.

    Every point is attained by a threshold; nothing is interpolated.
    """
    values, is_member = scores.of(decision), scores.memberships
    out_scores, in_scores = np.sort(values[~is_member]), np.sort(values[is_member])
    num_out = len(out_scores)
    wanted = np.concatenate([np.geomspace(1, num_out, num_points // 2), np.linspace(0, num_out, num_points // 2)])
    thresholds = np.unique(out_scores[num_out - 1 - np.clip(wanted.astype(np.int64), 0, num_out - 1)])[::-1]
    false_positives = num_out - np.searchsorted(out_scores, thresholds, side="right")
    true_positives = len(in_scores) - np.searchsorted(in_scores, thresholds, side="right")
    return RocCurve(
        np.concatenate([[0.0], false_positives / num_out, [1.0]]),
        np.concatenate([[0.0], true_positives / len(in_scores), [1.0]]),
    )


def attack_performance(
    scores: ChallengeScores,
    decision: Decision = "strong",
    false_positive_rates: Sequence[float] = (0.001, 0.01, 0.1),
) -> AttackPerformance:
    """Accuracy, AUC and true positive rates over all challenges.

    Exact: nothing is binned or interpolated, and challenges with the same score stand or fall together.

    Raises:
        InputError: if a rate is outside [0, 1], or all challenges have the same truth.
    """
    for rate in false_positive_rates:
        if not 0 <= rate <= 1:
            raise InputError(f"false_positive_rates must be in [0, 1], got {rate}")
    values, is_member = scores.of(decision), scores.memberships
    out_scores, in_scores = np.sort(values[~is_member]), np.sort(values[is_member])
    if not len(out_scores) or not len(in_scores):
        raise InputError(
            f"there must be challenges with members and with non-members, got {len(in_scores)} and {len(out_scores)}"
        )
    wrong = _num_above(out_scores, scores.threshold) + len(in_scores) - _num_above(in_scores, scores.threshold)
    return AttackPerformance(
        num_out=len(out_scores),
        num_in=len(in_scores),
        accuracy=1.0 - wrong / values.size,
        auc=_auc(out_scores, in_scores),
        tpr_at_fpr={float(rate): _true_positive_rate(out_scores, in_scores, rate) for rate in false_positive_rates},
    )


def _num_above(ascending: npt.NDArray[np.float64], threshold: float) -> int:
    return len(ascending) - int(np.searchsorted(ascending, threshold, side="right"))


def _auc(out_scores: npt.NDArray[np.float64], in_scores: npt.NDArray[np.float64]) -> float:
    below = np.searchsorted(out_scores, in_scores, side="left").sum(dtype=np.int64)
    not_above = np.searchsorted(out_scores, in_scores, side="right").sum(dtype=np.int64)
    return float(int(below) + int(not_above)) / (2.0 * len(out_scores) * len(in_scores))


def _true_positive_rate(
    out_scores: npt.NDArray[np.float64], in_scores: npt.NDArray[np.float64], false_positive_rate: float
) -> float:
    """With the score of the first non-member that must not be above it as threshold, as few as allowed are above."""
    allowed = int(false_positive_rate * len(out_scores))
    if (allowed + 1) / len(out_scores) <= false_positive_rate:  # 0.29 · 100 is 28.999…
        allowed += 1
    if allowed >= len(out_scores):
        return 1.0
    return _num_above(in_scores, out_scores[len(out_scores) - 1 - allowed]) / len(in_scores)
