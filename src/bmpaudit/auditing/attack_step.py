"""From shadow models to errors: every variant of the attack, and the permutation test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.arrays import Floats, Ints
from bmpaudit.attack import (
    AttackPerformance,
    ErrorCounts,
    Evidence,
    NotAuditable,
    PermutationTest,
    RocCurve,
    attack_performance,
    challenge,
    permutation_test,
    split_models,
)
from bmpaudit.attack.inputs import SHADOW_FREQUENCY
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.variant import Variant, variants
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph
from bmpaudit.plain import to_json
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns

FEWEST_MODELS = 4
MOST_SCORES = 20_000_000  # challenges whose scores are kept for AUC and ROC; beyond that, nodes are thinned evenly


@dataclass(frozen=True, eq=False)
class Attacks:
    """The results of all variants of the attack.

    Attributes:
        variants: The variants, the main one first.
        counts: Errors of Algorithm 1, by the variant's name.
        split_counts: Errors of Algorithm 4 on half of the models, which can prove something; empty with too few models.
        performance: Accuracy, AUC and the like, by the variant's name.
        permutation_test: Weak decisions of the main view, as they are and after shuffling memberships between models.
            (Strong decisions hardly vary once there is nothing to find, and then look like a strong attack.)
        notes: What was overridden or is unusual.
    """

    variants: tuple[Variant, ...]
    counts: Mapping[str, ErrorCounts]
    split_counts: Mapping[str, ErrorCounts]
    performance: Mapping[str, AttackPerformance]
    permutation_test: PermutationTest
    notes: tuple[str, ...] = ()

    @property
    def main(self) -> str:
        """The name of the variant that the headline is about."""
        return self.variants[0].name

    @property
    def main_counts(self) -> ErrorCounts:
        """Errors of the main variant."""
        return self.counts[self.main]


def attack_prior(plan: AuditPlan, priors: Priors) -> Floats | str:
    """The priors that decisions use."""
    return SHADOW_FREQUENCY if plan.prior_source == SHADOW_FREQUENCY else priors.prob


def run_attacks(plan: AuditPlan, graph: Graph, runs: ShadowRuns, priors: Priors, runtime: Runtime) -> Attacks:
    """Attacks the shadow models in every way that the plan names.

    Raises:
        InputError: if there are too few models.
    """
    if runs.num_models < FEWEST_MODELS:
        raise InputError(
            f"an attack needs at least {FEWEST_MODELS} shadow models, got {runs.num_models}; {len(runs.failed)} failed"
        )
    prior, all_variants = attack_prior(plan, priors), variants(plan)
    groups: dict[tuple[str, tuple[str, ...]], list[Variant]] = {}
    for variant in all_variants:
        groups.setdefault((variant.release, variant.queries), []).append(variant)
    counts: dict[str, ErrorCounts] = {}
    split_counts: dict[str, ErrorCounts] = {}
    performance: dict[str, AttackPerformance] = {}
    thinned = _thinned_targets(runs)
    options: dict[str, Any] = {"settings": plan.decision_settings, "num_threads": runtime.num_threads}
    with runtime.progress("attack", len(groups) + 1) as progress:
        for done, ((release, queries), members) in enumerate(groups.items()):
            evidence = Evidence.of_runs(runs, release, queries, graph)
            halves = split_models(evidence)
            whole = challenge(plan.attack, evidence, prior, plan.rules_by_name, with_scores=thinned is None, **options)
            other = challenge(
                plan.attack, halves.challenged, prior, plan.rules_by_name, fitting=halves.fitting, **options
            )
            scores = whole.scores
            if thinned is not None:
                scores = challenge(
                    plan.attack, evidence, prior, plan.rules_by_name, targets=thinned, with_scores=True, **options
                ).scores
            assert scores is not None  # noqa: S101 - they were asked for
            for variant in members:
                counts[variant.name] = whole.error_counts(variant.rule)
                if other.is_counted.any():
                    split_counts[variant.name] = other.error_counts(variant.rule)
                performance[variant.name] = attack_performance(scores, plan.rules_by_name[variant.rule])
            progress(done + 1)
        main = all_variants[0]
        test = permutation_test(
            plan.attack,
            Evidence.of_runs(runs, main.release, main.queries, graph),
            prior,
            num_permutations=plan.permutations,
            seed=plan.seed,
            **options,
        )
        progress(len(groups) + 1)
    ordered = [variant.name for variant in all_variants]
    return Attacks(
        all_variants,
        {name: counts[name] for name in ordered},
        {name: split_counts[name] for name in ordered if name in split_counts},
        {name: performance[name] for name in ordered},
        test,
    )


def _thinned_targets(runs: ShadowRuns) -> Ints | None:
    num_models, num_nodes = runs.memberships.shape
    most = max(1, MOST_SCORES // num_models)
    return None if num_nodes <= most else np.linspace(0, num_nodes - 1, most).astype(np.int64)


def attack_files(attacks: Attacks) -> dict[str, Callable[[Path], None]]:
    """What writes each file of the step."""
    test = attacks.permutation_test
    tables = {f"{name}.parquet": counts for name, counts in attacks.counts.items()}
    tables |= {f"{name}_split.parquet": counts for name, counts in attacks.split_counts.items()}
    tables["permutation_test.parquet"] = test.counts
    tables |= {f"permutation_{trial:02d}.parquet": counts for trial, counts in enumerate(test.null_counts)}
    summary = {
        "variants": [asdict(variant) for variant in attacks.variants],
        "notes": attacks.notes,
        "not_auditable": [asdict(node) for node in attacks.main_counts.not_auditable],
        "permutation_test": {"statistic": test.statistic, "null_statistics": test.null_statistics, "rule": test.rule},
        "performance": {name: asdict(figures) for name, figures in attacks.performance.items()},
    }
    files: dict[str, Callable[[Path], None]] = {
        f"counts/{name}": partial(_write_counts, counts) for name, counts in tables.items()
    }
    files["attack.json"] = lambda path: _write_json(path, summary)
    return files


def _write_counts(counts: ErrorCounts, path: Path) -> None:
    counts.to_table(path)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(to_json(value) + "\n", encoding="utf-8")


def read_attacks(workspace: Workspace) -> Attacks:
    """Reads what the step left; the workspace has checked that it is whole.

    Raises:
        DataError: if it cannot be read.
    """
    content = workspace.read_json("attack.json")
    try:
        not_auditable = tuple(NotAuditable(**row) for row in content["not_auditable"])
        all_variants = tuple(Variant(row["release"], tuple(row["queries"]), row["rule"]) for row in content["variants"])
        names = [variant.name for variant in all_variants]
        files = set(workspace.files("attack"))

        def read(name: str) -> ErrorCounts:
            counts = workspace.read(f"counts/{name}.parquet", ErrorCounts.from_table)
            return replace(counts, not_auditable=not_auditable)

        test = content["permutation_test"]
        return Attacks(
            variants=all_variants,
            counts={name: read(name) for name in names},
            split_counts={name: read(f"{name}_split") for name in names if f"counts/{name}_split.parquet" in files},
            performance={name: _performance(content["performance"][name]) for name in names},
            permutation_test=PermutationTest(
                test["statistic"],
                np.array(test["null_statistics"]),
                read("permutation_test"),
                tuple(read(f"permutation_{trial:02d}") for trial in range(len(test["null_statistics"]))),
                test["rule"],
            ),
            notes=tuple(content["notes"]),
        )
    except (KeyError, TypeError, AttributeError) as damage:
        raise DataError(f"{workspace.path / 'attack.json'}: damaged: {damage!r}") from None


def _performance(row: dict[str, Any]) -> AttackPerformance:
    roc = RocCurve(**{name: np.array(values) for name, values in row["roc"].items()})
    rates = {float(rate): value for rate, value in row["tpr_at_fpr"].items()}
    return AttackPerformance(**{**row, "tpr_at_fpr": rates, "roc": roc})
