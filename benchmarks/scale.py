"""Time and memory of the steps after training, for growing numbers of nodes and of models.

python benchmarks/scale.py [--nodes 50000 100000 200000] [--models 500 1000 2000] [--steps read attack proof]

Statistics are made up and written to a store, two views (one release, asked with all edges and with none), on a graph
of seven edges per node. Every size runs in a process of its own, which measures time by the clock, processor time and
peak memory of each step (Linux: VmHWM, reset before each step). Nodes grow at the largest number of models, then models
at the largest number of nodes; "ratio" is the processor time over that of the size before it. Twice as many should take
about twice as long.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np

from bmpaudit.auditing import Runtime
from bmpaudit.auditing.stages import run_attacks, run_estimates, run_permutation_test, run_proofs
from bmpaudit.graph.graph import Graph
from bmpaudit.plan import AuditPlan
from bmpaudit.releases import Clean
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowStore
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.util.matrices import MODELS_PER_CHUNK

Figures: TypeAlias = dict[str, tuple[float, float, float]]
STEPS = ("read", "attack", "proof", "estimation")
EDGES_PER_NODE = 7
NUM_CLASSES = 5


def make_graph(num_nodes: int, num_features: int = 1) -> Graph:
    """A random graph."""
    rng = np.random.default_rng(0)
    edges = np.sort(rng.integers(num_nodes, size=(EDGES_PER_NODE * num_nodes, 2)), axis=1)
    once = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
    features = rng.normal(size=(num_nodes, num_features)).astype(np.float32)
    return Graph.from_edges(np.concatenate([once, once[:, ::-1]]), features, rng.integers(NUM_CLASSES, size=num_nodes))


def make_plan(num_models: int) -> AuditPlan:
    """One release, two queries."""
    return AuditPlan(sampler=Uniform(0.25), shadows=num_models, releases=(Clean(),), release_as="scores")


def write_models(folder: Path, graph: Graph, plan: AuditPlan) -> None:
    """Fills a store with made-up statistics, higher for members, each node with a level of its own."""
    store = ShadowStore(folder, graph, plan.shadow_plan)
    store.extend(plan.shadows)
    level = np.random.default_rng(1).standard_normal(graph.num_nodes, dtype=np.float32)
    for first in range(0, plan.shadows, MODELS_PER_CHUNK):
        indices = np.arange(first, min(first + MODELS_PER_CHUNK, plan.shadows))
        members = draw_memberships(graph, plan.sampler, len(indices), plan.seed, first=first)
        batch = ShadowBatch.empty(graph, plan.shadow_plan, indices, members)
        rng = np.random.default_rng([2, first])
        for view, shift in zip(batch.statistics, (0.5, 1.0), strict=True):
            rng.standard_normal(out=view, dtype=np.float32)
            view += level + np.float32(shift) * members
        batch.state[:] = ModelState.TRAINED
        batch.train_accuracy[:], batch.held_out_accuracy[:] = 0.9, 0.8
        store.write(batch)


def memory() -> float:
    """Largest memory of this process since it was last reset, in GB."""
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1e6


@contextmanager
def measured(step: str, results: Figures) -> Iterator[None]:
    """Notes seconds by the clock, of processor time, and peak memory in GB."""
    Path("/proc/self/clear_refs").write_text("5")
    start, processor_start = time.perf_counter(), time.process_time()
    yield
    results[step] = time.perf_counter() - start, time.process_time() - processor_start, memory()


def run(folder: Path, num_nodes: int, num_models: int, steps: tuple[str, ...]) -> Figures:
    """Takes the steps of one size, in this process."""
    graph, plan, runtime = make_graph(num_nodes), make_plan(num_models), Runtime(quiet=True)
    priors = prior_probabilities(graph, plan.sampler)
    results: Figures = {}
    with measured("read", results):
        runs = ShadowStore(folder, graph, plan.shadow_plan, read_only=True).read()
    with measured("attack", results):
        test = run_permutation_test(plan, graph, runs, runtime)
        attacks = run_attacks(plan, graph, runs, priors, test, runtime)
    if "proof" in steps:
        with measured("proof", results):
            run_proofs(plan, graph, runs, priors, attacks, runtime)
    if "estimation" in steps:
        with measured("estimation", results):
            run_estimates(plan, attacks, runtime)
    return {step: figures for step, figures in results.items() if step in steps}


def in_a_process(num_nodes: int, num_models: int, steps: tuple[str, ...]) -> Figures:
    """The same in a process of its own, with a store that is made before and goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="bmpaudit-scale-") as folder:
        write_models(Path(folder), make_graph(num_nodes), make_plan(num_models))
        command = [sys.executable, __file__, "--run", folder, "--nodes", str(num_nodes), "--models", str(num_models)]
        made = subprocess.run([*command, "--steps", *steps], check=True, capture_output=True, text=True)  # noqa: S603
    results: Figures = json.loads(made.stdout)
    return results


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[50_000, 100_000, 200_000])
    parser.add_argument("--models", type=int, nargs="+", default=[500, 1_000, 2_000])
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS[:3])
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    steps = tuple(arguments.steps)
    if arguments.run is not None:
        print(json.dumps(run(arguments.run, arguments.nodes[0], arguments.models[0], steps)))
        return
    sizes = [(nodes, arguments.models[-1]) for nodes in arguments.nodes]
    sizes += [(arguments.nodes[-1], models) for models in arguments.models]
    known: dict[tuple[int, int], Figures] = {}
    before: tuple[int, int] | None = None
    for size in sizes:
        if size not in known:
            known[size] = in_a_process(*size, steps)
        grows = before is not None and (size[0] > before[0]) + (size[1] > before[1]) == 1
        print(f"{size[0]:,} nodes, {size[1]:,} models", flush=True)
        for step, (seconds, processor, peak) in known[size].items():
            ratio = f", ratio {processor / known[before][step][1]:.2f}" if grows and before is not None else ""
            spent = f"{seconds:7.1f} s ({processor:.1f} s of processor time)"
            print(f"  {step:<11} {spent:<36} peak {peak:.2f} GB{ratio}", flush=True)
        before = size


if __name__ == "__main__":
    main()
