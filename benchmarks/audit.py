"""A whole audit, from graph to page, step by step; the size of its page; and what a plain pipeline would take.

python benchmarks/audit.py [--graph cora] [--sampler snowball] [--model gcn] [--shadows 1000] [--plain]

The audit runs as the command does, on all cores; the demo's is measured first. Pages of other sizes are made from the
demo's nodes, repeated. With --plain, single pieces of a plain PyTorch Geometric and NumPy pipeline are measured in one
process: shadow models, the attack on some nodes, iterations of MHAAR; and scaled to the audit's size: all models, all
nodes, and as many chains of the paper's length as the audit has posteriors. It too is given all cores, as if it scaled
perfectly.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.graph.graph import Graph
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan
from bmpaudit.report.drawing import DEFAULT_PICTURES, Drawing, picture_formats
from bmpaudit.report.page import render_page
from bmpaudit.report.page_data import finite, margin_histograms, nodes_part, page_data, report_files, shown_nodes

DEMO_SHADOWS = 800
MODELS_MEASURED = 5
NODES_MEASURED = 5
ITERATIONS_MEASURED = 10
PAPER_ITERATIONS = {False: 10_000, True: 50_000}  # by whether ε_L and ε_R are estimated together
PAGE_NODES = (1_000, 3_000, 100_000)
REPORT_SECONDS = 3.0  # wanted at most for the page and the pictures of the demo together


def seconds(work: Callable[[], object]) -> float:
    """Time of one run by the clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_seconds() -> float:
    """Processor time of this process and of those it started that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def print_audit(source: str, plan: AuditPlan) -> tuple[Audit, float]:
    """Runs an audit in a new folder and prints what its steps take; gives it with its time by the clock."""
    with tempfile.TemporaryDirectory() as folder:
        start, processor = time.perf_counter(), processor_seconds()
        pipeline = Pipeline(Subject(datasets.load(source), source, plan), Workspace(folder), Runtime(quiet=True))
        with pipeline.prepared():
            page = pipeline.report()
        whole, processor = time.perf_counter() - start, processor_seconds() - processor
        assert page is not None  # noqa: S101 - there is a folder
        size = page.stat().st_size
    audit = pipeline.audit
    parts = {name: spent for name, spent in pipeline.timings.items() if name != "report"}
    print(f"{audit.title}, {plan.shadows:,} models: {whole:.1f} s ({processor:.1f} s of processor time)")
    parts["page and pictures"] = pipeline.timings["report"]
    parts["files and the rest"] = whole - sum(parts.values())
    for name, spent in parts.items():
        print(f"  {name:<20} {spent:.1f} s")
    formats = picture_formats(DEFAULT_PICTURES)
    for name, wanted, helpers in (
        ("page", (), 0),
        ("page and pictures", formats, 0),
        ("page and pictures", formats, max(1, (os.cpu_count() or 1) - 1)),
    ):
        processor = processor_seconds()
        with Drawing(wanted, helpers) as drawing:
            start = time.perf_counter()
            drawing.start()
            report_files(audit, drawing)
            clock = time.perf_counter() - start
        processor = processor_seconds() - processor
        print(
            f"  {name} again, helpers: {helpers}: {clock:.1f} s ({processor:.1f} s of processor time), "
            f"{clock / REPORT_SECONDS:.2f} of the {REPORT_SECONDS:g} s wanted on the demo graph"
        )
    print(f"  size of the page: {size / 1e6:.1f} MB")
    return audit, whole


def page_size(audit: Audit, num_nodes: int) -> int:
    """Bytes of the page, had the audit so many nodes: those it has, again and again."""
    graph, view = audit.graph, audit.attacks.variants[0]
    copies = -(-num_nodes // graph.num_nodes)
    nodes = pd.concat([audit.nodes] * copies, ignore_index=True)[:num_nodes]
    nodes["node"] = np.arange(num_nodes)
    nodes["name"] = [f"node {node}" for node in range(num_nodes)]
    edges = np.concatenate([graph.edges + copy * graph.num_nodes for copy in range(copies)])
    labels = np.tile(graph.labels, copies)[:num_nodes]
    larger = Graph.from_edges(edges[(edges < num_nodes).all(axis=1)], np.ones((num_nodes, 1)), labels)
    shown = shown_nodes(nodes) % graph.num_nodes
    margins = audit.runs.statistics[f"{view.queries[0]}_{view.release}"][:, shown]
    data = finite(
        {**nodes_part(nodes, larger), "margins": margin_histograms(margins, audit.runs.memberships[:, shown])}
    )
    return len(render_page({**page_data(audit), **data}).encode())


def print_plain(audit: Audit, whole: float) -> None:
    """Prints what a plain pipeline would take for the same audit."""
    import torch
    from attack import naive_node
    from estimation import PlainMhaar, table_of
    from shadow_training import PlainGAT, PlainGCN, plain_model

    from bmpaudit.auditing.stages import estimation_tasks

    torch.set_num_threads(1)  # models this small gain nothing from more
    plan, runs, counts = audit.plan, audit.runs, audit.attacks.main_counts
    data, kind = audit.graph.to_pyg(), PlainGAT if "GAT" in plan.title else PlainGCN
    a_model = statistics.median(
        seconds(lambda: plain_model(data, kind, audit.graph.num_classes, 0.25)) for _ in range(MODELS_MEASURED)
    )
    view = plan.views[0].name
    a_node = statistics.median(
        seconds(lambda k=k: naive_node(runs.statistics[view][:, k].astype(np.float64), runs.memberships[:, k], 0.25))  # type: ignore[misc]
        for k in counts.node[:NODES_MEASURED].tolist()
    )
    chain = PlainMhaar(table_of(counts), 50, epsilon=8.0, rng=np.random.default_rng(1))
    an_iteration = statistics.median(seconds(chain.step) for _ in range(ITERATIONS_MEASURED))
    tasks = estimation_tasks(plan, audit.attacks)
    definitions = plan.definitions_by_name
    iterations = sum(PAPER_ITERATIONS[len(definitions[definition].parameters) > 1] for _, definition in tasks)
    cores = os.cpu_count() or 1
    pieces = {
        "training": a_model * plan.shadows,
        "attack": a_node * counts.num_nodes * len(plan.views),
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


def main() -> None:
    """Runs the audits, and what is compared with them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--sampler", choices=("snowball", "uniform"), default="snowball")
    parser.add_argument("--model", choices=("gcn", "gat"), default="gcn")
    parser.add_argument("--shadows", type=int, default=1_000)
    parser.add_argument("--plain", action="store_true", help="measure a plain pipeline too; needs the extra torch")
    arguments = parser.parse_args()
    demo, _ = print_audit("demo", AuditPlan(sampler="snowball", shadows=DEMO_SHADOWS))
    for num_nodes in PAGE_NODES:
        print(f"page of {num_nodes:,} nodes: {page_size(demo, num_nodes) / 1e6:.1f} MB")
    plan = AuditPlan(sampler=arguments.sampler, model=arguments.model, shadows=arguments.shadows)
    audit, whole = print_audit(arguments.graph, plan)
    if arguments.plain:
        print_plain(audit, whole)


if __name__ == "__main__":
    main()
