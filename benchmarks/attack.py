"""The attack on statistics of Cora's size: the native kernel against a NumPy loop that fits every hypothesis anew.

python benchmarks/attack.py [--models 1000] [--nodes 2708] [--graph cora]

The loop is measured on a few nodes and scaled up. With a graph (which must have been downloaded), the time to train the
shadow models is estimated too, by training a few.
"""

import argparse
import statistics
import time

import numpy as np

from bmpaudit import datasets
from bmpaudit.attack import ErrorCounts, challenge_models, challenge_scores, null_control
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import GCN, ShadowPlan, ShadowRuns, Training, estimate_cost

VIEWS = ("full_clean", "full_noisy", "none_clean", "none_noisy")
REPEATS = 7
NAIVE_NODES = 4


def random_runs(num_models: int, num_nodes: int) -> ShadowRuns:
    """Members of a quarter of the samples score a little higher, in four views."""
    rng = np.random.default_rng(0)
    members = rng.random((num_models, num_nodes)) < 0.25
    views = {view: rng.normal(size=members.shape) + 0.7 * members for view in VIEWS}
    return ShadowRuns.from_arrays(members, views, np.zeros(num_nodes))


def all_variants(runs: ShadowRuns, prior_prob: np.ndarray) -> list[ErrorCounts]:
    """Weak and strong decisions for each of the four views."""
    challenges = [challenge_models(runs, view, prior_prob) for view in VIEWS]
    return [made.error_counts(decision) for made in challenges for decision in ("weak", "strong")]


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
    parser.add_argument("--graph", help="estimate the time to train its shadow models too")
    arguments = parser.parse_args()
    runs, prior_prob = random_runs(arguments.models, arguments.nodes), np.full(arguments.nodes, 0.25)
    all_variants(runs, prior_prob)
    native_times, processor_times, naive_times = [], [], []
    for repeat in range(REPEATS):  # in turn, so that both meet the same machine
        start, processor_start = time.perf_counter(), time.process_time()
        counts = all_variants(runs, prior_prob)
        native_times.append(time.perf_counter() - start)
        processor_times.append(time.process_time() - processor_start)
        node, member = repeat % NAIVE_NODES, runs.memberships[:, repeat % NAIVE_NODES]
        start = time.perf_counter()
        errors = [naive_node(runs.statistics[view][:, node].astype(np.float64), member, 0.25) for view in VIEWS]
        naive_times.append((time.perf_counter() - start) * arguments.nodes)
        for view in range(len(VIEWS)):
            weak, strong = counts[2 * view], counts[2 * view + 1]
            kernel = [made[node] for c in (weak, strong) for made in (c.false_positives, c.false_negatives)]
            assert errors[view] == kernel, f"node {node}, {VIEWS[view]}: {errors[view]} and {kernel}"  # noqa: S101
    native, naive = statistics.median(native_times), statistics.median(naive_times)
    print(f"{arguments.models:,} models, {arguments.nodes:,} nodes, {len(VIEWS)} views, weak and strong decisions")
    print(f"native: {native * 1e3:.0f} ms ({statistics.median(processor_times) * 1e3:.0f} ms of processor time)")
    print(f"NumPy loop, scaled up: {naive:,.0f} s; native is {naive / native:,.0f} times faster")
    start = time.perf_counter()
    null_control(runs, VIEWS[0], prior_prob)
    print(f"null control, one view, 19 permutations: {(time.perf_counter() - start) * 1e3:.0f} ms")
    start = time.perf_counter()
    challenge_scores(runs, VIEWS[0], prior_prob)
    print(f"scores of all challenges, one view: {(time.perf_counter() - start) * 1e3:.0f} ms")
    if arguments.graph:
        plan = ShadowPlan(Uniform(0.25), GCN(), Training())
        cost = estimate_cost(datasets.load(arguments.graph), plan, arguments.models)
        print(f"training on {arguments.graph}, GCN: {cost}; the attack takes 1/{cost.seconds / native:,.0f} of it")


if __name__ == "__main__":
    main()
