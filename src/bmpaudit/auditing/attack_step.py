"""The step from shadow models to errors: every variant of the attack, and its controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit import registry
from bmpaudit.attack import (
    SHADOW_FREQUENCY,
    AttackPerformance,
    ErrorCounts,
    Evidence,
    PermutationTest,
    attack_performance,
    challenge,
    permutation_test,
    split_models,
)
from bmpaudit.errors import InputError
from bmpaudit.interfaces import DecisionRule
from bmpaudit.plan import AuditPlan, Runtime
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns

MOST_SCORES = 20_000_000  # challenges whose scores are kept for AUC and ROC; more nodes are thinned evenly


@dataclass(frozen=True, eq=False)
class Attacks:
    """What all variants of the attack came to.

    Attributes:
        counts: Errors of Algorithm 1, by the variant's name.
        split_counts: Errors of Algorithm 4 on half of the models, which prove something; none with too few models.
        performance: By the variant's name.
        null_control: Weak decisions of the main view against exchanged memberships. (Strong ones hardly vary once there
            is nothing to find, and then look like a strong attack.)
    """

    counts: Mapping[str, ErrorCounts]
    split_counts: Mapping[str, ErrorCounts]
    performance: Mapping[str, AttackPerformance]
    null_control: PermutationTest


def run_attacks(plan: AuditPlan, runs: ShadowRuns, priors: Priors, runtime: Runtime) -> Attacks:
    """Attacks the shadow models in all ways that the plan names."""
    prior: npt.NDArray[np.float64] | str = SHADOW_FREQUENCY if plan.prior_source == SHADOW_FREQUENCY else priors.prob
    counts: dict[str, ErrorCounts] = {}
    split_counts: dict[str, ErrorCounts] = {}
    performance: dict[str, AttackPerformance] = {}
    thinned, attack, settings = _thinned_targets(runs), plan.attack.attack, plan.attack.decision
    rules: dict[str, DecisionRule] = {decision: registry.build(registry.RULE, decision) for decision in plan.decisions}
    num_threads = runtime.num_threads
    with runtime.progress("attack", len(plan.views) + 1) as progress:
        for done, view in enumerate(plan.views):
            models = Evidence.of_runs(runs, view.output, [view.edges])
            halves = split_models(models)
            challenges = challenge(
                attack, models, prior, rules, settings=settings, with_scores=thinned is None, num_threads=num_threads
            )
            split = challenge(
                attack,
                halves.challenged,
                prior,
                rules,
                fitting=halves.fitting,
                settings=settings,
                num_threads=num_threads,
            )
            scores = challenges.scores
            if scores is None:
                scores = challenge(
                    attack,
                    models,
                    prior,
                    rules,
                    settings=settings,
                    targets=thinned,
                    with_scores=True,
                    num_threads=num_threads,
                ).scores
            for variant in plan.variants:
                if variant.view != view or scores is None:
                    continue
                counts[variant.name] = challenges.error_counts(variant.decision)
                if split.is_counted.any():
                    split_counts[variant.name] = split.error_counts(variant.decision)
                performance[variant.name] = attack_performance(scores, variant.decision)
            progress(done + 1)
        main = plan.main_variant.view
        control = permutation_test(
            attack,
            Evidence.of_runs(runs, main.output, [main.edges]),
            prior,
            num_permutations=plan.null_permutations,
            seed=plan.seed,
            settings=settings,
            num_threads=num_threads,
        )
        progress(len(plan.views) + 1)
    return Attacks(counts, split_counts, performance, control)


def check_enough_models(runs: ShadowRuns) -> None:
    """Refuses to go on with hardly any models.

    Raises:
        InputError: if fewer than four were trained.
    """
    if runs.num_models < 4:
        raise InputError(f"an attack needs at least 4 shadow models, got {runs.num_models}; {len(runs.failed)} failed")


def _thinned_targets(runs: ShadowRuns) -> npt.NDArray[np.int64] | None:
    num_models, num_nodes = runs.memberships.shape
    most = max(1, MOST_SCORES // num_models)
    return None if num_nodes <= most else np.linspace(0, num_nodes - 1, most).astype(np.int64)
