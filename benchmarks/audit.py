"""A whole audit, from graph to page, beside what a plain PyTorch Geometric and NumPy pipeline would take.

python benchmarks/audit.py [--graph cora] [--sampler snowball] [--model gat] [--shadows 1000]

The audit runs as the command does, on all cores. Of the plain pipeline single pieces are measured in the same run, in
one process: shadow models, the attack on some nodes, iterations of MHAAR; and scaled to the audit's size: all models,
all nodes, and as many chains of the paper's length as the audit has posteriors. It too is given all cores, as if it
scaled perfectly.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from attack import naive_node
from estimation import PlainMhaar, table_of
from shadow_training import PlainGAT, PlainGCN, plain_model

from bmpaudit import AuditPlan, audit, datasets
from bmpaudit.auditing.estimate_step import estimation_tasks

MODELS_MEASURED = 5
NODES_MEASURED = 5
ITERATIONS_MEASURED = 10
PAPER_ITERATIONS = {False: 10_000, True: 50_000}  # by whether ε_L and ε_R are estimated together


def seconds(work: Callable[[], object]) -> float:
    """Time of one run by the clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Runs the audit and the pieces of the plain pipeline."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--sampler", choices=("snowball", "uniform"), default="snowball")
    parser.add_argument("--model", choices=("gcn", "gat"), default="gat")
    parser.add_argument("--shadows", type=int, default=1_000)
    arguments = parser.parse_args()
    plan = AuditPlan(sampler=arguments.sampler, model=arguments.model, shadows=arguments.shadows)
    graph = datasets.load(arguments.graph)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        result = audit(arguments.graph, plan, folder=folder)
        whole = time.perf_counter() - start
        page = (Path(folder) / "report.html").stat().st_size
    timings, runs, counts = result.timings, result.runs, result.attacks.main_counts
    steps = ", ".join(f"{name} {spent:.1f} s" for name, spent in timings.items())
    print(f"bmpaudit audit, {arguments.graph}, {plan.title}, {runs.num_models:,} models: {whole:.1f} s ({steps})")
    print(f"page: {page / 1e6:.1f} MB")

    torch.set_num_threads(1)  # models this small gain nothing from more
    data, kind = graph.to_pyg(), PlainGAT if arguments.model == "gat" else PlainGCN
    a_model = statistics.median(
        seconds(lambda: plain_model(data, kind, graph.num_classes, 0.25)) for _ in range(MODELS_MEASURED)
    )
    view = plan.views[0].name
    a_node = statistics.median(
        seconds(lambda k=k: naive_node(runs.statistics[view][:, k].astype(np.float64), runs.memberships[:, k], 0.25))  # type: ignore[misc]
        for k in counts.node[:NODES_MEASURED].tolist()
    )
    chain = PlainMhaar(table_of(counts), 50, epsilon=8.0, rng=np.random.default_rng(1))
    an_iteration = statistics.median(seconds(chain.step) for _ in range(ITERATIONS_MEASURED))
    tasks = estimation_tasks(plan, result.attacks)
    definitions = plan.definitions_by_name
    iterations = sum(PAPER_ITERATIONS[len(definitions[definition].parameters) > 1] for _, definition in tasks)
    cores = os.cpu_count() or 1
    pieces = {
        "training": a_model * arguments.shadows,
        "attack": a_node * counts.num_nodes * len(plan.views) * (1 + plan.permutations),
        "estimation": an_iteration * iterations,
    }
    plain = sum(pieces.values()) / cores
    parts = ", ".join(f"{name} {spent / cores:,.0f} s" for name, spent in pieces.items())
    print(f"plain PyTorch Geometric and NumPy, {cores} cores: {plain:,.0f} s ({parts})")
    print(
        f"  a model {a_model * 1e3:.0f} ms, a node and view {a_node * 1e3:.0f} ms, "
        f"an iteration {an_iteration * 1e3:.1f} ms x {iterations:,}"
    )
    print(f"ratio: {plain / whole:,.0f}x")


if __name__ == "__main__":
    main()
