"""Figures that other work reports: accuracy, AUC, TPR at low FPR, the ROC curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bmpaudit import _native
from bmpaudit.attack.challenges import ChallengeScores
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.values import AnyFloats, Flags, Floats, as_bytes

if TYPE_CHECKING:
    from bmpaudit.interfaces import DecisionRule


NUM_ROC_POINTS = 120
SIGNIFICANT = 0.05


@dataclass(frozen=True, eq=False)
class RocCurve:
    """True positive rates against false positive rates, both ascending from 0 to 1, shape (P,)."""

    false_positive_rate: Floats
    true_positive_rate: Floats


@dataclass(frozen=True, eq=False)
class AttackPerformance:
    """One attack on all nodes taken together.

    Such figures hide which nodes leak, and a threshold shared by all nodes is not the decision of Algorithm 2. They are
    here for comparison with other work.
    """

    num_out: int  # number of challenges in which the node was not a member
    num_in: int  # number of challenges in which it was
    accuracy: float  # share of right decisions
    auc: float  # probability that a member's score exceeds a non-member's, ties counting half
    # For each false positive rate asked for, the largest true positive rate of a threshold whose false positive rate is
    # not above it.
    tpr_at_fpr: Mapping[float, float]
    roc: RocCurve

    def __str__(self) -> str:
        rates = "".join(f", TPR {tpr:.1%} at FPR {fpr:g}" for fpr, tpr in self.tpr_at_fpr.items())
        return f"{self.num_out + self.num_in:,} challenges: accuracy {self.accuracy:.1%}, AUC {self.auc:.3f}{rates}"


def attack_performance(
    scores: ChallengeScores,
    rule: str | DecisionRule = "strong",
    false_positive_rates: Sequence[float] = (0.001, 0.01, 0.1),
    *,
    num_threads: int | None = None,
) -> AttackPerformance:
    """Accuracy, AUC, true positive rates and the ROC curve over all challenges.

    Exact: nothing is binned or interpolated, and challenges with the same score stand or fall together.

    Scores are those that `challenge(..., with_scores=True)` keeps; true positive rates are found at the false positive
    rates asked for.

    Raises:
        InputError: if a rate is outside [0, 1], or all challenges have the same truth.
    """
    for rate in false_positive_rates:
        if not 0 <= rate <= 1:
            raise InputError(f"false_positive_rates must be in [0, 1], got {rate}")
    # Sorting takes most of the time, and everything else follows from these two arrays.
    values, threads = np.ascontiguousarray(scores.of(rule), dtype=np.float64), thread_count(num_threads)
    out_scores, in_scores = _native.sort_by_side(values, as_bytes(scores.memberships), threads)
    num_out, num_in = len(out_scores), len(in_scores)
    if not num_out or not num_in:
        raise InputError(f"there must be challenges with members and with non-members, got {num_in} and {num_out}")
    num_wrong = _num_above(out_scores, scores.threshold) + num_in - _num_above(in_scores, scores.threshold)
    return AttackPerformance(
        num_out=num_out,
        num_in=num_in,
        accuracy=1.0 - num_wrong / (num_out + num_in),
        auc=_native.pairs_in_order(out_scores, in_scores) / (2.0 * num_out * num_in),
        tpr_at_fpr={float(rate): _true_positive_rate(out_scores, in_scores, rate) for rate in false_positive_rates},
        roc=_roc_curve(out_scores, in_scores),
    )


class RocWithinModels(NamedTuple):
    """The ROC curve of each of J models, over its nodes; NaN where a model has no member or no non-member."""

    auc: Floats  # as in `AttackPerformance`, shape (J,)
    true_positive_rate: Floats  # the largest of a threshold whose false positive rate is not above that wanted


def roc_within_models(
    scores: AnyFloats, is_member: Flags, false_positive_rate: float, *, num_threads: int | None = None
) -> RocWithinModels:
    """AUC and true positive rate within each model; both arrays of shape (J, K)."""
    found = RocWithinModels(*np.empty((2, len(scores))))
    values = np.ascontiguousarray(scores if scores.dtype == np.float32 else scores.astype(np.float64))
    _native.roc_within_models(values, as_bytes(is_member), false_positive_rate, thread_count(num_threads), *found)
    return found


def _num_above(ascending: Floats, threshold: float) -> int:
    return len(ascending) - int(np.searchsorted(ascending, threshold, side="right"))


def _true_positive_rate(out_scores: Floats, in_scores: Floats, false_positive_rate: float) -> float:
    """Share of members above the highest non-member score that may not be above it; scores ascending."""
    num_allowed = int(false_positive_rate * len(out_scores))
    if (num_allowed + 1) / len(out_scores) <= false_positive_rate:  # 0.29 · 100 is 28.999…
        num_allowed += 1
    if num_allowed >= len(out_scores):
        return 1.0
    return _num_above(in_scores, float(out_scores[len(out_scores) - 1 - num_allowed])) / len(in_scores)


def _roc_curve(out_scores: Floats, in_scores: Floats) -> RocCurve:
    """The curve at thresholds whose false positive rates are spread evenly on a logarithmic and on a linear scale.

    Every point is attained by a threshold; nothing is interpolated.
    """
    num_out, num_each = len(out_scores), NUM_ROC_POINTS // 2
    wanted = np.concatenate([np.geomspace(1, num_out, num_each), np.linspace(0, num_out, num_each)])
    thresholds = np.unique(out_scores[num_out - 1 - np.clip(wanted.astype(np.int64), 0, num_out - 1)])[::-1]
    false_positives = num_out - np.searchsorted(out_scores, thresholds, side="right")
    true_positives = len(in_scores) - np.searchsorted(in_scores, thresholds, side="right")
    return RocCurve(
        np.concatenate([[0.0], false_positives / num_out, [1.0]]),
        np.concatenate([[0.0], true_positives / len(in_scores), [1.0]]),
    )
