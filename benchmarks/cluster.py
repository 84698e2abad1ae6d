"""An audit on other processes beside one on threads, and what 1,000 models of large graphs cost on a cluster.

python benchmarks/cluster.py [--data cora pubmed] [--models 2048] [--workers 1 2] [--turns 3]
python benchmarks/cluster.py --steps [--nodes 50000] [--workers 1 2] [--turns 3]
python benchmarks/cluster.py --project

Efficiency is what so many threads of one process take over what so many workers (`--dask local:N`) take, by processor
time (of all workers and the coordinator together) and by the clock; in turns, the least of each. Workers have imported
what they need before anything is counted. The clock says little on a machine with other work, or with fewer cores than
workers and their coordinator want.

With --steps: the same of attack, proof and exposure, and estimation, with made-up statistics of 500 models of a random
graph (benchmarks/scale.py), in blocks of 4,096 nodes, of which the coordinator does the first. It has as many threads
as there are workers, which wait while it works.

With --project: constants of training and of the steps after it, measured on random graphs on one thread, and what they
come to for graphs that are too large for this machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from concurrent.futures import Executor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import scale

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.stages import run_attacks, run_estimates, run_permutation_test, run_proofs
from bmpaudit.graph.graph import Graph
from bmpaudit.plan import AuditPlan
from bmpaudit.releases import Clean
from bmpaudit.samplers import Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowStore, train_shadows
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines import make_engine
from bmpaudit.shadow.train import PIECES_PER_WORKER
from bmpaudit.util import matrices
from bmpaudit.util.matrices import MODELS_PER_CHUNK, NODES_PER_CHUNK
from bmpaudit.workers import executor_at

WARM_UP = PIECES_PER_WORKER * MODELS_PER_CHUNK
"""Models for each worker, before the clock starts: enough that all of them write to a store, and have imported it."""


class Spent(NamedTuple):
    """Seconds."""

    processor: float
    clock: float


class Large(NamedTuple):
    """A graph that is too large for this machine."""

    num_nodes: int
    num_edges: int
    num_features: int


GRAPHS = {
    "ogbn-arxiv": Large(169_343, 1_166_243, 128),
    "ogbn-products": Large(2_449_029, 61_859_140, 100),
    "100 million nodes": Large(100_000_000, 1_000_000_000, 100),
}
NUM_CLASSES = 40
NUM_MODELS = 1_000
PROBES = ((40_000, 7), (160_000, 7), (160_000, 28))  # nodes, edges per node
ATTACKED_NODES, ATTACKED_MODELS = 50_000, 250
BLOCKS_MODELS = 500
WARM_UP_NODES = 6 * NODES_PER_CHUNK  # as few as are worth sending to workers


def train(graph: Graph, plan: AuditPlan, executor: Executor | None, number: int) -> Spent:
    """Trains all models of a plan into a new folder, on so many threads or workers."""
    options: dict[str, Any] = {"executor": executor, "num_threads": number if executor is None else 1}
    with tempfile.TemporaryDirectory() as folder:
        train_shadows(graph, plan.shadow_plan, number * WARM_UP, Path(folder) / "warm-up", **options)
        before, start = processors(), time.perf_counter()
        train_shadows(graph, plan.shadow_plan, plan.shadows, Path(folder) / "models", **options)
        return Spent(processors() - before, time.perf_counter() - start)


def take_steps(folder: Path, graph: Graph, plan: AuditPlan, runtime: Runtime) -> dict[str, Spent]:
    """What the steps after training take, on models that are there."""
    priors = prior_probabilities(graph, plan.sampler)
    runs = ShadowStore(folder, graph, plan.shadow_plan, read_only=True).read()
    test = run_permutation_test(plan, graph, runs, runtime)
    marks = [(processors(), time.perf_counter())]
    attacks = run_attacks(plan, graph, runs, priors, test, runtime)
    marks.append((processors(), time.perf_counter()))
    run_proofs(plan, graph, runs, priors, attacks, runtime)
    marks.append((processors(), time.perf_counter()))
    run_estimates(plan, attacks, runtime)
    marks.append((processors(), time.perf_counter()))
    spent = [Spent(*(end - start for start, end in zip(*each, strict=True))) for each in pairwise(marks)]
    return dict(zip(("attack", "proof and exposure", "estimation"), spent, strict=True))


def warm_up_steps(runtime: Runtime) -> None:
    """Has every worker do a little of each step, so that what they import is not counted as work.

    They read the models from the store, in blocks as large as later: memory that a process asks for the first time
    takes far longer than memory that it has had before.
    """
    graph, plan = scale.make_graph(WARM_UP_NODES), scale.make_plan(BLOCKS_MODELS)
    most = WARM_UP_NODES * BLOCKS_MODELS
    with tempfile.TemporaryDirectory() as folder, patch.object(matrices, "MOST_IN_MEMORY", most):
        scale.write_models(Path(folder), graph, plan)
        take_steps(Path(folder), graph, plan, runtime)


def processors() -> float:
    """Processor time of this process and of its workers, as Linux counts it."""
    ticks = 0
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # user and system
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def print_efficiency(what: str, number: int, threads: list[Spent], processes: list[Spent]) -> None:
    """Prints the least of each, and their ratio."""
    one = Spent(*map(min, zip(*threads, strict=True)))
    many = Spent(*map(min, zip(*processes, strict=True)))
    print(
        f"  {what}{number} threads {one.processor:.1f} s of processor time, {one.clock:.1f} s; {number} workers "
        f"{many.processor:.1f} s, {many.clock:.1f} s; efficiency {one.processor / many.processor:.2f} by processor "
        f"time, {one.clock / many.clock:.2f} by the clock",
        flush=True,
    )


def compare_training(data: str, num_models: int, workers: list[int], turns: int) -> None:
    """Prints the efficiency of training on one data set."""
    graph, plan = datasets.load(data), AuditPlan(shadows=num_models)
    print(f"{data}, {num_models:,} models")
    for number in workers:
        threads, processes = [], []
        for _ in range(turns):
            threads.append(train(graph, plan, None, number))
            with executor_at(f"local:{number}") as executor:
                processes.append(train(graph, plan, executor, number))
        print_efficiency("", number, threads, processes)


def compare_steps(num_nodes: int, workers: list[int], turns: int) -> None:
    """Prints the efficiency of the steps after training."""
    graph, plan = scale.make_graph(num_nodes), scale.make_plan(BLOCKS_MODELS)
    print(f"{graph}, {BLOCKS_MODELS:,} models")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scale.write_models(folder, graph, plan)
        for number in workers:
            threads, processes = [], []
            for _ in range(turns):
                alone = Runtime(quiet=True, num_threads=number)
                warm_up_steps(alone)
                threads.append(take_steps(folder, graph, plan, alone))
                with executor_at(f"local:{number}") as executor:
                    runtime = Runtime(quiet=True, num_threads=number, executor=executor)
                    warm_up_steps(runtime)
                    processes.append(take_steps(folder, graph, plan, runtime))
            for step in threads[0]:
                print_efficiency(
                    f"{step}: ", number, [each[step] for each in threads], [each[step] for each in processes]
                )


def seconds_per_model(num_nodes: int, edges_per_node: int) -> tuple[Graph, float, float]:
    """A random graph, and what one GCN takes on one thread: seconds, and bytes at the peak beyond graph and results."""
    scale.EDGES_PER_NODE, scale.NUM_CLASSES = edges_per_node, NUM_CLASSES
    graph, plan = scale.make_graph(num_nodes, 128), AuditPlan().shadow_plan
    engine = make_engine(graph, plan)
    taken, peak = [], 0.0
    for index in range(3):
        batch = ShadowBatch.drawn(graph, plan, np.array([index]), keep_logits=False, num_threads=1)
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        before = scale.memory()
        start = time.process_time()
        engine.fill(batch, 1, lambda _: None)
        taken.append(time.process_time() - start)
        peak = max(peak, 1e9 * (scale.memory() - before))
    return graph, min(taken), peak


def seconds_per_challenge() -> tuple[float, float]:
    """What the attack, and proof and exposure, take for each model and node: one release, two queries."""
    scale.EDGES_PER_NODE = 7
    graph = scale.make_graph(ATTACKED_NODES)
    plan = AuditPlan(sampler=Uniform(0.25), shadows=ATTACKED_MODELS, releases=(Clean(),))
    priors, runtime = prior_probabilities(graph, plan.sampler), Runtime(quiet=True, num_threads=1)
    with tempfile.TemporaryDirectory() as folder:
        scale.write_models(Path(folder), graph, plan)
        runs = ShadowStore(folder, graph, plan.shadow_plan, read_only=True).read()
        start = time.process_time()
        attacks = run_attacks(plan, graph, runs, priors, run_permutation_test(plan, graph, runs, runtime), runtime)
        attacked = time.process_time()
        run_proofs(plan, graph, runs, priors, attacks, runtime)
        proven = time.process_time()
    challenges = ATTACKED_NODES * ATTACKED_MODELS
    return (attacked - start) / challenges, (proven - attacked) / challenges


def project() -> None:
    """Prints the constants and what they come to."""
    rows, taken = [], []
    for probe in PROBES:
        graph, seconds, peak = seconds_per_model(*probe)
        rows.append((graph.num_nodes, graph.num_edges))
        taken.append(seconds)
        per_node = peak / graph.num_nodes
        print(
            f"{graph}: {seconds:.2f} s a model on one thread, {per_node:,.0f} bytes a node while it trains", flush=True
        )
    # From the two largest graphs, which no cache holds.
    by_edge = (taken[2] - taken[1]) / (rows[2][1] - rows[1][1])
    by_node = (taken[1] - by_edge * rows[1][1]) / rows[1][0]
    print(f"a model takes {by_node * 1e6:.2f} µs a node and {by_edge * 1e6:.2f} µs an edge")
    attack, proof = seconds_per_challenge()
    print(f"attack {attack * 1e6:.2f} µs, proof and exposure {proof * 1e6:.2f} µs for each model, node and release")
    num_views, num_releases = 4, 2
    for name, large in GRAPHS.items():
        nodes, edges = large.num_nodes, large.num_edges
        hours = NUM_MODELS * (by_node * nodes + by_edge * edges) / 3600
        later = [NUM_MODELS * num_releases * nodes * each / 3600 for each in (attack, proof)]
        store = NUM_MODELS * nodes * (4 * num_views + 1 / 8)
        graph_bytes = nodes * (4 * large.num_features + 16) + 8 * edges
        model_bytes = nodes * (4 * num_views + 1)
        print(
            f"{name}: training {hours:,.1f} core hours, attack {later[0]:,.1f}, proof and exposure {later[1]:,.1f}; "
            f"store {store / 1e9:,.0f} GB; graph {graph_bytes / 1e9:,.2f} GB in each worker process, "
            f"{nodes * per_node / 1e9:,.2f} GB in each thread, {model_bytes / 1e9:,.3f} GB of results a model"
        )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora", "pubmed"])
    parser.add_argument("--models", type=int, default=2_048)
    parser.add_argument("--nodes", type=int, default=50_000, help="of the graph, with --steps")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", action="store_true", help="compare the steps after training instead")
    parser.add_argument("--project", action="store_true", help="print the projection instead")
    arguments = parser.parse_args()
    if arguments.project:
        project()
        return
    if arguments.steps:
        compare_steps(arguments.nodes, arguments.workers, arguments.turns)
        return
    for data in arguments.data:
        compare_training(data, arguments.models, arguments.workers, arguments.turns)


if __name__ == "__main__":
    main()
