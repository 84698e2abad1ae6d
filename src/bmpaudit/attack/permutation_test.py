"""Does the attack find more than it would if there were nothing to find?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bmpaudit import registry
from bmpaudit.arrays import Floats
from bmpaudit.attack.challenges import challenge
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.rules import Weak, as_rule
from bmpaudit.attack.settings import DEFAULT_SETTINGS, DecisionSettings
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.streams import Purpose, check_seed, stream

if TYPE_CHECKING:
    from bmpaudit.interfaces import Attack, DecisionRule


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """The attack on the models as they are, and after shuffling memberships between models.

    Attributes:
        statistic: Mean of |A/n_0 + B/n_1 - 1| under the weak rule, over nodes with models on both sides; 0 is guessing,
            1 never (or always) wrong.
        null_statistics: The same after each of R shuffles, shape (R,).
        counts: Errors on the models as they are.
        null_counts: Errors after each shuffle, R of them.
        rule: Label of the decision rule that the counts are of.
    """

    statistic: float
    null_statistics: Floats
    counts: ErrorCounts
    null_counts: tuple[ErrorCounts, ...]
    rule: str = "weak"

    @property
    def is_leakage_found(self) -> bool:
        """Whether the statistic exceeds all null statistics; without leakage the probability is at most 1/(R + 1)."""
        return bool(self.statistic > self.null_statistics.max())

    @property
    def p_value(self) -> float:
        """(1 + number of null statistics that are at least the real one)/(R + 1)."""
        num_reached = np.count_nonzero(self.null_statistics >= self.statistic)
        return float(1 + num_reached) / (len(self.null_statistics) + 1)

    def __str__(self) -> str:
        verdict = "leakage found" if self.is_leakage_found else "no leakage found"
        low, high = self.null_statistics.min(), self.null_statistics.max()
        return (
            f"{verdict} (p = {self.p_value:.3g}): mean |A/n0 + B/n1 - 1| is {self.statistic:.4f}; after shuffling "
            f"memberships between models it is {low:.4f} to {high:.4f} in {len(self.null_statistics)} permutations"
        )


def permutation_test(
    attack: Attack,
    models: Evidence,
    prior_prob: npt.ArrayLike | str,
    *,
    rule: str | DecisionRule = "weak",
    num_permutations: int = 19,
    seed: int = 0,
    settings: DecisionSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> PermutationTest:
    """Attacks the models as they are, and again after shuffling memberships between models.

    Whole rows of memberships are shuffled, the same way for all nodes: the priors and the dependence between nodes stay
    as they are, and only the link between a model and its training sample is cut. If answers and memberships are
    independent, the real statistic and the R null ones are exchangeable, so that the real one is the largest with
    probability at most 1/(R + 1).

    Args:
        attack: Attack that scores the challenges.
        models: Models to challenge, each with a fit on others.
        prior_prob: As in `challenge`; the weak rule only uses it to leave out nodes with a prior of 0 or 1.
        rule: Decision rule of the counts that are kept; the statistic always comes from the weak rule.
        num_permutations: R, the number of shuffles.
        seed: Random seed; shuffle r depends on (seed, r) only.
        settings: Costs of errors; nodes that cannot be attacked are left out in any case.
        targets: As in `challenge`.
        num_threads: Number of threads; the result does not depend on it.

    Raises:
        InputError: if there are fewer than 2 models, or inputs do not fit together.
    """
    check_seed(seed)
    check_at_least_one(num_permutations=num_permutations)
    if models.num_models < 2:
        raise InputError(f"there must be at least 2 models to shuffle memberships, got {models.num_models}")
    kept = as_rule(rule)
    rules = {"statistic": Weak(), "kept": kept}
    settings = replace(settings, unfittable="leave-out")
    statistics, counts = [], []
    for trial in range(num_permutations + 1):
        shuffled = models
        if trial > 0:
            order = stream(seed, trial - 1, Purpose.PERMUTATION_TEST).permutation(models.num_models)
            shuffled = models.permuted(order)
        challenges = challenge(
            attack, shuffled, prior_prob, rules, settings=settings, targets=targets, num_threads=num_threads
        )
        statistics.append(mean_distance_from_guessing(challenges.error_counts("statistic")))
        counts.append(challenges.error_counts("kept"))
    label = registry.label(registry.RULE, kept)
    return PermutationTest(statistics[0], np.array(statistics[1:]), counts[0], tuple(counts[1:]), label)


def mean_distance_from_guessing(counts: ErrorCounts) -> float:
    """Mean over nodes of |A/n_0 + B/n_1 - 1|, which is 0 where the decision does not depend on the truth.

    Nodes that are in all models or in none have one of the two rates only, and do not count.
    """
    has_both = (counts.num_out > 0) & (counts.num_in > 0)
    if not has_both.any():
        return 0.0
    both = counts.take(has_both)
    rates = both.false_positives / both.num_out + both.false_negatives / both.num_in
    return float(np.abs(rates - 1.0).mean())
