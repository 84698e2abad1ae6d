"""Time to draw training samples: native against plain Python, side by side, on one thread.

python benchmarks/samplers.py [--graph cora] [--samples 1000]
"""

import argparse
import random
import statistics
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from bmpaudit import Graph, datasets
from bmpaudit.samplers import (
    Bernoulli,
    DegreeWeighted,
    RandomWalk,
    Sampler,
    Snowball,
    Stratified,
    Uniform,
    draw_memberships,
)

REPEATS = 5


def plain_snowball(neighbors: list[list[int]], target: int, fan_out: int, rng: random.Random) -> list[int]:
    """The snowball as one would write it in Python."""
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
    """Prints native and plain snowball times, taken in turn, and their ratio."""
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
    """Prints the time of a sample for the other samplers."""
    by_fraction: list[Sampler] = [Uniform(0.25), Bernoulli(0.25), Stratified(0.25), DegreeWeighted(0.25)]
    for sampler in [*by_fraction, RandomWalk(graph.num_nodes // 12)]:
        draw = partial(draw_memberships, graph, sampler, num_samples, seed=0, num_threads=1)
        print(f"{sampler}: {median_seconds(draw) / num_samples * 1e6:.1f} µs each")


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


if __name__ == "__main__":
    main()
