"""From shadow models to errors: every variant of the attack, and the permutation test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.arrays import Floats
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
)
from bmpaudit.attack.challenges import thinned
from bmpaudit.attack.inputs import SHADOW_FREQUENCY
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.variant import Variant, attack_on, queries_of, variants
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph
from bmpaudit.plain import to_json
from bmpaudit.reading.text import Schema, record
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns

FEWEST_MODELS = 4
HALF = "half"
MOST_SCORES = 20_000_000  # challenges whose scores are kept for AUC and ROC; beyond that, nodes are thinned evenly
MOST_PERMUTED = 300_000  # challenges of each attack of the permutation test; likewise

_TEXT, _NUMBER, _WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}
_TEXTS, _NUMBERS = {"type": "array", "items": _TEXT}, {"type": "array", "items": _NUMBER, "minItems": 1}
SCHEMA: Schema = record(
    variants={
        "type": "array",
        "minItems": 1,
        "items": record(release=_TEXT, queries=_TEXTS, rule=_TEXT),
    },
    notes=_TEXTS,
    not_auditable={
        "type": "array",
        "items": record(node=_WHOLE, reason=_TEXT, name={"type": ["string", "null"]}),
    },
    permutation_test=record(statistic=_NUMBER, null_statistics=_NUMBERS),
    performance={
        "type": "object",
        "additionalProperties": record(
            num_out=_WHOLE,
            num_in=_WHOLE,
            accuracy=_NUMBER,
            auc=_NUMBER,
            tpr_at_fpr={
                "type": "object",
                "patternProperties": {"^[0-9]+([.][0-9]+)?(e-[0-9]+)?$": _NUMBER},
                "additionalProperties": False,
            },
            roc=record(false_positive_rate=_NUMBERS, true_positive_rate=_NUMBERS),
        ),
    },
)
"""Of `attack.json`."""


@dataclass(frozen=True, eq=False)
class Attacks:
    """The results of all variants of the attack.

    Attributes:
        variants: The variants, the main one first.
        counts: Errors of Algorithm 1, by the variant's name.
        performance: Accuracy, AUC and the like, by the variant's name.
        half_counts: Errors of the main variant with the first half of the models; None if that is too few to attack.
        permutation_test: The attack on the main release, as it is and after shuffling memberships between models.
        notes: What was overridden or is unusual.
    """

    variants: tuple[Variant, ...]
    counts: Mapping[str, ErrorCounts]
    performance: Mapping[str, AttackPerformance]
    half_counts: ErrorCounts | None
    permutation_test: PermutationTest
    notes: tuple[str, ...] = ()

    @property
    def releases(self) -> tuple[str, ...]:
        """Labels of the releases, the main one first."""
        return tuple(dict.fromkeys(variant.release for variant in self.variants))

    def strongest(self, release: str) -> Variant:
        """The variant with the highest AUC on a release, by the main decision rule."""
        rule = self.variants[0].rule
        candidates = [variant for variant in self.variants if (variant.release, variant.rule) == (release, rule)]
        return max(candidates, key=lambda variant: self.performance[variant.name].auc)

    @property
    def main(self) -> str:
        """The name of the variant that the headline is about: the strongest attack on the main release."""
        return self.strongest(self.variants[0].release).name

    @property
    def main_counts(self) -> ErrorCounts:
        """Errors of the main variant."""
        return self.counts[self.main]


def attack_prior(plan: AuditPlan, priors: Priors) -> Floats | str:
    """The priors that decisions use."""
    return SHADOW_FREQUENCY if plan.prior_source == SHADOW_FREQUENCY else priors.prob


def run_permutation_test(
    plan: AuditPlan, graph: Graph, runs: ShadowRuns, priors: Priors, runtime: Runtime
) -> PermutationTest:
    """Attacks the main release as it is, and after shuffling memberships between models.

    Raises:
        InputError: if there are too few models.
    """
    _check_enough(runs)
    main = variants(plan)[0].release
    targets = thinned(graph.num_nodes, runs.num_models, MOST_PERMUTED)
    with runtime.progress("permutation test", plan.permutations + 1) as progress:
        return permutation_test(
            attack_on(plan, main),
            Evidence.of_runs(runs, main, queries_of(plan), graph),
            attack_prior(plan, priors),
            num_permutations=plan.permutations,
            seed=plan.seed,
            targets=targets,
            num_threads=runtime.num_threads,
            progress=progress,
        )


def run_attacks(
    plan: AuditPlan, graph: Graph, runs: ShadowRuns, priors: Priors, test: PermutationTest, runtime: Runtime
) -> Attacks:
    """Attacks the shadow models in every way that the plan names.

    Raises:
        InputError: if there are too few models.
    """
    _check_enough(runs)
    prior, all_variants = attack_prior(plan, priors), variants(plan)
    groups: dict[tuple[str, tuple[str, ...]], list[Variant]] = {}
    for variant in all_variants:
        groups.setdefault((variant.release, variant.queries), []).append(variant)
    counts: dict[str, ErrorCounts] = {}
    performance: dict[str, AttackPerformance] = {}
    num_nodes, num_attacked = graph.num_nodes, len(groups) * graph.num_nodes
    options: dict[str, Any] = {
        "settings": plan.decision_settings,
        "num_threads": runtime.num_threads,
        "executor": runtime.executor,
    }
    # Progress counts the nodes of every attack; the last one, with half of the models, counts half.
    with runtime.progress("attack", num_attacked + num_nodes // 2) as progress:
        for number, ((release, queries), members) in enumerate(groups.items()):
            made = challenge(
                attack_on(plan, release),
                Evidence.of_runs(runs, release, queries, graph),
                prior,
                plan.rules_by_name,
                with_scores=True,
                most_scores=MOST_SCORES,
                progress=lambda done, before=number * num_nodes: progress(before + done),  # type: ignore[misc]
                **options,
            )
            assert made.scores is not None  # noqa: S101 - they were asked for
            for variant in members:
                counts[variant.name] = made.error_counts(variant.rule)
                rule = plan.rules_by_name[variant.rule]
                performance[variant.name] = attack_performance(made.scores, rule, num_threads=runtime.num_threads)
        ordered = [variant.name for variant in all_variants]
        attacks = Attacks(
            all_variants,
            {name: counts[name] for name in ordered},
            {name: performance[name] for name in ordered},
            None,
            test,
        )
        options["progress"] = lambda done: progress(num_attacked + done // 2)
        return replace(attacks, half_counts=_half_counts(plan, graph, runs, prior, attacks, options))


def _check_enough(runs: ShadowRuns) -> None:
    if runs.num_models < FEWEST_MODELS:
        raise InputError(
            f"an attack needs at least {FEWEST_MODELS} shadow models, got {runs.num_models}; {len(runs.failed)} failed"
        )


def _half_counts(
    plan: AuditPlan, graph: Graph, runs: ShadowRuns, prior: Floats | str, attacks: Attacks, options: dict[str, Any]
) -> ErrorCounts | None:
    num_models = runs.num_models // 2
    if num_models < FEWEST_MODELS:
        return None
    main = attacks.strongest(attacks.releases[0])
    evidence = Evidence.of_runs(runs, main.release, main.queries, graph).take(slice(num_models))
    rules = {main.rule: plan.rules_by_name[main.rule]}
    challenges = challenge(attack_on(plan, main.release), evidence, prior, rules, **options)
    return challenges.error_counts(main.rule) if challenges.is_counted.any() else None


def attack_files(attacks: Attacks) -> dict[str, Callable[[Path], None]]:
    """What writes each file of the step."""
    test = attacks.permutation_test
    tables = {f"{name}.parquet": counts for name, counts in attacks.counts.items()}
    if attacks.half_counts is not None:
        tables[f"{HALF}.parquet"] = attacks.half_counts
    summary = {
        "variants": [asdict(variant) for variant in attacks.variants],
        "notes": attacks.notes,
        "not_auditable": [asdict(node) for node in attacks.main_counts.not_auditable],
        "permutation_test": {"statistic": test.statistic, "null_statistics": test.null_statistics},
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
    content = workspace.read_json("attack.json", SCHEMA)
    not_auditable = tuple(NotAuditable(**row) for row in content["not_auditable"])
    all_variants = tuple(Variant(row["release"], tuple(row["queries"]), row["rule"]) for row in content["variants"])
    names = [variant.name for variant in all_variants]
    if set(names) != set(content["performance"]):
        raise DataError(f"{workspace.path / 'attack.json'}: performance must be that of {', '.join(names)}")

    def read(name: str) -> ErrorCounts:
        counts = workspace.read(f"counts/{name}.parquet", ErrorCounts.from_table)
        return replace(counts, not_auditable=not_auditable)

    test = content["permutation_test"]
    return Attacks(
        variants=all_variants,
        counts={name: read(name) for name in names},
        performance={name: _performance(content["performance"][name]) for name in names},
        half_counts=read(HALF) if f"counts/{HALF}.parquet" in workspace.files("attack") else None,
        permutation_test=PermutationTest(test["statistic"], np.array(test["null_statistics"])),
        notes=tuple(content["notes"]),
    )


def _performance(row: dict[str, Any]) -> AttackPerformance:
    roc = RocCurve(**{name: np.array(values) for name, values in row["roc"].items()})
    rates = {float(rate): value for rate, value in row["tpr_at_fpr"].items()}
    return AttackPerformance(**{**row, "tpr_at_fpr": rates, "roc": roc})
