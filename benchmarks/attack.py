"""The attack on statistics of Cora's size: the native kernel against a NumPy loop that fits every hypothesis anew.

python benchmarks/attack.py [--models 1000] [--nodes 2708] [--graph cora amazon_photo]

The loop is measured on a few nodes and scaled up. With graphs (which must have been downloaded), GCNs are trained on
them, and what is found out about one release by the Student attack is measured against that: with their memberships,
and with memberships shuffled between models, so that nothing leaks.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from bmpaudit import datasets
from bmpaudit.attack import (
    ErrorCounts,
    Evidence,
    Gaussian,
    Strong,
    Student,
    Weak,
    attack_performance,
    challenge,
    permutation_test,
)
from bmpaudit.interfaces import DecisionRule
from bmpaudit.models import GCN, Training
from bmpaudit.proof import certify, expose, prove
from bmpaudit.releases import Clean
from bmpaudit.samplers import Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, train_shadows

RELEASES, QUERIES = ("clean", "noisy"), ("full", "none")
VIEWS = tuple((release, query) for release in RELEASES for query in QUERIES)
RULES: dict[str, DecisionRule] = {"weak": Weak(), "strong": Strong()}
REPEATS = 7
NAIVE_NODES = 4
Result = TypeVar("Result")


class ScoreWeak(Weak):
    """Not the built-in class, so that errors are counted from scores, as they are for a rule of one's own."""


def random_models(num_models: int, num_nodes: int) -> list[Evidence]:
    """Members of a quarter of the samples score a little higher; one for each view."""
    rng = np.random.default_rng(0)
    members = rng.random((num_models, num_nodes)) < 0.25
    return [
        Evidence(
            {query: (rng.normal(size=members.shape) + 0.7 * members).astype(np.float32)}, members, np.arange(num_models)
        )
        for _, query in VIEWS
    ]


def all_variants(views: list[Evidence], prior_prob: np.ndarray) -> list[dict[str, ErrorCounts]]:
    """Errors of the weak and the strong rule for each view."""
    challenges = [challenge(Gaussian(), models, prior_prob, RULES) for models in views]
    return [{rule: made.error_counts(rule) for rule in RULES} for made in challenges]


def naive_node(z: np.ndarray, member: np.ndarray, prior_prob: float) -> list[int]:
    """Algorithm 1 for one node and view as it is written: weak and strong errors of both kinds."""
    errors = [0, 0, 0, 0]
    others = np.ones(len(z), dtype=bool)
    log_odds = np.log(prior_prob / (1 - prior_prob))
    for model in range(len(z)):
        others[model] = False
        outside, inside = z[others & ~member], z[others & member]
        mean_out, sigma_out, mean_in, sigma_in = outside.mean(), outside.std(), inside.mean(), inside.std()
        others[model] = True
        distance = ((z[model] - mean_out) / sigma_out) ** 2 - ((z[model] - mean_in) / sigma_in) ** 2
        score = np.log(sigma_out / sigma_in) + distance / 2
        errors[int(member[model])] += (score > 0) != member[model]
        errors[2 + int(member[model])] += (score + log_odds > 0) != member[model]
    return errors


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1_000)
    parser.add_argument("--nodes", type=int, default=2_708)
    parser.add_argument("--graph", nargs="*", default=[], help="train models on these, and measure what follows")
    arguments = parser.parse_args()
    views, prior_prob = random_models(arguments.models, arguments.nodes), np.full(arguments.nodes, 0.25)
    all_variants(views, prior_prob)
    native_times, processor_times, naive_times = [], [], []
    for repeat in range(REPEATS):  # in turn, so that both meet the same machine
        start, processor_start = time.perf_counter(), time.process_time()
        counts = all_variants(views, prior_prob)
        native_times.append(time.perf_counter() - start)
        processor_times.append(time.process_time() - processor_start)
        node = repeat % NAIVE_NODES
        member = views[0].memberships[:, node]
        start = time.perf_counter()
        errors = [naive_node(models.only_statistic[:, node].astype(np.float64), member, 0.25) for models in views]
        naive_times.append((time.perf_counter() - start) * arguments.nodes)
        for view, made, expected in zip(VIEWS, counts, errors, strict=True):
            both = (made["weak"], made["strong"])
            kernel = [errors_of[node] for c in both for errors_of in (c.false_positives, c.false_negatives)]
            assert expected == kernel, f"node {node}, {view}: {expected} and {kernel}"  # noqa: S101
    native, naive = statistics.median(native_times), statistics.median(naive_times)
    print(f"{arguments.models:,} models, {arguments.nodes:,} nodes, {len(VIEWS)} views, weak and strong rule")
    print(f"native: {native * 1e3:.0f} ms ({statistics.median(processor_times) * 1e3:.0f} ms of processor time)")
    print(f"NumPy loop, scaled up: {naive:,.0f} s; native is {naive / native:,.0f} times faster")
    start = time.perf_counter()
    challenge(Gaussian(), views[0], prior_prob, {"weak": ScoreWeak()})
    print(f"errors counted from scores, one view, one rule: {(time.perf_counter() - start) * 1e3:.0f} ms")
    start = time.perf_counter()
    test = permutation_test(views[0])
    print(f"permutation test, one view, {test.num_shuffles} shuffles: {(time.perf_counter() - start) * 1e3:.0f} ms")
    start = time.perf_counter()
    scores = challenge(Gaussian(), views[0], prior_prob, RULES, with_scores=True).scores
    print(f"scores of all challenges, one view: {(time.perf_counter() - start) * 1e3:.0f} ms")
    if scores is not None:
        start = time.perf_counter()
        attack_performance(scores)
        print(f"accuracy, AUC, TPR at FPR and ROC, one view: {(time.perf_counter() - start) * 1e3:.0f} ms")
    for data in arguments.graph:
        measure_steps(data, arguments.models)


def measure_steps(data: str, num_models: int) -> None:
    """What is found out about one release, asked in two ways, against training its models."""
    graph, attack = datasets.load(data), Student()
    plan = ShadowPlan(Uniform(0.25), GCN(), Training(), releases=(Clean(),))
    prior_prob = prior_probabilities(graph, plan.sampler).prob
    with tempfile.TemporaryDirectory() as folder:
        training, runs = spent(lambda: train_shadows(graph, plan, num_models, folder))
        trained = Evidence.of_runs(runs, "clean", QUERIES, graph)
        memberships = np.asarray(trained.memberships)
        order = np.random.default_rng(1).permutation(num_models)
        shuffled = Evidence(trained.statistics, memberships[order], trained.indices, graph)
        print(f"{data}, {graph.num_nodes:,} nodes: training {num_models:,} GCNs takes {training:.1f} s")
        print(f"  {'step':<18} {'leaking':>22}  {'memberships shuffled':>22}")
        steps: dict[str, Callable[[Evidence], object]] = {
            "permutation test": permutation_test,
            "attack": lambda models: challenge(attack, models, prior_prob, RULES, with_scores=True),
            "proof": lambda models: prove(attack, models, prior_prob),
            "certified exposure": lambda models: certify(attack, models, prior_prob),
            "exposure": lambda models: expose(attack, models, prior_prob),
        }
        for name, step in steps.items():
            times = [spent(lambda step=step, models=models: step(models))[0] for models in (trained, shuffled)]  # type: ignore[misc]
            cells = [f"{seconds:7.2f} s, {seconds / training:5.3f} of it" for seconds in times]
            print(f"  {name:<18} {'  '.join(f'{cell:>22}' for cell in cells)}", flush=True)


def spent(step: Callable[[], Result]) -> tuple[float, Result]:
    """Processor time of a step, and what it returns."""
    start = time.process_time()
    result = step()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
