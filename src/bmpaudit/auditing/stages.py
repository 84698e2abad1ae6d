"""The stages of an audit after training: errors of the attacks, proofs and exposure, posteriors of ε, guarantees."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bmpaudit import registry
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
from bmpaudit.attack.evidence import SHADOW_FREQUENCY
from bmpaudit.auditing.context import Runtime, Variant, attack_on, queries_of, variants
from bmpaudit.auditing.result import AuditResult
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.estimation import Influence, NodeLeakage, Posterior, estimate, node_leakage
from bmpaudit.estimation.estimate import PARTS
from bmpaudit.estimation.likelihood import likelihood_of
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.io.codec import Record, from_arrays, read_record, to_arrays
from bmpaudit.io.readers import read_archive
from bmpaudit.plan import AuditPlan
from bmpaudit.privacy import Guarantee
from bmpaudit.proof import Proof, ProvenBound, ReleaseExposure, expose, prove
from bmpaudit.registry import ATTACK, UntrustedPart
from bmpaudit.releases import models_of
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowPlan, ShadowRuns
from bmpaudit.util.errors import DataError, InputError, UntrustedCodeError
from bmpaudit.util.values import Floats, to_json
from bmpaudit.util.words import SYMBOLS, confidence, listed, number
from bmpaudit.workers import crew_of

# From shadow models to errors: every variant of the attack, and the permutation test.


FEWEST_MODELS = 4
HALF = "half"
MOST_SCORES = 20_000_000  # challenges whose scores are kept for AUC and ROC; beyond that, nodes are thinned evenly
MOST_PERMUTED = 300_000  # challenges of each attack of the permutation test; likewise


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


@dataclass(frozen=True)
class _Roc(Record):
    false_positive_rate: list[float]
    true_positive_rate: list[float]


@dataclass(frozen=True)
class _Performance(Record):
    num_out: int
    num_in: int
    accuracy: float
    auc: float
    tpr_at_fpr: dict[str, float]
    roc: _Roc


@dataclass(frozen=True)
class _Test(Record):
    statistic: float
    null_statistics: list[float]


@dataclass(frozen=True)
class _AttackFile(Record):
    """What `attack.json` holds; the errors of each node are in Parquet files."""

    variants: list[Variant]
    notes: list[str]
    not_auditable: list[NotAuditable]
    permutation_test: _Test
    performance: dict[str, _Performance]


def attack_files(attacks: Attacks) -> dict[str, Callable[[Path], None]]:
    """What writes each file of the step."""
    counts = {**attacks.counts, **({} if attacks.half_counts is None else {HALF: attacks.half_counts})}
    files: dict[str, Callable[[Path], None]] = {
        f"counts/{name}.parquet": each.to_table for name, each in counts.items()
    }
    test = attacks.permutation_test
    summary = {
        "variants": [asdict(variant) for variant in attacks.variants],
        "notes": attacks.notes,
        "not_auditable": [asdict(node) for node in attacks.main_counts.not_auditable],
        "permutation_test": {"statistic": test.statistic, "null_statistics": test.null_statistics},
        "performance": {name: asdict(figures) for name, figures in attacks.performance.items()},
    }
    return files | {"attack.json": lambda path: _write_json(path, summary)}


def _write_json(path: Path, value: Any) -> None:
    path.write_text(to_json(value) + "\n", encoding="utf-8")


def read_attacks(workspace: Workspace) -> Attacks:
    """Reads what the step left; the workspace has checked that it is whole.

    Raises:
        DataError: if it cannot be read.
    """
    content = workspace.read("attack.json", lambda path: read_record(path, _AttackFile))
    names = [variant.name for variant in content.variants]
    if not names or set(names) != set(content.performance):
        raise DataError(f"{workspace.path / 'attack.json'}: performance must be that of {', '.join(names)}")

    def read(name: str) -> ErrorCounts:
        counts = workspace.read(f"counts/{name}.parquet", ErrorCounts.from_table)
        return replace(counts, not_auditable=tuple(content.not_auditable))

    test = content.permutation_test
    return Attacks(
        variants=tuple(content.variants),
        counts={name: read(name) for name in names},
        performance={name: _performance(content.performance[name]) for name in names},
        half_counts=read(HALF) if f"counts/{HALF}.parquet" in workspace.files("attack") else None,
        permutation_test=PermutationTest(test.statistic, np.array(test.null_statistics)),
        notes=tuple(content.notes),
    )


def _performance(row: _Performance) -> AttackPerformance:
    roc = RocCurve(np.array(row.roc.false_positive_rate), np.array(row.roc.true_positive_rate))
    rates = {float(rate): value for rate, value in row.tpr_at_fpr.items()}
    return AttackPerformance(**{**vars(row), "tpr_at_fpr": rates, "roc": roc})


# From shadow models to what is certain: what each release proves, and what one released model exposes.


CANDIDATES = ("student", "gaussian")
"""Attacks that a proof chooses from on its fitting models, besides the plan's."""


@dataclass(frozen=True, eq=False)
class ReleaseFindings:
    """What is certain about one release.

    Attributes:
        queries: Queries that the exposure's attack uses: those of the strongest variant.
        exposure: What one released model gives away under that attack, on average over the shadow models.
        proof: What is proven, by whatever attack and queries promised most on the fitting models; None if there are too
            few models to prove anything.
        not_proven: Why there is no proof; empty if there is one.
    """

    queries: tuple[str, ...]
    exposure: ReleaseExposure
    proof: Proof | None
    not_proven: str = ""


Findings = Mapping[str, ReleaseFindings]
"""By the release's label, the main one first."""


def proof_attacks(plan: AuditPlan, release: str) -> list[Attack]:
    """The attack on a release, and the built-in ones that a proof may choose instead."""
    attack = attack_on(plan, release)
    own = registry.label(ATTACK, attack)
    return [attack, *(registry.build(ATTACK, name) for name in CANDIDATES if name != own)]


def run_proofs(
    plan: AuditPlan, graph: Graph, runs: ShadowRuns, priors: Priors, attacks: Attacks, runtime: Runtime
) -> Findings:
    """Proves and counts what can be named, for each release."""
    findings = {}
    # Exposure scores every node twice, once with all models and once with halves of them; a proof counts as one more.
    num_nodes = graph.num_nodes
    with runtime.progress("proof and exposure", 3 * num_nodes * len(attacks.releases)) as progress:
        for number, release in enumerate(attacks.releases):
            before = 3 * num_nodes * number
            strongest = attacks.strongest(release).queries
            exposed = expose(
                attack_on(plan, release),
                Evidence.of_runs(runs, release, strongest, graph),
                priors.prob,
                level=plan.proof_level,
                num_threads=runtime.num_threads,
                executor=runtime.executor,
                progress=lambda done, before=before: progress(before + done),  # type: ignore[misc]
            )
            proof, reason = None, ""
            try:
                proof = prove_release(
                    plan,
                    graph,
                    runs,
                    priors,
                    release,
                    runtime,
                    progress=lambda done, before=before: progress(before + 2 * num_nodes + done),  # type: ignore[misc]
                )
            except InputError as wrong:  # too few models, or none with a member: there is an audit all the same
                reason = str(wrong)
            findings[release] = ReleaseFindings(strongest, exposed, proof, reason)
            progress(before + 3 * num_nodes)
    return findings


def prove_release(
    plan: AuditPlan,
    graph: Graph,
    runs: ShadowRuns,
    priors: Priors,
    release: str,
    runtime: Runtime,
    progress: Progress = lambda _: None,
) -> Proof:
    """What one release proves, by the plan's method.

    `progress` is called with how much of the work is done, from 0 to the number of nodes.

    Raises:
        InputError: if there are too few models to prove anything.
    """
    proof = prove(
        proof_attacks(plan, release),
        Evidence.of_runs(runs, release, queries_of(plan), graph),
        priors.prob,
        prior_draws=priors.num_draws,
        level=plan.proof_level,
        method=plan.proof_method,
        num_threads=runtime.num_threads,
        executor=runtime.executor,
        progress=progress,
    )
    # One floor for all that is shown: the sharper bound of the audit's own priors.
    right, left = replace(proof.epsilon_right, floor=priors.floor.right), proof.epsilon_left
    return replace(proof, epsilon_right=right, epsilon_left=replace(left, floor=priors.floor.left))


def proof_files(findings: Findings) -> dict[str, Callable[[Path], None]]:
    """What writes each file of the step."""
    return {proof_name(release): partial(_write, part) for release, part in findings.items()}


def proof_name(release: str) -> str:
    """The path of a release's file in the folder."""
    return f"proof/{release}.npz"


def _write(findings: ReleaseFindings, path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **to_arrays(findings))


def read_proofs(workspace: Workspace, releases: tuple[str, ...]) -> Findings:
    """Reads what the step left; the workspace has checked that it is whole."""
    return {release: workspace.read(proof_name(release), _read) for release in releases}


def _read(path: Path) -> ReleaseFindings:
    return from_arrays(ReleaseFindings, read_archive(path))


# The posteriors of an audit: independent of each other, so each can be computed by another worker.


JOINT_COST = 10.0  # of a posterior of two parameters, against one
KNOWN_HERE = ("definition", "counts", "likelihood")
"""Fields of a posterior that a worker does not send back."""


class Task(NamedTuple):
    """One posterior: of a definition, from the errors of a variant."""

    variant: str
    definition: str


Answers: TypeAlias = Iterator[tuple[Task, Posterior | str]]
Report: TypeAlias = Callable[[Task, int], None]
"""Is called with how many of `PARTS` of a task are done."""


@dataclass(frozen=True, eq=False)
class PosteriorJob:
    """What all tasks have in common; sent to each worker once.

    Attributes:
        plan: Its definitions and what is assumed.
        counts: Errors by the variant's name.
    """

    plan: AuditPlan
    counts: Mapping[str, ErrorCounts]

    def cost(self, task: Task) -> float:
        """How long a task takes, against a posterior of one parameter."""
        return float(JOINT_COST ** (len(self.plan.definitions_by_name[task.definition].parameters) - 1))

    def run(self, task: Task, runtime: Runtime, progress: Progress) -> Posterior | str:
        """The posterior, or why it cannot be computed."""
        definition = self.plan.definitions_by_name[task.definition]
        try:
            return estimate_one(self.plan, self.counts[task.variant], definition, runtime, progress)
        except UntrustedCodeError:
            raise
        except InputError as reason:
            return str(reason)

    def received(self, task: Task, made: dict[str, Any], num_threads: int | None) -> Posterior:
        """A posterior that a worker has computed."""
        definition, counts = self.plan.definitions_by_name[task.definition], self.counts[task.variant]
        likelihood = likelihood_of(counts, definition, made["is_used"], num_threads=num_threads)
        return Posterior(definition=definition, counts=counts, likelihood=likelihood, **made)


def estimate_one(
    plan: AuditPlan, counts: ErrorCounts, definition: Any, runtime: Runtime, progress: Progress = lambda _: None
) -> Posterior:
    """The posterior of one definition from the errors of one variant."""
    return estimate(
        counts,
        definition,
        prior=plan.epsilon_prior,
        strength=plan.strength,
        num_threads=runtime.num_threads,
        progress=progress,
    )


def run_posteriors(
    job: PosteriorJob, tasks: Sequence[Task], runtime: Runtime, progress: Progress
) -> dict[Task, Posterior | str]:
    """Every posterior, or why it cannot be computed: here one after the other, or on workers of one thread each.

    `progress` is called with how many of `PARTS` are done, by how long tasks take.
    """
    total, done = sum(map(job.cost, tasks)), 0.0
    made = {}

    def report(task: Task, part: int) -> None:
        progress(int((PARTS * done + part * job.cost(task)) / total))

    # The longest first, so that nobody waits for one at the end.
    ordered = deque(sorted(tasks, key=job.cost, reverse=True))
    for task, posterior in (_here if runtime.executor is None else _on_workers)(job, ordered, runtime, report):
        made[task] = posterior
        report(task, PARTS)
        done += job.cost(task)
    return {task: made[task] for task in tasks}


def _here(job: PosteriorJob, tasks: deque[Task], runtime: Runtime, report: Report) -> Answers:
    for task in tasks:
        yield task, job.run(task, runtime, partial(report, task))


def _on_workers(job: PosteriorJob, tasks: deque[Task], runtime: Runtime, _: Report) -> Answers:
    assert runtime.executor is not None  # noqa: S101 - or it would be done here
    for task, answer in crew_of(runtime.executor).run(_run_task, job, tasks):
        yield task, answer if isinstance(answer, str) else job.received(task, answer, runtime.num_threads)


def _run_task(job: PosteriorJob, task: Task) -> dict[str, Any] | str:
    """What a worker does: it sends back what is not known where the task comes from."""
    made = job.run(task, Runtime(num_threads=1, quiet=True), lambda _: None)
    if isinstance(made, str):
        return made
    return {field.name: getattr(made, field.name) for field in fields(made) if field.name not in KNOWN_HERE}


# From errors to what they say about ε.


SIDES = ("epsilon_right", "epsilon_left")


@dataclass(frozen=True, eq=False)
class Estimates:
    """What the errors say.

    Attributes:
        posteriors: By the variant's name, then by definition.
        leakage: Leakage of every node under the main variant.
        influences: By definition and parameter, for the headline's: which nodes drive the posterior. Empty if the audit
            was read from a folder: the summary has the strongest.
        half_medians: By definition and parameter, for the headline's: the median with half of the models, which tells
            whether the estimate moves with their number. Only of definitions with one parameter, and empty if half are
            too few to attack.
        not_estimated: Why, for each posterior that could not be computed, in words.
    """

    posteriors: Mapping[str, Mapping[str, Posterior]]
    leakage: NodeLeakage
    influences: Mapping[tuple[str, str], Influence]
    half_medians: Mapping[tuple[str, str], float]
    not_estimated: tuple[str, ...] = ()


def headline_parameters(posteriors: Mapping[str, Posterior]) -> list[tuple[str, str]]:
    """Definition and parameter of each ε of the headline, ε_R first and then ε_L.

    A parameter that several definitions share, such as ε_R of `bmp` and of `bmp-r`, is shown once: from a definition
    with one parameter if there is one, as in the paper's tables.
    """
    places: dict[str, tuple[str, str]] = {}
    for name, posterior in sorted(posteriors.items(), key=lambda item: len(item[1].definition.parameters)):
        for parameter in posterior.definition.parameters:
            places.setdefault(parameter.name if parameter.name in SIDES else name, (name, parameter.name))
    return sorted(places.values(), key=lambda place: SIDES.index(place[1]) if place[1] in SIDES else len(SIDES))


def estimation_tasks(plan: AuditPlan, attacks: Attacks) -> list[Task]:
    """Every posterior of an audit; with half of the models, those of the main variant that have one parameter.

    Two parameters at once take ten times as long as one: only the main variant has them.
    """
    has_one = {name: len(part.parameters) == 1 for name, part in plan.definitions_by_name.items()}
    halves = [Task(HALF, name) for name in has_one if has_one[name] and attacks.half_counts is not None]
    return [
        Task(variant, definition)
        for variant in attacks.counts
        for definition in has_one
        if variant == attacks.main or has_one[definition]
    ] + halves


def run_estimates(plan: AuditPlan, attacks: Attacks, runtime: Runtime) -> Estimates:
    """Estimates every definition for every variant, and what stands beside it."""
    half = {} if attacks.half_counts is None else {HALF: attacks.half_counts}
    with runtime.progress("posteriors, ‰", PARTS) as progress:
        job = PosteriorJob(plan, {**attacks.counts, **half})
        made = run_posteriors(job, estimation_tasks(plan, attacks), runtime, progress)
    posteriors: dict[str, dict[str, Posterior]] = {name: {} for name in job.counts}
    reasons = []
    for task, posterior in made.items():
        if isinstance(posterior, str):  # what is proven and exposed does not depend on it
            whose = "half of the models" if task.variant == HALF else task.variant
            reasons.append(f"{task.definition} of {whose} could not be estimated: {posterior}")
        else:
            posteriors[task.variant][task.definition] = posterior
    of_half = posteriors.pop(HALF, {})
    main = posteriors[attacks.main]
    if not main:
        raise InputError(reasons[0])
    headline = headline_parameters(main)
    return Estimates(
        posteriors=posteriors,
        leakage=_leakage(plan, attacks, runtime),
        influences={
            (definition, parameter): main[definition].influence(parameter) for definition, parameter in headline
        },
        half_medians={
            (definition, parameter): float(of_half[definition].quantile(0.5, parameter))
            for definition, parameter in headline
            if definition in of_half
        },
        not_estimated=tuple(reasons),
    )


def _leakage(plan: AuditPlan, attacks: Attacks, runtime: Runtime) -> NodeLeakage:
    return node_leakage(attacks.main_counts, plan.level, num_threads=runtime.num_threads)


def posterior_files(estimates: Estimates) -> dict[str, Callable[[Path], None]]:
    """What writes the file of each posterior."""
    return {
        posterior_name(variant, definition): partial(_save, posterior)
        for variant, row in estimates.posteriors.items()
        for definition, posterior in row.items()
    }


def posterior_name(variant: str, definition: str) -> str:
    """The path of a posterior in the folder."""
    return f"posteriors/{variant}_{definition}.npz"


def _save(posterior: Posterior, path: Path) -> None:
    posterior.save(path)


def read_estimates(
    workspace: Workspace, plan: AuditPlan, attacks: Attacks, result: AuditResult, runtime: Runtime
) -> Estimates:
    """Reads what the step left; the workspace has checked that it is whole."""
    posteriors = {
        variant: {
            definition: workspace.read(posterior_name(variant, definition), Posterior.load)
            for definition in each.posteriors
        }
        for variant, each in result.variants.items()
    }
    half_medians = {
        (row.definition, row.parameter): row.half_median for row in result.headline if row.half_median is not None
    }
    return Estimates(posteriors, _leakage(plan, attacks, runtime), {}, half_medians)


# What the model of an audit guarantees by a proof, beside what the audit proves of it.


@dataclass(frozen=True)
class Guaranteed:
    """A guarantee, and the upper bounds that follow for an audit.

    Attributes:
        guarantee: What the model guarantees with the audit's sampler.
        limits: Upper bounds by parameter: epsilon_right, epsilon_left and mp.
        deltas: The δ of each, by parameter; 0 for a pure guarantee.
        num_nodes: Number of nodes that the audit could name.
    """

    guarantee: Guarantee
    limits: dict[str, float]
    deltas: dict[str, float]
    num_nodes: int

    def level_of(self, bound: ProvenBound) -> float | None:
        """The confidence of a lower bound on the smallest ε that holds with the guarantee's δ; None if it is too low.

        A δ costs at most δ for each node that could be named and each model that was challenged (docs/guarantees.md).
        Where that is more than the bound may fail with anyhow, the two are not compared.
        """
        cost = self.deltas[bound.parameter] * self.num_nodes * bound.num_challenged
        if cost > 1 - bound.level:
            return None
        return bound.level if cost == 0 else math.floor(1_000 * (bound.level - cost)) / 1_000

    def sentence(self, proof: Proof | None) -> str:
        """The upper bounds, and beside them the lower ones that the audit proves of the main release."""
        proven = {bound.parameter: bound for bound in proof.bounds} if proof is not None else {}
        limits = listed([f"{symbol} ≤ {number(self.limits[name], 2)}" for name, symbol in SYMBOLS.items()])
        with_delta = f", each with δ = {self.guarantee.delta:.2g} of MDP" if self.guarantee.delta > 0 else ""
        text = f"By the proof of {self.guarantee.mechanism}, {limits}{with_delta}."
        if proven and all(self.level_of(bound) is None for bound in proven.values()):
            return f"{text} That δ is too large for the lower bounds of this audit to be set against it."
        between = [
            f"{SYMBOLS[name]} between {number(least, 2)} and {number(self.limits[name], 2)}"
            for name, bound in proven.items()
            if (least := self._least(bound)) is not None and least <= self.limits[name]
        ]
        return f"{text} With the lower bounds of this audit: {listed(between)}." if between else text

    def _least(self, bound: ProvenBound) -> float | None:
        """What is proven; without a δ also what the sampler alone gives away, if that is more."""
        if self.deltas[bound.parameter] > 0:
            return None if self.level_of(bound) is None else bound.proven
        return bound.floor if bound.proven is None else max(bound.floor, bound.proven)

    def contradictions(self, findings: Findings) -> Iterator[str]:
        """A sentence for each lower bound that exceeds its upper bound, where the δ allows to compare them."""
        for release, each in findings.items():
            for bound in each.proof.bounds if each.proof is not None else ():
                limit, level = self.limits[bound.parameter], self.level_of(bound)
                if bound.proven is not None and bound.proven > limit and level is not None:
                    yield (
                        f"{SYMBOLS[bound.parameter]} ≥ {number(bound.proven, 2)} is proven of the release {release}, "
                        f"but {self.guarantee.mechanism} guarantees {number(limit, 2)} at most: the mechanism is "
                        f"broken, or the confidence of {confidence(level)} failed."
                    )


def guaranteed(plan: ShadowPlan, graph: Graph, priors: Priors) -> Guaranteed | None:
    """What the model of a plan guarantees; None if it has no method `guarantee`, or its code has not been run.

    Raises:
        InputError: if the method returns something else.
    """
    model = plan.model
    if isinstance(model, UntrustedPart) or isinstance(plan.sampler, UntrustedPart) or not hasattr(model, "guarantee"):
        return None
    guarantee = model.guarantee(graph, plan.sampler)
    if guarantee is None:
        return None
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"guarantee of {model} must return a Guarantee or None, got {guarantee!r}")
    # The same limits for all releases: an ensemble gives out several models.
    guarantee = guarantee.repeated(max(map(models_of, plan.releases)))
    bmp = guarantee.bmp(priors.odds)
    limits = {"epsilon_right": bmp.right, "epsilon_left": bmp.left, "mp": guarantee.mp.epsilon}
    deltas = {"epsilon_right": bmp.delta, "epsilon_left": bmp.delta, "mp": guarantee.mp.delta}
    return Guaranteed(guarantee, limits, deltas, graph.num_nodes)
