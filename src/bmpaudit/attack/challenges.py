"""Every model is challenged about every node, in one pass of the native kernel."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.attack.counts import ErrorCounts, NotAuditable
from bmpaudit.attack.decision import Decision
from bmpaudit.attack.inputs import check_disjoint, find_not_auditable, prior_probs, target_columns, target_nodes
from bmpaudit.attack.settings import DEFAULT_SETTINGS, AttackSettings
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError

if TYPE_CHECKING:
    from bmpaudit.shadow import ShadowRuns

# The order in which the kernel counts.
_DECISIONS: tuple[Decision, ...] = ("weak", "strong")


@dataclass(frozen=True, eq=False)
class Challenges:
    """What became of all challenges (model, node) of one query view, with both kinds of decision.

    Attributes:
        node: Ids of the T target nodes, shape (T,).
        num_out: Challenged models without each, shape (T,).
        num_in: Challenged models with each, shape (T,).
        errors: False positives and false negatives of weak, then of strong decisions, shape (2, 2, T).
        prior_prob: γ(1), shape (T,).
        is_auditable: Whether an attack was possible, shape (T,).
        not_auditable: The nodes on which it was not, and why.
        settings: How it was decided.
    """

    node: npt.NDArray[np.int64]
    num_out: npt.NDArray[np.int64]
    num_in: npt.NDArray[np.int64]
    errors: npt.NDArray[np.int64]
    prior_prob: npt.NDArray[np.float64]
    is_auditable: npt.NDArray[np.bool_]
    not_auditable: tuple[NotAuditable, ...]
    settings: AttackSettings

    @property
    def is_counted(self) -> npt.NDArray[np.bool_]:
        """Which of the targets go into the counts, shape (T,)."""
        return self.is_auditable | (self.settings.unfittable == "non-member")

    def error_counts(self, decision: Decision = "strong") -> ErrorCounts:
        """The errors of one kind of decision."""
        false_positives, false_negatives = self.errors[check_decision(decision)]
        kept = self.is_counted
        return ErrorCounts(
            self.node[kept],
            self.num_out[kept],
            self.num_in[kept],
            false_positives[kept],
            false_negatives[kept],
            self.prior_prob[kept],
            self.not_auditable,
        )


@dataclass(frozen=True, eq=False)
class ChallengeScores:
    """The attack's score of each challenge: above the threshold, the decision is "member".

    Attributes:
        node: Ids of the K nodes, shape (K,).
        log_likelihood_ratio: log N(z; μ_1, σ_1²) - log N(z; μ_0, σ_0²), the score of weak decisions, shape (J, K); -∞
            throughout for nodes that were kept though they could not be attacked.
        memberships: The truth, shape (J, K).
        prior_prob: γ(1), shape (K,).
        threshold: log(c_0/c_1).
    """

    node: npt.NDArray[np.int64]
    log_likelihood_ratio: npt.NDArray[np.float64]
    memberships: npt.NDArray[np.bool_]
    prior_prob: npt.NDArray[np.float64]
    threshold: float

    def of(self, decision: Decision) -> npt.NDArray[np.float64]:
        """Scores of weak decisions, or of strong ones: those and the log prior odds, shape (J, K)."""
        if _DECISIONS[check_decision(decision)] == "weak":
            return self.log_likelihood_ratio
        with np.errstate(invalid="ignore"):
            posterior = self.log_likelihood_ratio + _log_odds(self.prior_prob)
        # A node that was kept with a prior of 1 is still never decided to be a member.
        return np.where(np.isneginf(self.log_likelihood_ratio), -np.inf, posterior)


def check_decision(decision: str) -> int:
    """The place of a decision in the kernel's order.

    Raises:
        InputError: if there is no such decision.
    """
    if decision not in _DECISIONS:
        raise InputError(f"decision must be {' or '.join(get_args(Decision))}, got decision={decision!r}")
    return _DECISIONS.index(decision)


def challenge_models(
    runs: ShadowRuns,
    view: str,
    prior_prob: npt.ArrayLike | str,
    *,
    fitting: ShadowRuns | None = None,
    settings: AttackSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> Challenges:
    """Challenges each model about each target node: weak and strong decisions in one pass.

    Args:
        runs: The models to challenge.
        view: One of the query views of `runs`.
        prior_prob: γ(1) of all nodes of the graph, or "shadow-frequency" (see `node_mia`).
        fitting: Models to fit the hypotheses on, which must be others (Algorithm 4); without them, each model is
            challenged with hypotheses fitted on all other models of `runs` (Algorithm 1).
        settings: How to decide, and what to do about nodes that cannot be attacked.
        targets: The target set 𝒯 as node ids, or flags for all nodes; all nodes if not given.
        num_threads: More than cores is allowed, and no faster; the result does not depend on it.

    Raises:
        InputError: if something given does not fit.
    """
    return _Pass(runs, view, prior_prob, fitting, settings, targets).run(num_threads, scores=None)


def challenge_scores(
    runs: ShadowRuns,
    view: str,
    prior_prob: npt.ArrayLike | str,
    *,
    fitting: ShadowRuns | None = None,
    settings: AttackSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> ChallengeScores:
    """The score of each challenge; arguments as those of `challenge_models`. Takes 8 bytes a challenge."""
    work = _Pass(runs, view, prior_prob, fitting, settings, targets)
    scores = np.empty(work.member.shape)
    challenges = work.run(num_threads, scores)
    kept = challenges.is_counted
    if not kept.any():
        challenges.error_counts()  # says why
    all_kept = bool(kept.all())
    return ChallengeScores(
        challenges.node[kept],
        scores if all_kept else scores[:, kept],
        work.member.view(np.bool_) if all_kept else work.member.view(np.bool_)[:, kept],
        challenges.prior_prob[kept],
        settings.threshold,
    )


class _Pass:
    """One pass over all challenges: checked input, ready for the kernel."""

    def __init__(
        self,
        runs: ShadowRuns,
        view: str,
        prior_prob: npt.ArrayLike | str,
        fitting: ShadowRuns | None,
        settings: AttackSettings,
        targets: npt.ArrayLike | None,
    ) -> None:
        num_nodes = runs.memberships.shape[1]
        if fitting is not None and fitting.memberships.shape[1] != num_nodes:
            raise InputError(
                f"fitting models must be of the same graph: {num_nodes} nodes, got {fitting.memberships.shape[1]}"
            )
        self.settings = settings
        self.node = target_nodes(targets, num_nodes)
        columns = None if targets is None else self.node
        self.statistics, self.member = target_columns(runs, view, columns)
        self.num_in = self.member.sum(axis=0, dtype=np.int64)
        self.num_out = len(self.member) - self.num_in
        self.fitting_statistics: npt.NDArray[np.float32] | None = None
        self.fitting_member: npt.NDArray[np.uint8] | None = None
        if fitting is None:  # the challenged model itself is one of those counted
            num_out, num_in, needed = self.num_out, self.num_in, settings.min_models + 1
        else:
            self.fitting_statistics, self.fitting_member = target_columns(fitting, view, columns)
            check_disjoint(fitting, runs, view)
            num_in = self.fitting_member.sum(axis=0, dtype=np.int64)
            num_out, needed = len(self.fitting_member) - num_in, settings.min_models
        self.prior_prob = prior_probs(prior_prob, runs if fitting is None else fitting)[self.node]
        self.not_auditable = find_not_auditable(self.node, num_out, num_in, self.prior_prob, needed)
        self.is_auditable = ~np.isin(self.node, [left.node for left in self.not_auditable])

    def run(self, num_threads: int | None, scores: npt.NDArray[np.float64] | None) -> Challenges:
        """Runs the kernel, which also fills `scores` if given, shape (J, T)."""
        if num_threads is not None:
            check_at_least_one(num_threads=num_threads)
        errors = np.zeros((len(_DECISIONS), 2, len(self.node)), dtype=np.int64)
        _native.challenge_models(
            self.statistics,
            self.member,
            self.fitting_statistics,
            self.fitting_member,
            _log_odds(self.prior_prob),
            self.is_auditable.view(np.uint8),
            self.settings.pooled_variance,
            self.settings.min_sigma,
            self.settings.threshold,
            num_threads or os.cpu_count() or 1,
            errors,
            scores,
        )
        return Challenges(
            node=self.node,
            num_out=self.num_out,
            num_in=self.num_in,
            errors=errors,
            prior_prob=self.prior_prob,
            is_auditable=self.is_auditable,
            not_auditable=self.not_auditable,
            settings=self.settings,
        )


def _log_odds(prior_prob: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.log(prior_prob) - np.log1p(-prior_prob)
