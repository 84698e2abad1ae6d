"""Time to draw training samples, in C++ and in plain Python side by side, and to check memberships; on one thread.

python benchmarks/samplers.py [--graph cora] [--samples 1000]
"""

import argparse
import random
import statistics
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Sampler
from bmpaudit.samplers import (
    Bernoulli,
    DegreeWeighted,
    RandomWalk,
    Snowball,
    Stratified,
    Uniform,
    check_memberships,
    draw_memberships,
    prior_probabilities,
)

REPEATS = 5


def plain_snowball(neighbors: list[list[int]], target: int, fan_out: int, rng: random.Random) -> list[int]:
    """Snowball sampling as one would write it in Python."""
    seed = rng.randrange(len(neighbors))
    members, queue = {seed}, deque([seed])
    while queue and len(members) < target:
        around = neighbors[queue.popleft()]
        for node in rng.sample(around, min(fan_out, len(around))):
            if node not in members and len(members) < target:
                members.add(node)
                queue.append(node)
    return sorted(members)


def median_seconds(work: Callable[[], object]) -> float:
    """The median time of several runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compare_snowball(graph: Graph, num_samples: int) -> None:
    """Prints the times of snowball sampling in C++ and in Python, and their ratio."""
    sampler, target = Snowball(0.25), graph.num_nodes // 4
    neighbors = [graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist() for v in range(graph.num_nodes)]
    plain_count = max(1, num_samples // 10)
    rng = random.Random(0)  # noqa: S311 - a benchmark, not a secret
    native = median_seconds(lambda: draw_memberships(graph, sampler, num_samples, seed=0, num_threads=1)) / num_samples
    plain = median_seconds(
        lambda: [plain_snowball(neighbors, target, sampler.fan_out, rng) for _ in range(plain_count)]
    )
    plain /= plain_count
    print(f"snowball 25 %, {num_samples:,} samples: native {native * num_samples:.3f} s ({native * 1e6:.1f} µs each)")
    print(f"snowball 25 %, plain Python: {plain * 1e6:,.0f} µs each; native is {plain / native:.0f} times faster")


def time_others(graph: Graph, num_samples: int) -> None:
    """Prints the time per sample of the other samplers."""
    samplers: list[Sampler] = [Uniform(), Bernoulli(), Stratified(), DegreeWeighted(), RandomWalk()]
    for sampler in samplers:
        draw = partial(draw_memberships, graph, sampler, num_samples, seed=0, num_threads=1)
        print(f"{sampler}: {median_seconds(draw) / num_samples * 1e6:.1f} µs each")


def measure_floor(graph: Graph) -> None:
    """Prints the floor of snowball sampling as bounded from 100,000 draws, and the plain extreme."""
    start = time.perf_counter()
    priors = prior_probabilities(graph, Snowball(0.25), num_threads=1)
    seconds = time.perf_counter() - start
    bound, extreme = priors.floor, priors.floor_estimate
    print(f"snowball 25 %, priors from {priors.num_draws:,} draws: {seconds:.2f} s")
    print(f"  bound at 95 %: ε_L ≥ {bound.left:.2f}, ε_R ≥ {bound.right:.2f}")
    print(f"  plain extreme: ε_L {extreme.left:.2f}, ε_R {extreme.right:.2f}")


def time_check(graph: Graph, num_samples: int) -> None:
    """Prints the time to check memberships against their sampler."""
    sampler = Snowball(0.25)
    priors = prior_probabilities(graph, sampler, num_draws=20_000, num_threads=1)
    memberships = draw_memberships(graph, sampler, num_samples, seed=0, num_threads=1)
    seconds = median_seconds(lambda: check_memberships(memberships, graph, sampler, priors, num_threads=1))
    print(f"check of {num_samples:,} snowball memberships: {seconds:.2f} s")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--samples", type=int, default=1_000)
    arguments = parser.parse_args()
    graph = datasets.load(arguments.graph)
    print(f"{arguments.graph}: {graph}")
    compare_snowball(graph, arguments.samples)
    time_others(graph, arguments.samples)
    measure_floor(graph)
    time_check(graph, arguments.samples)


if __name__ == "__main__":
    main()
