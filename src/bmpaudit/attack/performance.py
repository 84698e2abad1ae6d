"""Figures that other work reports (accuracy, AUC, TPR at low FPR, the ROC curve), and is there anything to find?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.attack.challenges import ChallengeScores, challenge
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.rules import Weak
from bmpaudit.util.errors import InputError, check_at_least_one, thread_count
from bmpaudit.util.streams import Purpose, check_seed, stream
from bmpaudit.util.values import AnyFloats, Flags, Floats, as_bytes

if TYPE_CHECKING:
    from bmpaudit.interfaces import Attack, DecisionRule, Progress


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

    Attributes:
        num_out: Number of challenges in which the node was not a member.
        num_in: Number of challenges in which it was.
        accuracy: Share of right decisions.
        auc: Probability that a member's score exceeds a non-member's, ties counting half.
        tpr_at_fpr: For each false positive rate asked for, the largest true positive rate of a threshold whose false
            positive rate is not above it.
        roc: ROC curve.
    """

    num_out: int
    num_in: int
    accuracy: float
    auc: float
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

    Args:
        scores: Scores of all challenges, as `challenge(..., with_scores=True)` keeps them.
        rule: Decision rule, by name or itself.
        false_positive_rates: Rates at which true positive rates are wanted.
        num_threads: Number of threads; the result does not depend on it.

    Raises:
        InputError: if a rate is outside [0, 1], or all challenges have the same truth.
    """
    for rate in false_positive_rates:
        if not 0 <= rate <= 1:
            raise InputError(f"false_positive_rates must be in [0, 1], got {rate}")
    # Sorting takes most of the time, and everything else follows from these two arrays.
    out_scores, in_scores = _sorted_sides(scores.of(rule), scores.memberships, num_threads)
    num_out, num_in = len(out_scores), len(in_scores)
    num_wrong = _num_above(out_scores, scores.threshold) + num_in - _num_above(in_scores, scores.threshold)
    return AttackPerformance(
        num_out=num_out,
        num_in=num_in,
        accuracy=1.0 - num_wrong / (num_out + num_in),
        auc=_auc(out_scores, in_scores),
        tpr_at_fpr={float(rate): _true_positive_rate(out_scores, in_scores, rate) for rate in false_positive_rates},
        roc=_roc_curve(out_scores, in_scores),
    )


def area_under_curve(scores: Floats, is_member: Flags, *, num_threads: int | None = None) -> float:
    """AUC: the probability that a member's score exceeds a non-member's, ties counting half; both of shape (J, K).

    Raises:
        InputError: if all challenges have the same truth.
    """
    return _auc(*_sorted_sides(scores, is_member, num_threads))


class RocWithinModels(NamedTuple):
    """The ROC curve of each of J models, over its nodes; NaN where a model has no member or no non-member."""

    auc: Floats  # as in `AttackPerformance`, shape (J,)
    true_positive_rate: Floats  # the largest of a threshold whose false positive rate is not above that wanted


def roc_within_models(
    scores: AnyFloats, is_member: Flags, false_positive_rate: float, *, num_threads: int | None = None
) -> RocWithinModels:
    """AUC and true positive rate within each model; both arrays of shape (J, K)."""
    found = RocWithinModels(*np.empty((2, len(scores))))
    values: AnyFloats = scores if scores.dtype == np.float32 else scores.astype(np.float64)
    values = np.ascontiguousarray(values)
    _native.roc_within_models(values, as_bytes(is_member), false_positive_rate, thread_count(num_threads), *found)
    return found


def _sorted_sides(scores: Floats, is_member: Flags, num_threads: int | None) -> tuple[Floats, Floats]:
    """Scores of non-members and of members, ascending."""
    values = np.ascontiguousarray(scores, dtype=np.float64)
    out_scores, in_scores = _native.sort_by_side(values, as_bytes(is_member), thread_count(num_threads))
    if not len(out_scores) or not len(in_scores):
        raise InputError(
            f"there must be challenges with members and with non-members, got {len(in_scores)} and {len(out_scores)}"
        )
    return out_scores, in_scores


def _num_above(ascending: Floats, threshold: float) -> int:
    return len(ascending) - int(np.searchsorted(ascending, threshold, side="right"))


def _auc(out_scores: Floats, in_scores: Floats) -> float:
    return _native.pairs_in_order(out_scores, in_scores) / (2.0 * len(out_scores) * len(in_scores))


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


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """The attack on the models as they are, and after shuffling memberships between models.

    Attributes:
        statistic: AUC of the attack's log-likelihood ratios over all challenges: the probability that a member scores
            above a non-member. Priors do not enter, so the sampling alone never raises it. Of an attack that takes one
            query at a time, the largest over the queries.
        null_statistics: The same after each of R shuffles, shape (R,).
    """

    statistic: float
    null_statistics: Floats

    @property
    def is_leakage_found(self) -> bool:
        """Whether the p-value is at most 0.05, which takes at least 19 shuffles."""
        return self.p_value <= SIGNIFICANT

    @property
    def p_value(self) -> float:
        """(1 + number of null statistics that are at least the real one)/(R + 1)."""
        num_reached = np.count_nonzero(self.null_statistics >= self.statistic)
        return float(1 + num_reached) / (len(self.null_statistics) + 1)

    def __str__(self) -> str:
        verdict = "leakage found" if self.is_leakage_found else "no leakage found"
        low, high = self.null_statistics.min(), self.null_statistics.max()
        return (
            f"{verdict} (p = {self.p_value:.3g}): the AUC is {self.statistic:.4f}; after shuffling memberships between "
            f"models it is {low:.4f} to {high:.4f} in {len(self.null_statistics)} permutations"
        )


def permutation_test(
    attack: Attack,
    models: Evidence,
    prior_prob: npt.ArrayLike | str,
    *,
    num_permutations: int = 19,
    seed: int = 0,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
    progress: Progress | None = None,
) -> PermutationTest:
    """Attacks the models as they are, and again after shuffling memberships between models.

    Whole rows of memberships are shuffled, the same way for all nodes: the priors and the dependence between nodes stay
    as they are, and only the link between a model and its training sample is cut. If answers and memberships are
    independent, the real statistic and the R null ones are exchangeable, so that the p-value is at most p with
    probability at most p. That holds for the largest AUC over several queries too, as it is taken anew after each
    shuffle.

    Args:
        attack: Attack that scores the challenges.
        models: Models to challenge, each with a fit on others.
        prior_prob: As in `challenge`; only used to leave out nodes with a prior of 0 or 1.
        num_permutations: R, the number of shuffles.
        seed: Random seed; shuffle r depends on (seed, r) only.
        targets: As in `challenge`.
        num_threads: Number of threads; the result does not depend on it.
        progress: Called with the number of attacks done, of R + 1.

    Raises:
        InputError: if there are fewer than 2 models, or inputs do not fit together.
    """
    check_seed(seed)
    check_at_least_one(num_permutations=num_permutations)
    if models.num_models < 2:
        raise InputError(f"there must be at least 2 models to shuffle memberships, got {models.num_models}")
    if targets is not None:
        models = models.about(targets)
    parts = [models] if attack.fuses_queries else [models.asked(query) for query in models.queries]

    def auc(part: Evidence) -> float:
        made = challenge(attack, part, prior_prob, {"weak": Weak()}, with_scores=True, num_threads=num_threads)
        assert made.scores is not None  # noqa: S101 - they were asked for
        return area_under_curve(made.scores.of("weak"), made.scores.memberships, num_threads=num_threads)

    statistics = []
    for trial in range(num_permutations + 1):
        order = np.arange(models.num_models)
        if trial > 0:
            order = stream(seed, trial - 1, Purpose.PERMUTATION_TEST).permutation(models.num_models)
        # Only memberships are shuffled: what an attack has worked out about the statistics stays.
        statistics.append(max(auc(part.permuted(order)) for part in parts))
        if progress is not None:
            progress(trial + 1)
    return PermutationTest(statistics[0], np.array(statistics[1:]))
