"""Would the attack find as much where there is nothing to find?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bmpaudit.attack.challenges import challenge_models
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.decision import Decision
from bmpaudit.attack.settings import DEFAULT_SETTINGS, AttackSettings
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.streams import Purpose, check_seed, stream

if TYPE_CHECKING:
    from bmpaudit.shadow import ShadowRuns


@dataclass(frozen=True, eq=False)
class NullControl:
    """The attack on the models as they are, and on models whose memberships were exchanged.

    Attributes:
        statistic: Mean over nodes of |A/n_0 + B/n_1 - 1| from weak decisions; 0 is guessing, 1 never (or always) wrong.
        null_statistics: The same after each exchange, shape (R,).
        counts: Errors on the models as they are.
        null_counts: Errors after each exchange, R of them.
        decision: What kind of decision the counts are of.
    """

    statistic: float
    null_statistics: npt.NDArray[np.float64]
    counts: ErrorCounts
    null_counts: tuple[ErrorCounts, ...]
    decision: Decision

    @property
    def leakage_found(self) -> bool:
        """Whether the statistic exceeds all of the null; without leakage this has probability at most 1/(R + 1)."""
        return bool(self.statistic > self.null_statistics.max())

    @property
    def p_value(self) -> float:
        """(1 + number of null statistics that reach the real one)/(R + 1)."""
        reached = np.count_nonzero(self.null_statistics >= self.statistic)
        return float(1 + reached) / (len(self.null_statistics) + 1)

    def __str__(self) -> str:
        verdict = "leakage found" if self.leakage_found else "no leakage found"
        low, high = self.null_statistics.min(), self.null_statistics.max()
        return (
            f"{verdict}: mean |A/n0 + B/n1 - 1| is {self.statistic:.4f}, "
            f"with memberships exchanged {low:.4f} to {high:.4f} in {len(self.null_statistics)} trials"
        )


def null_control(
    runs: ShadowRuns,
    view: str,
    prior_prob: npt.ArrayLike | str,
    *,
    decision: Decision = "weak",
    num_permutations: int = 19,
    seed: int = 0,
    settings: AttackSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> NullControl:
    """Runs Algorithm 1 on the models, and again with whole rows of memberships permuted between models.

    One permutation serves all nodes: the priors and the dependence between nodes stay as they are, only the link
    between a model and its sample is cut. If answers and memberships are independent, the real statistic and the R
    null ones are exchangeable, so that the real one is the largest with probability at most 1/(R + 1).

    Args:
        runs: The shadow models.
        view: One of their query views.
        prior_prob: As in `node_mia`; weak decisions only use it to leave out nodes with a prior of 0 or 1.
        decision: What kind of decision the kept counts are of; the statistic always comes from weak decisions.
        num_permutations: R.
        seed: Permutation r depends on (seed, r) only.
        settings: How to decide; nodes that cannot be attacked are left out in any case.
        targets: As in `node_mia`.
        num_threads: The result does not depend on it.
    """
    check_seed(seed)
    check_at_least_one(num_permutations=num_permutations)
    if runs.num_models < 2:
        raise InputError(f"there must be at least 2 models to exchange memberships, got {runs.num_models}")
    settings = replace(settings, unfittable="leave-out")
    statistics, counts = [], []
    for trial in range(num_permutations + 1):
        memberships = runs.memberships
        if trial > 0:
            order = stream(seed, trial - 1, Purpose.NULL_CONTROL).permutation(runs.num_models)
            memberships = memberships[order]
        challenges = challenge_models(
            replace(runs, memberships=memberships),
            view,
            prior_prob,
            settings=settings,
            targets=targets,
            num_threads=num_threads,
        )
        statistics.append(mean_distance_from_guessing(challenges.error_counts("weak")))
        counts.append(challenges.error_counts(decision))
    return NullControl(statistics[0], np.array(statistics[1:]), counts[0], tuple(counts[1:]), decision)


def mean_distance_from_guessing(counts: ErrorCounts) -> float:
    """Mean over nodes of |A/n_0 + B/n_1 - 1|, which is 0 where the decision does not depend on the truth."""
    rates = counts.false_positives / counts.num_out + counts.false_negatives / counts.num_in
    return float(np.abs(rates - 1.0).mean())
