"""The stages of an audit after training: errors of the attacks, proofs and exposure, posteriors of ε, guarantees."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bmpaudit import registry
from bmpaudit.attack import ErrorCounts, Evidence, NotAuditable, PermutationTest, challenge, permutation_test
from bmpaudit.attack.evidence import SHADOW_FREQUENCY
from bmpaudit.attack.performance import AttackPerformance, RocCurve, attack_performance
from bmpaudit.auditing.context import (
    LABEL_ATTACK,
    Runtime,
    Variant,
    accesses_of,
    attack_on,
    own_access,
    queries_of,
    release_of,
    variants,
)
from bmpaudit.auditing.result import AuditResult
from bmpaudit.auditing.workspace import Files, Workspace
from bmpaudit.estimation import Influence, NodeLeakage, Posterior, estimate, node_leakage
from bmpaudit.estimation.estimate import PARTS
from bmpaudit.estimation.likelihood import likelihood_of
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.io.codec import Record, filled, from_arrays, read_record, to_arrays
from bmpaudit.io.readers import read_archive
from bmpaudit.plan import AuditPlan
from bmpaudit.privacy import ApproximateMP, Guarantee, approximate_mp_to_bmp, non_empty_mdp_to_mp
from bmpaudit.proof import CertifiedExposure, Proof, ProvenBound, ReleaseExposure, certify, expose, prove
from bmpaudit.proof.exposure import SURE_NAMES
from bmpaudit.proof.guesses import Source
from bmpaudit.releases import ACCESSES, LABELS, SCORES, is_computed_from, models_of
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowPlan, ShadowRuns
from bmpaudit.util.errors import DataError, InputError, UntrustedCodeError
from bmpaudit.util.values import Floats, to_json
from bmpaudit.util.words import SYMBOLS, confidence, listed, number
from bmpaudit.workers import crew_of

# From shadow models to errors: every variant of the attack, and the permutation test.

FEWEST_MODELS = 4
Result = TypeVar("Result")
HALF = "half"
MOST_SCORES = 20_000_000  # challenges whose scores are kept for AUC and ROC; beyond that, nodes are thinned evenly


@dataclass(frozen=True, eq=False)
class Attacks:
    """The results of all variants of the attack."""

    variants: tuple[Variant, ...]  # the variants, the plan's first one first
    counts: Mapping[str, ErrorCounts]  # errors of Algorithm 1, by the variant's name
    performance: Mapping[str, AttackPerformance]  # accuracy, AUC and the like, by the variant's name
    # Errors of the main variant with the first half of the models; None if that is too few to attack.
    half_counts: ErrorCounts | None
    # Whether answers of the main release are linked to memberships, and about which nodes.
    permutation_test: PermutationTest
    notes: tuple[str, ...] = ()  # what was overridden or is unusual

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
    def all_counts(self) -> Mapping[str, ErrorCounts]:
        """Errors of every variant, and with half of the models as `half` if there are any."""
        return self.counts if self.half_counts is None else {**self.counts, HALF: self.half_counts}

    @property
    def main_counts(self) -> ErrorCounts:
        """Errors of the main variant."""
        return self.counts[self.main]


def attack_prior(plan: AuditPlan, priors: Priors) -> Floats | str:
    """The priors that decisions use."""
    return SHADOW_FREQUENCY if plan.prior_source == SHADOW_FREQUENCY else priors.prob


def run_permutation_test(plan: AuditPlan, graph: Graph, runs: ShadowRuns, runtime: Runtime) -> PermutationTest:
    """Tests every node on the main release, by shuffling memberships between models."""
    _check_enough(runs)
    main = variants(plan)[0].release
    with runtime.progress("permutation test", graph.num_nodes) as progress:
        return permutation_test(
            Evidence.of_runs(runs, main, queries_of(plan), graph, own_access(plan, main)),
            num_shuffles=plan.permutations,
            seed=plan.seed,
            num_threads=runtime.num_threads,
            progress=progress,
        )


def run_attacks(
    plan: AuditPlan, graph: Graph, runs: ShadowRuns, priors: Priors, test: PermutationTest, runtime: Runtime
) -> Attacks:
    """Attacks the shadow models in every way that the plan names; `InputError` if there are too few models."""
    _check_enough(runs)
    prior, all_variants = attack_prior(plan, priors), variants(plan)
    groups: dict[tuple[str, tuple[str, ...]], list[Variant]] = {}
    for variant in all_variants:
        groups.setdefault((variant.release, variant.queries), []).append(variant)
    made: dict[str, tuple[ErrorCounts, AttackPerformance]] = {}
    num_nodes, num_attacked = graph.num_nodes, len(groups) * graph.num_nodes
    options: dict[str, Any] = {
        "settings": plan.decision_settings,
        "num_threads": runtime.num_threads,
        "executor": runtime.executor,
    }
    # Progress counts the nodes of every attack; the last one, with half of the models, counts half.
    with runtime.progress("attack", num_attacked + num_nodes // 2) as progress:
        for number, ((release, queries), members) in enumerate(groups.items()):
            challenges = challenge(
                attack_on(plan, release),
                Evidence.of_runs(runs, release, queries, graph, own_access(plan, release)),
                prior,
                plan.rules_by_name,
                with_scores=True,
                most_scores=MOST_SCORES,
                progress=lambda done, before=number * num_nodes: progress(before + done),  # type: ignore[misc]
                **options,
            )
            assert challenges.scores is not None  # noqa: S101 - they were asked for
            for variant in members:
                rule = plan.rules_by_name[variant.rule]
                figures = attack_performance(challenges.scores, rule, num_threads=runtime.num_threads)
                made[variant.name] = challenges.error_counts(variant.rule), figures
        counts = {each.name: made[each.name][0] for each in all_variants}  # in the order of the variants
        attacks = Attacks(all_variants, counts, {name: made[name][1] for name in counts}, None, test)
        num_models = runs.num_models // 2
        if num_models < FEWEST_MODELS:
            return attacks
        main = attacks.strongest(attacks.releases[0])
        half = challenge(
            attack_on(plan, main.release),
            Evidence.of_runs(runs, main.release, main.queries, graph, own_access(plan, main.release)).take(
                slice(num_models)
            ),
            prior,
            {main.rule: plan.rules_by_name[main.rule]},
            progress=lambda done: progress(num_attacked + done // 2),
            **options,
        )
        return replace(attacks, half_counts=half.error_counts(main.rule) if half.is_counted.any() else None)


def _check_enough(runs: ShadowRuns) -> None:
    if runs.num_models < FEWEST_MODELS:
        raise InputError(
            f"an attack needs at least {FEWEST_MODELS} shadow models, got {runs.num_models}; {len(runs.failed)} failed"
        )


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
class _AttackFile(Record):
    """What `attack.json` holds; errors of each node are in Parquet files, the permutation test in an archive."""

    variants: tuple[Variant, ...]
    notes: tuple[str, ...]
    not_auditable: tuple[NotAuditable, ...]
    performance: dict[str, _Performance]


def attack_files(attacks: Attacks) -> Files:
    """What writes each file of the step."""
    summary = {
        "variants": [asdict(variant) for variant in attacks.variants],
        "notes": attacks.notes,
        "not_auditable": [asdict(node) for node in attacks.main_counts.not_auditable],
        "performance": {name: asdict(figures) for name, figures in attacks.performance.items()},
    }
    return {
        **{f"counts/{name}.parquet": each.to_table for name, each in attacks.all_counts.items()},
        "permutation_test.npz": partial(_write_arrays, attacks.permutation_test),
        "attack.json": lambda path: path.write_text(to_json(summary) + "\n", encoding="utf-8"),
    }


def read_attacks(workspace: Workspace) -> Attacks:
    """Reads what the step left; the workspace has checked that it is whole; `DataError` if it cannot be read."""
    content = workspace.read("attack.json", lambda path: read_record(path, _AttackFile))
    names = [variant.name for variant in content.variants]
    if not names or set(names) != set(content.performance):
        raise DataError(f"{workspace.path / 'attack.json'}: performance must be that of {', '.join(names)}")

    performance = {}
    for name in names:
        row = content.performance[name]
        rates = {float(rate): value for rate, value in row.tpr_at_fpr.items()}
        roc = RocCurve(np.array(row.roc.false_positive_rate), np.array(row.roc.true_positive_rate))
        performance[name] = filled(AttackPerformance, row, tpr_at_fpr=rates, roc=roc)

    def read(name: str) -> ErrorCounts:
        counts = workspace.read(f"counts/{name}.parquet", ErrorCounts.from_table)
        return replace(counts, not_auditable=content.not_auditable)

    return Attacks(
        variants=content.variants,
        counts={name: read(name) for name in names},
        performance=performance,
        half_counts=read(HALF) if f"counts/{HALF}.parquet" in workspace.files("attack") else None,
        permutation_test=workspace.read("permutation_test.npz", partial(_read_arrays, PermutationTest)),
        notes=content.notes,
    )


# From shadow models to proofs and exposure: what each release proves, and what one released model exposes.

BOUNDS_OF_AN_ACCESS = 5  # that are shown
ROW_ATTACK = "rows"
NAMING_ATTACKS = ("student",)
PROOF_ATTACKS = (*NAMING_ATTACKS, "gaussian")
"""Attacks that names and proofs are chosen from on the fitting models, besides the plan's.

An attack that takes one query at a time, such as `gaussian`, cannot count what is exposed by all of them.
"""


@dataclass(frozen=True, eq=False)
class AccessFindings:
    """What was found out about one release by an adversary with one kind of access.

    What was found about a release that is computed from it holds for it too, and is taken if it is more (Prop. 2): a
    weak attack on one of them makes neither safe.
    """

    exposed_by: str  # attack and queries that the exposure was found by
    exposure: ReleaseExposure  # what one released model gives away, on average over the shadow models
    certified: CertifiedExposure | None  # how many names are certified; None if there are too few models
    # What is proven, by whatever attack and queries promised most on the fitting models; None likewise.
    proof: Proof | None
    not_proven: str = ""  # why nothing is proven or certified; empty otherwise


@dataclass(frozen=True, eq=False)
class Findings(Mapping[str, AccessFindings]):
    """By the release's label, the main one first, what was found out about it as it is released."""

    ladders: Mapping[str, Mapping[str, AccessFindings]]  # by release and access, the least access first

    def __getitem__(self, release: str) -> AccessFindings:
        return list(self.ladders[release].values())[-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ladders)

    def __len__(self) -> int:
        return len(self.ladders)


def proof_attacks(
    plan: AuditPlan, release: str, names: Sequence[str] = PROOF_ATTACKS, access: str = SCORES
) -> list[Attack]:
    """The attack on a release, the built-in ones that may be chosen instead, and right-or-wrong on changed outputs.

    An attack that fits distributions to coarse scores may miss what the mere label says. Whoever sees more than scores
    takes the row attack, which uses these as well; of labels alone there is nothing but right or wrong.
    """
    if access not in (SCORES, own_access(plan, release)):
        return [registry.build(registry.ATTACK, LABEL_ATTACK if access == LABELS else ROW_ATTACK)]
    attack, part = attack_on(plan, release), release_of(plan, release)
    names = [*names, *([LABEL_ATTACK] if not is_built_in(part) or part.changes_outputs else [])]
    own = registry.label(registry.ATTACK, attack)
    return [attack, *(registry.build(registry.ATTACK, name) for name in names if name != own)]


def is_built_in(release: Any) -> bool:
    """Whether a release is one of ours; of others nothing is read here, so that results do not depend on trust."""
    return registry.name_of(registry.RELEASE, release) in registry.ENTRIES[registry.RELEASE]


def bound_level(plan: AuditPlan, release: str, access: str) -> float:
    """Confidence of each bound by itself, so that all bounds of an audit hold together with the plan's.

    Of each access to each release these are the bounds on ε_R, ε_L and MP, and the certified names of members and of
    non-members. What the answer is about, the main release with the access that it is released with, has half of the
    failure probability; all else shares the other half.
    """
    num_rungs, main = sum(len(plan.accesses(each)) for each in plan.releases), plan.releases[0]
    is_main = (release, access) == (registry.label(registry.RELEASE, main), plan.accesses(main)[-1])
    share = 1.0 if num_rungs == 1 else 0.5 if is_main else 0.5 / (num_rungs - 1)
    return 1 - (1 - plan.proof_level) * share / BOUNDS_OF_AN_ACCESS


def run_proofs(
    plan: AuditPlan, graph: Graph, runs: ShadowRuns, priors: Priors, attacks: Attacks, runtime: Runtime
) -> Findings:
    """Proves, certifies and counts what can be named, for each access to each release."""
    own: dict[tuple[str, str], AccessFindings] = {}
    tried = {
        (release, access): proof_attacks(plan, release, NAMING_ATTACKS, access)
        for release in attacks.releases
        for access in accesses_of(plan, release)
    }
    workers: dict[str, Any] = {"num_threads": runtime.num_threads, "executor": runtime.executor}
    num_nodes, num_done = graph.num_nodes, 0
    # Exposure scores every node twice, with all models and with halves; proof and certificates count as one more each.
    total = num_nodes * sum(2 * len(each) + 2 for each in tried.values())
    with runtime.progress("proof and exposure", total) as progress:

        def next_part(size: int) -> Progress:
            nonlocal num_done
            before, num_done = num_done, num_done + size * num_nodes
            return lambda done: progress(before + done)

        for (release, access), attackers in tried.items():
            evidence = Evidence.of_runs(runs, release, queries_of(plan), graph, access)
            exposed: dict[str, ReleaseExposure] = {}
            for attack in attackers:
                is_plans = attack is attackers[0] and access == own_access(plan, release)
                source = Source(attack, attacks.strongest(release).queries if is_plans else evidence.queries)
                report = next_part(2)
                try:
                    exposed[source.name] = expose(
                        attack, source.seen(evidence), priors.prob, level=plan.proof_level, progress=report, **workers
                    )
                except InputError:
                    if attack is attackers[-1] and not exposed:
                        raise
            strongest = max(exposed, key=lambda name: num_named(exposed[name]))
            certified, proof, reason = None, None, ""
            level = bound_level(plan, release, access)
            try:  # with too few models, or none with a member, there is an audit all the same
                proof = prove_release(plan, evidence, priors, release, runtime, access, progress=next_part(1))
                certified = certify(attackers, evidence, priors.prob, level=level, progress=next_part(1), **workers)
            except InputError as wrong:
                reason = str(wrong)
            own[release, access] = AccessFindings(strongest, exposed[strongest], certified, proof, reason)
        progress(total)
    return Findings(
        {
            release: {access: _inherited(plan, release, access, own) for access in accesses_of(plan, release)}
            for release in attacks.releases
        }
    )


def num_named(exposure: ReleaseExposure) -> float:
    """How many members are named per model with 90 % certainty."""
    curve = exposure.exposure.members
    return float(curve.correct.mean[curve.at(SURE_NAMES)])


def _inherited(
    plan: AuditPlan, release: str, access: str, own: Mapping[tuple[str, str], AccessFindings]
) -> AccessFindings:
    """What was found about a release, or about what can be computed from it, whichever is more; of equals its own."""
    base, result = release_of(plan, release), own[release, access]
    # Whoever is given the weights has them, also where the strongest attack that there is asks for less.
    given = plan.release_as if access == accesses_of(plan, release)[-1] else access
    for (name, seen), other in own.items():
        part = release_of(plan, name)
        is_derived = name == release or (
            is_built_in(base) and is_built_in(part) and is_computed_from(part, base, given)
        )
        if (name, seen) == (release, access) or not is_derived or ACCESSES.index(seen) > ACCESSES.index(access):
            continue
        found_on = (f", on the {name} release" if name != release else "") + (
            f", from {seen}" if seen != access else ""
        )
        least, most = sorted((other.exposure, result.exposure), key=num_named)
        exposed_by = result.exposed_by if most is result.exposure else other.exposed_by + found_on
        result = replace(result, exposure=most.joined(least), exposed_by=exposed_by)
        if other.certified is not None:
            theirs = replace(other.certified, source=other.certified.source + found_on)
            result = replace(result, certified=theirs if result.certified is None else result.certified.joined(theirs))
        if other.proof is not None and result.proof is not None:
            result = replace(result, proof=result.proof.joined(other.proof, found_on))
    return result


def prove_release(
    plan: AuditPlan,
    evidence: Evidence,
    priors: Priors,
    release: str,
    runtime: Runtime,
    access: str = SCORES,
    progress: Progress = lambda _: None,
) -> Proof:
    """What access to one release proves, by the plan's method; progress counts nodes."""
    proof = prove(
        proof_attacks(plan, release, access=access),
        evidence,
        priors.prob,
        prior_draws=priors.num_draws,
        level=bound_level(plan, release, access),
        method=plan.proof_method,
        num_threads=runtime.num_threads,
        executor=runtime.executor,
        progress=progress,
    )
    # One floor for all that is shown: the sharper bound of the audit's own priors.
    right, left = replace(proof.epsilon_right, floor=priors.floor.right), proof.epsilon_left
    return replace(proof, epsilon_right=right, epsilon_left=replace(left, floor=priors.floor.left))


def proof_name(plan: AuditPlan, release: str, access: str) -> str:
    """Where findings are kept: by the release alone for the access that it is released with."""
    return f"proof/{release}.npz" if access == accesses_of(plan, release)[-1] else f"proof/{release}@{access}.npz"


def proof_files(plan: AuditPlan, findings: Findings) -> Files:
    """What writes each file of the step."""
    return {
        proof_name(plan, release, access): partial(_write_arrays, part)
        for release, ladder in findings.ladders.items()
        for access, part in ladder.items()
    }


def _write_arrays(result: Any, path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **to_arrays(result))


def _read_arrays(kind: type[Result], path: Path) -> Result:
    return from_arrays(kind, read_archive(path))


def read_proofs(workspace: Workspace, plan: AuditPlan, releases: tuple[str, ...]) -> Findings:
    """Reads what the step left; the workspace has checked that it is whole."""
    read = partial(_read_arrays, AccessFindings)
    return Findings(
        {
            release: {
                access: workspace.read(proof_name(plan, release, access), read) for access in accesses_of(plan, release)
            }
            for release in releases
        }
    )


# The posteriors of an audit: independent of each other, so each can be computed by another worker.

JOINT_COST = 10.0  # of a posterior of two parameters, against one
KNOWN_HERE = ("definition", "counts", "likelihood")  # fields of a posterior that a worker does not send back


class Task(NamedTuple):
    """One posterior: of a definition, from the errors of a variant."""

    variant: str
    definition: str


@dataclass(frozen=True, eq=False)
class PosteriorJob:
    """What all tasks have in common; sent to each worker once."""

    plan: AuditPlan  # its definitions and what is assumed
    counts: Mapping[str, ErrorCounts]  # errors by the variant's name

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
    """What the errors say."""

    posteriors: Mapping[str, Mapping[str, Posterior]]  # by the variant's name, then by definition
    leakage: NodeLeakage  # leakage of every node under the main variant
    # By definition and parameter, for the headline's: which nodes drive the posterior. Empty if the audit was read from
    # a folder: the summary has the strongest.
    influences: Mapping[tuple[str, str], Influence]
    # By definition and parameter, for the headline's: the median with half of the models, which tells whether the
    # estimate moves with their number. Only of definitions with one parameter, and empty if half are too few to attack.
    half_medians: Mapping[tuple[str, str], float]
    not_estimated: tuple[str, ...] = ()  # why, for each posterior that could not be computed, in words


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
    """Estimates every definition for every variant, and what stands beside it.

    Posteriors are computed here one after the other, or on workers of one thread each. Progress is by how long they
    take.
    """
    job, tasks = PosteriorJob(plan, attacks.all_counts), estimation_tasks(plan, attacks)
    total, done, made = sum(map(job.cost, tasks)), 0.0, dict[Task, Posterior | str]()
    # The longest first, so that nobody waits for one at the end.
    ordered = deque(sorted(tasks, key=job.cost, reverse=True))
    with runtime.progress("posteriors, ‰", PARTS) as progress:

        def report(task: Task, part: int) -> None:
            progress(int((PARTS * done + part * job.cost(task)) / total))

        here = ((task, job.run(task, runtime, partial(report, task))) for task in ordered)
        answers = here if runtime.executor is None else crew_of(runtime.executor).run(_run_task, job, ordered)
        for task, answer in answers:
            if isinstance(answer, dict):
                definition, counts = plan.definitions_by_name[task.definition], job.counts[task.variant]
                likelihood = likelihood_of(counts, definition, answer["is_used"], num_threads=runtime.num_threads)
                answer = Posterior(definition=definition, counts=counts, likelihood=likelihood, **answer)
            made[task] = answer
            report(task, PARTS)
            done += job.cost(task)
    posteriors: dict[str, dict[str, Posterior]] = {name: {} for name in job.counts}
    reasons = []
    for task in tasks:
        posterior = made[task]
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
        influences={place: main[place[0]].influence(place[1]) for place in headline},
        half_medians={
            place: float(of_half[place[0]].quantile(0.5, place[1])) for place in headline if place[0] in of_half
        },
        not_estimated=tuple(reasons),
    )


def _leakage(plan: AuditPlan, attacks: Attacks, runtime: Runtime) -> NodeLeakage:
    return node_leakage(attacks.main_counts, plan.level, num_threads=runtime.num_threads)


POSTERIOR_NAME = "posteriors/{}_{}.npz"  # of a variant and a definition


def posterior_files(estimates: Estimates) -> Files:
    """What writes the file of each posterior."""
    return {
        POSTERIOR_NAME.format(variant, definition): posterior.save
        for variant, row in estimates.posteriors.items()
        for definition, posterior in row.items()
    }


def read_estimates(
    workspace: Workspace, plan: AuditPlan, attacks: Attacks, result: AuditResult, runtime: Runtime
) -> Estimates:
    """Reads what the step left; the workspace has checked that it is whole."""
    posteriors = {
        variant: {
            definition: workspace.read(POSTERIOR_NAME.format(variant, definition), Posterior.load)
            for definition in each.posteriors
        }
        for variant, each in result.variants.items()
    }
    half_medians = {
        (row.definition, row.parameter): row.half_median for row in result.headline if row.half_median is not None
    }
    return Estimates(posteriors, _leakage(plan, attacks, runtime), {}, half_medians)


# What the model of an audit guarantees by a proof, beside what the audit proves of it.

PRIOR_LEVEL = 0.999
"""Confidence that estimated priors lie within the limits that upper bounds are worked out with."""
VISIBLE = 0.005


@dataclass(frozen=True)
class Guaranteed:
    """A guarantee, and the upper bounds that follow for an audit."""

    guarantee: Guarantee  # what the model guarantees with the audit's sampler
    limits: dict[str, float]  # upper bounds by parameter: epsilon_right, epsilon_left and mp
    deltas: dict[str, float]  # the δ of each, by parameter; 0 for a pure guarantee
    num_nodes: int  # number of nodes that the audit could name
    mp: ApproximateMP  # the MP that holds of any node's answers
    level: float = 1.0  # confidence of the limits: below 1 if priors are estimated

    def level_of(self, bound: ProvenBound) -> float | None:
        """The confidence of a lower bound on the smallest ε that holds with the guarantee's δ; None if it is too low.

        A δ costs at most δ for each node that could be named and each model that was challenged (docs/guarantees.md),
        and estimated priors cost what their limits may fail with. Where that is more than the bound may fail with
        anyway, the two are not compared.
        """
        cost = self.deltas[bound.parameter] * self.num_nodes * bound.num_challenged + (1 - self.level)
        if cost > 1 - bound.level:
            return None
        return bound.level if cost == 0 else math.floor(1_000 * (bound.level - cost)) / 1_000

    def sentence(self, proof: Proof | None) -> str:
        """The upper bounds, and beside them the lower ones that the audit proves of the main release."""
        proven = {bound.parameter: bound for bound in proof.bounds} if proof is not None else {}
        limits = listed([f"{symbol} ≤ {number(self.limits[name], 2)}" for name, symbol in SYMBOLS.items()])
        with_delta = f", each with δ = {self.guarantee.delta:.2g} of MDP" if self.guarantee.delta > 0 else ""
        text = f"By the proof of {self.guarantee.mechanism}, {limits}{with_delta}."
        if self.level < 1:
            text += f" Priors are estimated: these limits hold with {confidence(self.level)} confidence."
        if self.mp.epsilon > self.guarantee.mp.epsilon + VISIBLE:
            text += " The limits allow for what the existence of a model says: its sample is not empty."
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
    """What the model of a plan guarantees; None if it has no method `guarantee`, or its code has not been run."""
    model, own_code = plan.model, (plan.model, plan.sampler)
    if any(isinstance(part, registry.UntrustedPart) for part in own_code) or not hasattr(model, "guarantee"):
        return None
    guarantee = model.guarantee(graph, plan.sampler)
    if guarantee is None:
        return None
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"guarantee of {model} must return a Guarantee or None, got {guarantee!r}")
    # The same limits for all releases: an ensemble gives out several models.
    guarantee = guarantee.repeated(max(map(models_of, plan.releases)))
    with np.errstate(divide="ignore"):
        low, high = (prob / (1.0 - prob) for prob in priors.confidence_bounds(PRIOR_LEVEL))
    mp = of_samples = guarantee.mp
    if guarantee.distance == 1:  # samples are independent coins, and may be empty: no model is trained on those
        mp = non_empty_mdp_to_mp(guarantee.epsilon, guarantee.delta, low)
    odds = np.concatenate([low, high])
    right, left = (approximate_mp_to_bmp(each.epsilon, each.delta, odds) for each in (mp, of_samples))
    limits = {"epsilon_right": right.right, "epsilon_left": left.left, "mp": mp.epsilon}
    deltas = {"epsilon_right": right.delta, "epsilon_left": left.delta, "mp": mp.delta}
    return Guaranteed(guarantee, limits, deltas, graph.num_nodes, mp, 1.0 if priors.is_exact else PRIOR_LEVEL)
