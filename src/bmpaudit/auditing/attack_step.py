"""The step from shadow models to errors: every variant of the attack, and its controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.attack import (
    AttackPerformance,
    ErrorCounts,
    NullControl,
    attack_performance,
    challenge_models,
    challenge_scores,
    null_control,
    split_runs,
)
from bmpaudit.attack.inputs import SHADOW_FREQUENCY
from bmpaudit.attack.performance import RocCurve, roc_curve
from bmpaudit.errors import InputError
from bmpaudit.plan import AuditPlan, Runtime
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns

MOST_SCORES = 20_000_000  # challenges whose scores are kept for AUC and ROC; more nodes are thinned evenly


@dataclass(frozen=True, eq=False)
class VariantPerformance:
    """What others report of one variant of the attack."""

    figures: AttackPerformance
    roc: RocCurve


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
    performance: Mapping[str, VariantPerformance]
    null_control: NullControl


def run_attacks(plan: AuditPlan, runs: ShadowRuns, priors: Priors, runtime: Runtime) -> Attacks:
    """Attacks the shadow models in all ways that the plan names."""
    prior: npt.NDArray[np.float64] | str = SHADOW_FREQUENCY if plan.prior_source == SHADOW_FREQUENCY else priors.prob
    counts: dict[str, ErrorCounts] = {}
    split_counts: dict[str, ErrorCounts] = {}
    performance: dict[str, VariantPerformance] = {}
    thinned, halves = _thinned_targets(runs), split_runs(runs)
    with runtime.progress("attack", len(plan.views) + 1) as progress:
        for done, view in enumerate(plan.views):
            options = {"settings": plan.attack, "num_threads": runtime.num_threads}
            challenges = challenge_models(runs, view.name, prior, **options)  # type: ignore[arg-type]
            split = challenge_models(halves.challenged, view.name, prior, fitting=halves.fitting, **options)  # type: ignore[arg-type]
            scores = challenge_scores(runs, view.name, prior, targets=thinned, **options)  # type: ignore[arg-type]
            for variant in plan.variants:
                if variant.view != view:
                    continue
                counts[variant.name] = challenges.error_counts(variant.decision)
                if split.is_counted.any():
                    split_counts[variant.name] = split.error_counts(variant.decision)
                performance[variant.name] = VariantPerformance(
                    attack_performance(scores, variant.decision), roc_curve(scores, variant.decision)
                )
            progress(done + 1)
        control = null_control(
            runs,
            plan.main_variant.view.name,
            prior,
            num_permutations=plan.null_permutations,
            seed=plan.seed,
            settings=plan.attack,
            num_threads=runtime.num_threads,
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
