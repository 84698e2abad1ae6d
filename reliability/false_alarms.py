"""How often the permutation test finds leakage, or accuses a node, where there is none."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import numpy as np
from section import Section, most, table

from bmpaudit import datasets
from bmpaudit.attack import Evidence
from bmpaudit.attack.permutation import SIGNIFICANT, permutation_test
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Sampler
from bmpaudit.samplers import Snowball, Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.progress import progress_bar
from bmpaudit.util.values import Flags

NUM_AUDITS = {"simulated": 500, "trained": 24}  # with each sampler
NUM_NODES, NUM_MODELS = 200, 40
LEVELS = (SIGNIFICANT, 0.05)
SAMPLERS: dict[str, Sampler] = {"uniform": Uniform(0.25), "snowball": Snowball(0.25)}


def run(scale: float, seed: int) -> Section:
    """Audits of statistics that have nothing to do with the memberships, but much with each other."""
    rows, passed = [], True
    for kind, make in (("simulated", _simulated(_random_graph(seed))), ("trained", _trained(datasets.load("demo")))):
        number = int(np.ceil(NUM_AUDITS[kind] * scale))
        for sampler_name, sampler in SAMPLERS.items():
            alarms, accused = np.zeros(len(LEVELS), dtype=np.int64), 0
            with progress_bar(f"{kind}, {sampler_name}", number) as progress:
                for audit in range(number):
                    test = permutation_test(make(sampler, seed * 1_000_000 + audit), seed=audit, num_threads=1)
                    alarms += [test.p_value <= level for level in LEVELS]
                    accused += test.num_leaking > 0
                    progress(audit + 1)
            told = [(f"p ≤ {level:g}", level, int(count)) for level, count in zip(LEVELS, alarms, strict=True)]
            for what, level, count in (*told, ("a node is proven to leak", SIGNIFICANT, accused)):
                highest = most(number, level)
                passed &= count <= highest
                share = f"{100 * count / number:.1f} %"
                rows.append([kind, sampler_name, f"{number:,}", what, count, share, highest])
    head = ["statistics", "sampler", "audits", "alarm", "false alarms", "share", "no surprise up to (99.9 %)"]
    text = f"""Audits of {NUM_MODELS} models whose statistics know nothing of the memberships. The test alarms at
p ≤ 0.01, so in at most 1 % of such audits, and in at most 1 % it says of any node that it leaks. Simulated statistics,
of a random graph of {NUM_NODES} nodes, go up and down together, as real ones do. Trained ones are those of GCNs on the
demo graph, and the memberships are of other samples, drawn independently of the ones that the models were trained on.

{table(head, rows)}"""
    return Section(text, passed)


def _random_graph(seed: int) -> Graph:
    pairs = np.random.default_rng(seed).integers(NUM_NODES, size=(2 * NUM_NODES, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return Graph.from_edges(pairs, np.ones((NUM_NODES, 1), dtype=np.float32), np.arange(NUM_NODES) % 2)


def _simulated(graph: Graph) -> Callable[[Sampler, int], Evidence]:
    def make(sampler: Sampler, seed: int) -> Evidence:
        rng, statistics = np.random.default_rng(seed), {}
        for query in ("full", "none"):
            common = rng.normal(size=(NUM_MODELS, 3)) @ rng.normal(size=(3, graph.num_nodes))
            statistics[query] = rng.normal(size=common.shape) + common
        return Evidence(statistics, _memberships(graph, sampler, seed), np.arange(NUM_MODELS), graph)

    return make


def _trained(graph: Graph) -> Callable[[Sampler, int], Evidence]:
    def make(sampler: Sampler, seed: int) -> Evidence:
        with tempfile.TemporaryDirectory() as folder:
            plan = ShadowPlan(sampler=sampler, seed=seed)
            runs = train_shadows(graph, plan, NUM_MODELS, folder, num_threads=1)
            seen = Evidence.of_runs(runs, "clean", ("full", "none"), graph)
            others = _memberships(graph, sampler, seed + 500_000)
            return Evidence(seen.statistics, others, seen.indices, graph)

    return make


def _memberships(graph: Graph, sampler: Sampler, seed: int) -> Flags:
    return draw_memberships(graph, sampler, NUM_MODELS, seed)
