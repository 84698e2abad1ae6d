"""Algorithms 1 and 4: how often a membership inference attack errs about each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy.typing as npt

from bmpaudit.attack.challenges import challenge_models
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.decision import Decision
from bmpaudit.attack.inputs import SHADOW_FREQUENCY
from bmpaudit.attack.settings import AttackSettings, Unfittable

if TYPE_CHECKING:
    from bmpaudit.shadow import ShadowRuns


def node_mia(
    runs: ShadowRuns,
    view: str,
    prior_prob: npt.ArrayLike | str,
    *,
    decision: Decision = "strong",
    targets: npt.ArrayLike | None = None,
    min_models: int = 2,
    unfittable: Unfittable = "leave-out",
    pooled_variance: bool = False,
    min_sigma: float = 0.0,
    cost_false_positive: float = 1.0,
    cost_false_negative: float = 1.0,
    num_threads: int | None = None,
) -> ErrorCounts:
    """Algorithm 1 (Node-MIA): each model is challenged with hypotheses fitted on all other models.

    The decisions are those of Algorithm 2 (`decide`); all of them take O(models · nodes) together. Since challenges
    share the models they are fitted on, the counts of a node vary more than binomial counts would; `split_mia` gives
    binomial ones.

    Args:
        runs: The shadow models' memberships and statistics.
        view: One of the query views of `runs`.
        prior_prob: γ(1) of all nodes of the graph, as `prior_probabilities(graph, sampler).prob` gives it; or
            "shadow-frequency", the paper's way: how often each node is in the samples of `runs`.
        decision: `strong` weighs the likelihood ratio with the prior odds, `weak` does not.
        targets: The target set 𝒯 as node ids, or flags for all nodes; all nodes if not given.
        min_models: Models that each hypothesis is fitted on, at least, not counting the challenged one.
        unfittable: Whether nodes with fewer, or with a prior of 0 or 1, are left out or kept as "non-member".
        pooled_variance: Whether the two hypotheses share one σ.
        min_sigma: σ is at least this.
        cost_false_positive: c_0 of Theorem 7; the decision is "member" above c_0/c_1.
        cost_false_negative: c_1 of Theorem 7.
        num_threads: The result does not depend on it.

    Raises:
        InputError: if something given does not fit, or no node is left.
    """
    settings = AttackSettings(
        min_models, unfittable, pooled_variance, min_sigma, cost_false_positive, cost_false_negative
    )
    challenges = challenge_models(runs, view, prior_prob, settings=settings, targets=targets, num_threads=num_threads)
    return challenges.error_counts(decision)


def split_mia(
    fitting: ShadowRuns,
    challenged: ShadowRuns,
    view: str,
    prior_prob: npt.ArrayLike | str = SHADOW_FREQUENCY,
    *,
    decision: Decision = "strong",
    targets: npt.ArrayLike | None = None,
    min_models: int = 2,
    unfittable: Unfittable = "leave-out",
    pooled_variance: bool = False,
    min_sigma: float = 0.0,
    cost_false_positive: float = 1.0,
    cost_false_negative: float = 1.0,
    num_threads: int | None = None,
) -> ErrorCounts:
    """Algorithm 4: the models that are challenged are others than those the hypotheses are fitted on.

    Given the fitted hypotheses, the challenges of a node are independent and its counts binomial. The prior is by
    default the frequency over the fitting models, as in the paper. Other arguments as in `node_mia`; `split_runs`
    divides one set of models.

    Args:
        fitting: Models that the hypotheses are fitted on.
        challenged: Models that are challenged; none of them may be among `fitting`.
        view: A query view that both have.
        prior_prob: γ(1) of all nodes of the graph, or "shadow-frequency": over the fitting models.
        decision: `strong` weighs the likelihood ratio with the prior odds, `weak` does not.
        targets: The target set 𝒯 as node ids, or flags for all nodes; all nodes if not given.
        min_models: Fitting models on each side, at least.
        unfittable: Whether nodes with fewer, or with a prior of 0 or 1, are left out or kept as "non-member".
        pooled_variance: Whether the two hypotheses share one σ.
        min_sigma: σ is at least this.
        cost_false_positive: c_0 of Theorem 7; the decision is "member" above c_0/c_1.
        cost_false_negative: c_1 of Theorem 7.
        num_threads: The result does not depend on it.

    Raises:
        InputError: if something given does not fit, or no node is left.
    """
    settings = AttackSettings(
        min_models, unfittable, pooled_variance, min_sigma, cost_false_positive, cost_false_negative
    )
    challenges = challenge_models(
        challenged, view, prior_prob, fitting=fitting, settings=settings, targets=targets, num_threads=num_threads
    )
    return challenges.error_counts(decision)
