"""Does the attack find more than it would if there were nothing to find?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Floats
from bmpaudit.attack.challenges import challenge
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.performance import area_under_curve
from bmpaudit.attack.rules import Weak
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.streams import Purpose, check_seed, stream

if TYPE_CHECKING:
    from bmpaudit.interfaces import Attack, Progress

SIGNIFICANT = 0.05


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
    statistics = []
    for trial in range(num_permutations + 1):
        order = np.arange(models.num_models)
        if trial > 0:
            order = stream(seed, trial - 1, Purpose.PERMUTATION_TEST).permutation(models.num_models)
        # Only memberships are shuffled: what an attack has worked out about the statistics stays.
        statistics.append(max(_auc(attack, part.permuted(order), prior_prob, num_threads) for part in parts))
        if progress is not None:
            progress(trial + 1)
    return PermutationTest(statistics[0], np.array(statistics[1:]))


def _auc(attack: Attack, models: Evidence, prior_prob: npt.ArrayLike | str, num_threads: int | None) -> float:
    scores = challenge(attack, models, prior_prob, {"weak": Weak()}, with_scores=True, num_threads=num_threads).scores
    assert scores is not None  # noqa: S101 - they were asked for
    return area_under_curve(scores.of("weak"), scores.memberships, num_threads=num_threads)
