"""The errors of all attacks on one set of shadow models, counted the paper's way and ours; small enough to keep."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from bmpaudit import datasets, registry
from bmpaudit.attack import Challenges, ErrorCounts, Evidence, NotAuditable, RuleErrors, challenge
from bmpaudit.auditing import Runtime, Subject, Workspace
from bmpaudit.auditing.context import Variant
from bmpaudit.auditing.stages import attack_prior, estimate_one
from bmpaudit.estimation import Posterior, estimate, node_leakage
from bmpaudit.graph import Graph
from bmpaudit.io.readers import damage_in, parse_json, read_archive, read_json
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan
from bmpaudit.proof import expose, prove
from bmpaudit.proof.guesses import PARAMETERS
from bmpaudit.registry import ATTACK
from bmpaudit.samplers import AnySampler, Priors, prior_probabilities
from bmpaudit.shadow import ShadowRuns, ShadowStore
from bmpaudit.util.build import build_id
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import atomic_write, write_text
from bmpaudit.util.matrices import count_in
from bmpaudit.util.values import Floats, Floats32, Ints, plain
from reproduction.experiments import (
    COUNTINGS,
    DEFINITIONS,
    JOINT,
    MHAAR_SUBSET,
    NODES_SHOWN,
    NODES_SHOWN_VARIANT,
    NUM_MODELS,
    QUICK_SHARE,
    RELEASES,
    VARIANTS,
    Configuration,
)

FORMAT = 2
ARRAYS = ("node", "num_out", "num_in", "prior_prob", "is_counted")


@dataclass(frozen=True, eq=False)
class AttackCounts:
    """Errors of Algorithm 1 for every variant of the attack and both ways of counting.

    Attributes:
        challenges: By way of counting; errors in them are by the variant's name.
        about: Where the models came from and how long they took, as plain values.
    """

    challenges: Mapping[str, Challenges]
    about: Mapping[str, Any]

    def error_counts(self, variant: Variant, counting: str) -> ErrorCounts:
        """The errors of one attack, node by node."""
        return self.challenges[counting].error_counts(variant.name)

    def save(self, path: Path) -> None:
        """Writes one archive, completely or not at all."""
        arrays: dict[str, Any] = {}
        for counting, challenges in self.challenges.items():
            arrays |= {f"{counting}:{name}": _compact(getattr(challenges, name)) for name in ARRAYS}
            arrays |= {f"{counting}:errors:{name}": _compact(np.stack(e)) for name, e in challenges.errors.items()}
            arrays[f"{counting}:not_auditable"] = _text([vars(node) for node in challenges.not_auditable])
        arrays["about"] = _text({"format": FORMAT, **self.about})
        with atomic_write(path) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> AttackCounts:
        """Reads what `save` wrote.

        Raises:
            DataError: if it is damaged, or of another version.
        """
        arrays = read_archive(path, required=["about"])
        with damage_in(path, "an archive of counts; remove it to have it made again"):
            about = dict(parse_json(str(arrays.pop("about"))))
            if about.pop("format", 1) != FORMAT:
                raise DataError(f"{path} was written by another version of bmpaudit: use a new folder")
            parts: dict[str, dict[str, Any]] = {}
            for name, array in arrays.items():
                counting, _, part = name.partition(":")
                parts.setdefault(counting, {})[part] = array
            return cls({counting: _challenges(part) for counting, part in parts.items()}, about)


def challenge_all(
    plan: AuditPlan, runs: ShadowRuns, priors: Priors, runtime: Runtime, num_models: int | None = None
) -> Challenges:
    """Attacks the models, or the first `num_models`, in every way that a plan names; errors are by the variant's name.

    Which nodes can be attacked depends on samples and priors only, so it is the same for all variants.
    """
    errors: dict[str, RuleErrors] = {}
    for view in plan.views:
        queries = (view.query_name,)
        challenges = challenge(
            plan.attack,
            Evidence.of_runs(runs, view.release_name, queries).take(slice(num_models)),
            attack_prior(plan, priors),
            plan.rules_by_name,
            settings=plan.decision_settings,
            num_threads=runtime.num_threads,
        )
        errors |= {Variant(view.release_name, queries, rule).name: made for rule, made in challenges.errors.items()}
    return replace(challenges, errors=errors)


def _challenges(parts: Mapping[str, Any]) -> Challenges:
    arrays = {name: parts[name] for name in ARRAYS}
    arrays |= {name: arrays[name].astype(np.int64) for name in ("node", "num_out", "num_in")}
    errors = {
        name.removeprefix("errors:"): RuleErrors(*values.astype(np.int64))
        for name, values in parts.items()
        if name.startswith("errors:")
    }
    nodes = tuple(NotAuditable(**row) for row in parse_json(str(parts["not_auditable"])))
    return Challenges(**arrays, errors=errors, not_auditable=nodes)


def _compact(values: Any) -> Any:
    """Whole numbers in as few bytes as they need."""
    return values.astype(np.min_scalar_type(values.max(initial=0))) if values.dtype == np.int64 else values


def _text(value: Any) -> Any:
    return np.array(json.dumps(value))


# What the models of one run prove and expose, for adversaries of three kinds: each as plain values.


LEVEL = 0.95
LIMITS = ("mean", "low", "high")
PROOFS = "proof/"
"""How the names of all proofs begin."""


@dataclass(frozen=True)
class Adversary:
    """Who attacks.

    Attributes:
        attack: Name of the attack.
        queries: How they ask.
    """

    attack: str
    queries: tuple[str, ...]


ADVERSARIES: Mapping[str, Adversary] = {
    "full": Adversary("gaussian", ("full",)),
    "none": Adversary("gaussian", ("none",)),
    "all": Adversary("student", ("full", "none")),
}
"""The paper's attack with one of its two queries, as a cell has it; and a stronger attack with both."""


def proof_name(release: str, adversary: str) -> str:
    """The name of what one adversary shows about one release, in the run's file."""
    return f"{PROOFS}{release}/{adversary}"


def prove_and_expose(
    shadows: ShadowRuns,
    graph: Graph,
    priors: Priors,
    release: str,
    adversary: Adversary,
    runtime: Runtime,
    num_models: int | None = None,
) -> dict[str, Any]:
    """What is proven, and how many members one released model gives away at each precision.

    With `num_models`, by that many of the models, the first ones.
    """
    start, start_processor = time.perf_counter(), time.process_time()
    attack = registry.build(ATTACK, adversary.attack)
    evidence = Evidence.of_runs(shadows, release, adversary.queries, graph).take(slice(num_models))
    proof = prove(
        attack,
        evidence,
        priors.prob,
        prior_draws=priors.num_draws,
        level=LEVEL,
        num_threads=runtime.num_threads,
        executor=runtime.executor,
    )
    shown = expose(
        attack, evidence, priors.prob, level=LEVEL, num_threads=runtime.num_threads, executor=runtime.executor
    )
    members = shown.exposure.members
    bounds = proof.to_plain()
    values: dict[str, Any] = plain(
        {
            **{parameter: bounds[parameter] for parameter in PARAMETERS},
            "exposure": {
                "precision": members.precision,
                **{f"correct_{limit}": getattr(members.correct, limit) for limit in LIMITS},
                "named": members.named,
                "by_prior": members.by_prior,
                "total": members.total,
            },
            "auc": np.nanmean(shown.models.auc),
            "calibration_error": shown.reliability.expected_calibration_error,
            "seconds": time.perf_counter() - start,
            "processor_seconds": time.process_time() - start_processor,
        }
    )
    return values


# What was computed from one set of shadow models: a small file, written as a whole after each result.


class ResultsFile(Mapping[str, dict[str, Any]]):
    """Results by name, as plain values; `put` stores one at once.

    Raises:
        DataError: if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._results: dict[str, dict[str, Any]] = {}
        if path.exists():
            content = read_json(path)
            with damage_in(path, "results by name; remove it to have them computed again"):
                self._results = {name: dict(result) for name, result in content.items()}

    def put(self, name: str, result: dict[str, Any]) -> None:
        """Stores a result."""
        self._results[name] = result
        write_text(self.path, json.dumps(self._results, indent=0, sort_keys=True) + "\n")

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)


# One set of shadow models: training and attacks through the audit's pipeline, and where the results are kept.


@dataclass(frozen=True)
class Run:
    """One configuration with one seed, and where it is kept.

    Attributes:
        configuration: What is trained.
        seed: Random seed of the shadow models.
        num_models: J, the number of shadow models.
        root: The folder of all runs.
    """

    configuration: Configuration
    seed: int
    num_models: int
    root: Path

    def plan(self, counting: str) -> AuditPlan:
        """The audit plan, for one way of counting errors."""
        return self.configuration.plan(self.seed, self.num_models, counting)

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.root / "runs" / f"{self.configuration.name}-{self.num_models}-seed{self.seed}"

    @property
    def audit_folder(self) -> Path:
        """An audit folder with the shadow models, which is removed once their errors are counted unless it is kept."""
        return self.folder / "audit"

    @property
    def counts_path(self) -> Path:
        """The errors of the attacks."""
        return self.folder / "counts.npz"

    @property
    def results_path(self) -> Path:
        """What was computed from the errors."""
        return self.folder / "results.json"

    @property
    def results(self) -> ResultsFile:
        """What was computed from the errors."""
        return ResultsFile(self.results_path)


def train_and_attack(
    runs: Sequence[Run], runtime: Runtime, *, proven: Collection[Run] = (), keep_shadows: bool = False
) -> None:
    """Makes sure that every run has the errors of its attacks; shadow models are removed after that unless kept.

    Args:
        runs: The runs.
        runtime: Threads and progress.
        proven: Those of them that also need what their models prove and expose.
        keep_shadows: Whether to keep the shadow models.

    Raises:
        InputError: if a folder holds results of another plan or another version of bmpaudit.
    """
    missing = [run for run in runs if not run.counts_path.exists() or (run in proven and not_proven(run))]
    for run in runs:
        if run.counts_path.exists():
            _check_build(run)
        if run in missing:
            _train_and_attack(run, runtime, f"{missing.index(run) + 1} of {len(missing)}", is_proven=run in proven)
        if not keep_shadows and run.audit_folder.exists():
            shutil.rmtree(run.audit_folder)


def not_proven(run: Run) -> list[tuple[str, str]]:
    """Releases and adversaries of which it is not known what they prove."""
    results = run.results
    return [
        (release, adversary)
        for release in RELEASES
        for adversary in ADVERSARIES
        if proof_name(release, adversary) not in results
    ]


def _train_and_attack(run: Run, runtime: Runtime, number: str, *, is_proven: bool) -> None:
    start = time.perf_counter()
    shadows, about = train(run, runtime)
    if not run.counts_path.exists():
        _attack(run, shadows, about, runtime)
    graph, results = load_graph(run.configuration.dataset), run.results
    priors = known_priors(run.configuration.dataset, run.plan("ours").sampler)
    for release, adversary in not_proven(run) if is_proven else ():
        shown = prove_and_expose(shadows, graph, priors, release, ADVERSARIES[adversary], runtime)
        results.put(proof_name(release, adversary), shown)
    if not runtime.quiet:
        seconds = time.perf_counter() - start
        runtime.notice(f"{run.configuration.name}, seed {run.seed}, ready after {seconds:.1f} s ({number})")


def train(run: Run, runtime: Runtime) -> tuple[ShadowRuns, dict[str, Any]]:
    """The shadow models of a run, trained as far as they are missing, and where they came from, as plain values."""
    graph, plan, workspace = load_graph(run.configuration.dataset), run.plan("ours"), Workspace(run.audit_folder)
    num_before = _num_trained(workspace, graph, plan)
    pipeline = Pipeline(Subject(graph, run.configuration.dataset, plan), workspace, runtime)
    start_processor = time.process_time()
    with pipeline.prepared():
        shadows = pipeline.runs
    about = {
        "plan": plan.shadow_plan.describe(graph),
        "build": build_id(),
        "num_models": shadows.num_models,
        "failed": list(shadows.failed),
        "seconds_training": pipeline.timings["training"],
        "processor_training": time.process_time() - start_processor,
        "models_timed": run.num_models - num_before,
        "train_accuracy": _mean(shadows.train_accuracy),
        "held_out_accuracy": _mean(shadows.held_out_accuracy),
        "mean_sample_size": float(count_in(shadows.memberships).sum() / shadows.num_models),
    }
    return shadows, about


def _attack(run: Run, shadows: ShadowRuns, about: dict[str, Any], runtime: Runtime) -> None:
    priors = known_priors(run.configuration.dataset, run.plan("ours").sampler)
    start, start_processor = time.perf_counter(), time.process_time()
    challenges = {counting: challenge_all(run.plan(counting), shadows, priors, runtime) for counting in COUNTINGS}
    times = {"seconds_attack": time.perf_counter() - start, "processor_attack": time.process_time() - start_processor}
    run.results_path.unlink(missing_ok=True)  # if there are any, they are of errors that are gone
    AttackCounts(challenges, about | times).save(run.counts_path)


def _num_trained(workspace: Workspace, graph: Graph, plan: AuditPlan) -> int:
    if not (workspace.path / "shadows.json").exists():
        return 0
    return int(ShadowStore(workspace.path, graph, plan.shadow_plan, read_only=True).is_done.sum())


@lru_cache(maxsize=4)
def load_counts(run: Run) -> AttackCounts:
    """The errors of a run.

    Raises:
        InputError: if they are of another plan.
    """
    counts = AttackCounts.load(run.counts_path)
    wanted = run.plan("ours").shadow_plan.describe(load_graph(run.configuration.dataset))
    there: dict[str, Any] = counts.about["plan"]
    differing = [name for name in wanted if there.get(name) != wanted[name]]
    if differing:
        raise InputError(
            f"{run.counts_path} holds results of another plan (other {', '.join(differing)}): use a new folder"
        )
    return counts


def _check_build(run: Run) -> None:
    if load_counts(run).about["build"] != build_id():
        raise InputError(
            f"{run.counts_path} holds results of another version of bmpaudit: use a new folder, or --page-only to show "
            "them"
        )


@cache
def load_graph(name: str) -> Graph:
    """A data set, read once."""
    return datasets.load(name)


@cache
def known_priors(dataset: str, sampler: AnySampler) -> Priors:
    """γ(1) of each node, exact or from 100,000 draws; the same for all seeds of the shadow models."""
    return prior_probabilities(load_graph(dataset), sampler)


def _mean(values: Floats32) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None


# What is computed from the errors of one attack: each function returns plain values that a file can keep.


PERCENTILES = {"p5": 0.05, "p50": 0.5, "p95": 0.95}
JOINT_DRAWS = 400
TOP_SHARE = 0.01
DROPPED = (1, 10)


def cell_posterior(counts: ErrorCounts, plan: AuditPlan, runtime: Runtime, *, definition: str) -> dict[str, Any]:
    """The exact posterior of one cell, and how good the attack is."""
    start = time.perf_counter()
    posterior = estimate_one(plan, counts, definition, runtime)
    quantiles = _quantiles(posterior)
    seconds = time.perf_counter() - start
    trials = int(counts.num_out.sum() + counts.num_in.sum())
    wrong = int(counts.false_positives.sum() + counts.false_negatives.sum())
    false_positive_rate = _rate(counts.false_positives, counts.num_out)
    false_negative_rate = _rate(counts.false_negatives, counts.num_in)
    return {
        **quantiles,
        "mean": posterior.mean(),
        "floor": posterior.floor.right if definition == "bmp-r" else 0.0,
        "accuracy": 1.0 - wrong / trials,
        "balanced_accuracy": 1.0 - 0.5 * false_positive_rate - 0.5 * false_negative_rate,
        "num_nodes": counts.num_nodes,
        "num_not_auditable": len(counts.not_auditable),
        "num_constant": int(counts.is_constant.sum()),
        "seconds": seconds,
    }


def mhaar_posterior(
    counts: ErrorCounts, plan: AuditPlan, runtime: Runtime, *, definition: str, num_iterations: int
) -> dict[str, Any]:
    """The same by Algorithm 3 as in the paper: one chain, the first half of it burn-in, M = 50."""
    start = time.perf_counter()
    posterior = estimate(
        counts,
        definition,
        method="mhaar",
        prior=plan.epsilon_prior,
        num_iterations=num_iterations,
        num_chains=1,
        seed=plan.seed,
        num_threads=runtime.num_threads,
    )
    run = posterior.run
    if run is None:
        raise RuntimeError("method mhaar returned no chains")
    (parameter,) = run.parameter_names
    return {
        **_quantiles(posterior),
        "r_hat": float(run.diagnostics[parameter].r_hat),
        "bulk_ess": float(run.diagnostics[parameter].bulk_ess),
        "acceptance_rate": float(run.acceptance_rate.mean()),
        "seconds": time.perf_counter() - start,
    }


def unflagged_posterior(counts: ErrorCounts, plan: AuditPlan, runtime: Runtime, *, definition: str) -> dict[str, Any]:
    """The posterior without the nodes whose decision never varies, which include those that could not be attacked."""
    kept = np.flatnonzero(~counts.is_constant)
    return {"num_nodes": len(kept), "p50": _median(counts, kept, plan, runtime, definition) if len(kept) else None}


def node_summary(counts: ErrorCounts, _plan: AuditPlan, runtime: Runtime, *, keep_nodes: bool) -> dict[str, Any]:
    """How the ε that each node's errors imply varies with its prior (Figure 3), with and without flagged nodes.

    The implied ε of MP is the larger of e_R - log η and e_L + log η, each at its posterior median. Flagged nodes are
    those whose decision never varies, which include those that could not be attacked.
    """
    leakage = node_leakage(counts, num_threads=runtime.num_threads)
    implied = np.maximum(leakage.excess_right.median, leakage.excess_left.median)
    flagged = counts.is_constant | counts.is_kept
    summary: dict[str, Any] = {}
    for name, chosen in (("all", np.ones_like(flagged)), ("unflagged", ~flagged)):
        prior, epsilon = counts.prior_prob[chosen], implied[chosen]
        top = np.argsort(-epsilon, kind="stable")[: max(1, round(TOP_SHARE * len(epsilon)))]
        summary |= {
            f"{name}_num": int(chosen.sum()),
            f"{name}_spearman": rank_correlation(prior, epsilon),
            f"{name}_top_median_prior": float(np.median(prior[top])),
            f"{name}_median_prior": float(np.median(prior)),
        }
    if keep_nodes:
        summary["nodes"] = {
            "prior_prob": _rounded(counts.prior_prob, 6),
            "implied": _rounded(implied, 3),
            "right": _rounded(leakage.right.median, 3),
            "right_low": _rounded(leakage.right.low, 3),
            "right_high": _rounded(leakage.right.high, 3),
            "flagged": flagged.astype(int).tolist(),
        }
    return summary


def joint_posterior(counts: ErrorCounts, plan: AuditPlan, runtime: Runtime) -> dict[str, Any]:
    """The joint posterior of (ε_L, ε_R), with draws for Figure 4 and Pr(ε_L > ε_R) from them."""
    start = time.perf_counter()
    posterior = estimate_one(plan, counts, "bmp", runtime)
    draws = posterior.sample(JOINT_DRAWS, plan.seed)
    left, right = draws["epsilon_left"], draws["epsilon_right"]
    return {
        **_quantiles(posterior, "epsilon_left", "epsilon_left_"),
        **_quantiles(posterior, "epsilon_right", "epsilon_right_"),
        "left_exceeds_right": float(np.mean(left > right)),
        "left": _rounded(left, 3),
        "right": _rounded(right, 3),
        "seconds": time.perf_counter() - start,
    }


def deciding_nodes(counts: ErrorCounts, plan: AuditPlan, runtime: Runtime, *, definition: str) -> dict[str, Any]:
    """How much of a cell depends on its most leaking nodes: p50 without the first, and without the first ten.

    Nodes are ranked by the lower end of what they imply: e_R, or the larger excess for MP.
    """
    leakage = node_leakage(counts, num_threads=runtime.num_threads)
    low = leakage.right.low if definition == "bmp-r" else np.maximum(leakage.excess_right.low, leakage.excess_left.low)
    order = np.argsort(-low, kind="stable")
    first = int(order[0])
    node_counts = (counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives)
    return {
        "node": int(counts.node[first]),
        "node_low": float(low[first]),
        "node_prior_prob": float(counts.prior_prob[first]),
        "node_is_constant": bool(counts.is_constant[first]),
        "node_counts": [int(values[first]) for values in node_counts],
        **{
            f"p50_without_{dropped}": _median(counts, np.sort(order[dropped:]), plan, runtime, definition)
            for dropped in DROPPED
        },
    }


def _quantiles(posterior: Posterior, parameter: str | None = None, prefix: str = "") -> dict[str, float]:
    values = posterior.quantile(list(PERCENTILES.values()), parameter)
    return {f"{prefix}{name}": float(value) for name, value in zip(PERCENTILES, values, strict=True)}


def _median(counts: ErrorCounts, kept: Ints, plan: AuditPlan, runtime: Runtime, definition: str) -> float:
    return float(estimate_one(plan, counts.take(kept), definition, runtime).quantile(0.5))


def _rounded(values: Floats, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


def _rate(errors: Ints, trials: Ints) -> float:
    return float(errors.sum() / trials.sum())


def rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's; 0 if one of them is constant."""
    if len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return 0.0
    return float(spearmanr(first, second).statistic)


# What is computed from the errors of the runs: each result is stored at once, and computed once.


MHAAR_ITERATIONS = 10_000
CLEAN = tuple(variant for variant in VARIANTS if variant.release == "clean")


@dataclass(frozen=True)
class Task:
    """A result to compute from a run's errors.

    Attributes:
        run: The run.
        name: Name of the result in the run's file.
        variant: The attack whose errors are used.
        counting: How they are counted.
        compute: Makes the result from the errors and the plan.
    """

    run: Run
    name: str
    variant: Variant
    counting: str
    compute: Callable[[ErrorCounts, AuditPlan, Runtime], dict[str, Any]]


def compute_all(tasks: Sequence[Task], runtime: Runtime, what: str = "posteriors") -> None:
    """Computes the results that are missing, and stores each at once."""
    results = {run: run.results for run in {task.run for task in tasks}}
    missing = [task for task in tasks if task.name not in results[task.run]]
    if not missing:
        return
    with runtime.progress(what, len(missing)) as progress:
        for done, task in enumerate(missing, 1):
            counts = load_counts(task.run).error_counts(task.variant, task.counting)
            start = time.process_time()
            result = task.compute(counts, task.run.plan(task.counting), runtime)
            results[task.run].put(task.name, {**result, "processor_seconds": time.process_time() - start})
            progress(done)
    if not runtime.quiet:
        runtime.notice(f"{len(missing):,} {what} computed")


def result_name(variant: Variant, definition: str, kind: str) -> str:
    """The name of a result about one cell; `kind` is the way of counting for the cell's own posterior."""
    return f"{variant.name}/{definition}/{kind}"


def cell_tasks(runs: Sequence[Run], counting: str) -> list[Task]:
    """The 16 posteriors of each run, counted one way; BMP-R of all runs comes first, because it is faster."""
    return [cell_task(run, variant, name, counting) for name in DEFINITIONS for run in runs for variant in VARIANTS]


def cell_task(run: Run, variant: Variant, definition: str, counting: str) -> Task:
    """The exact posterior of one cell."""
    compute = partial(cell_posterior, definition=definition)
    return Task(run, result_name(variant, definition, counting), variant, counting, compute)


def mhaar_task(run: Run, variant: Variant, definition: str) -> Task:
    """One cell by Algorithm 3, counted the paper's way; a quick run takes a tenth of the iterations too."""
    iterations = MHAAR_ITERATIONS if run.num_models >= NUM_MODELS else MHAAR_ITERATIONS // QUICK_SHARE
    compute = partial(mhaar_posterior, definition=definition, num_iterations=iterations)
    return Task(run, result_name(variant, definition, "mhaar"), variant, "paper", compute)


def mhaar_tasks(runs: Iterable[Run]) -> list[Task]:
    """The chosen subset by Algorithm 3, for the first seed."""
    chosen = [run for run in _first_seed(runs) if run.configuration in MHAAR_SUBSET]
    return [mhaar_task(run, variant, name) for run in chosen for variant in CLEAN for name in DEFINITIONS]


def unflagged_task(run: Run, variant: Variant, definition: str) -> Task:
    """One cell without the nodes whose decision never varies."""
    compute = partial(unflagged_posterior, definition=definition)
    return Task(run, result_name(variant, definition, "unflagged"), variant, "ours", compute)


def unflagged_tasks(runs: Iterable[Run]) -> list[Task]:
    """All cells without such nodes, for the first seed."""
    return [
        unflagged_task(run, variant, name) for run in _first_seed(runs) for variant in VARIANTS for name in DEFINITIONS
    ]


def deciding_task(run: Run, variant: Variant, definition: str) -> Task:
    """The nodes on which a cell depends most."""
    compute = partial(deciding_nodes, definition=definition)
    return Task(run, result_name(variant, definition, "deciding"), variant, "paper", compute)


def figure_tasks(runs: Iterable[Run]) -> list[Task]:
    """What Figures 3 and 4 and the findings about nodes need, for the first seed."""
    first = _first_seed(runs)
    tasks = []
    for run in first:
        for counting in COUNTINGS:
            is_shown = run.configuration in NODES_SHOWN and counting == "paper"
            compute = partial(node_summary, keep_nodes=is_shown)
            tasks.append(Task(run, f"nodes/{counting}", NODES_SHOWN_VARIANT, counting, compute))
    return tasks + [
        Task(run, result_name(variant, "bmp", counting), variant, counting, joint_posterior)
        for counting in COUNTINGS
        for run in first
        if run.configuration in JOINT
        for variant in CLEAN
    ]


def _first_seed(runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if run.seed == 0]
