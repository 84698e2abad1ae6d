"""How often the permutation test finds leakage where there is none."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import numpy as np
from section import Section, fewest, most, table

from bmpaudit import datasets
from bmpaudit.attack import Evidence, Gaussian, Student, permutation_test
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Attack, Sampler
from bmpaudit.samplers import Snowball, Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.progress import progress_bar
from bmpaudit.util.values import Flags

NUM_SIMULATED = {"gaussian": 1_500, "student": 250}  # audits with each sampler
NUM_TRAINED = 24
NUM_NODES, NUM_MODELS = 200, 40
LEVEL = 1 / 20  # the real statistic is one of 20 exchangeable ones
ATTACKS: dict[str, Attack] = {"gaussian": Gaussian(), "student": Student()}
SAMPLERS: dict[str, Sampler] = {"uniform": Uniform(0.25), "snowball": Snowball(0.25)}


def run(scale: float, seed: int) -> Section:
    """Audits of statistics that have nothing to do with the memberships, but much with each other."""
    rows, passed = [], True
    numbers = {"simulated": NUM_SIMULATED, "trained": dict.fromkeys(ATTACKS, NUM_TRAINED)}
    for kind, make in (("simulated", _simulated(_random_graph(seed))), ("trained", _trained(datasets.load("demo")))):
        for attack_name, attack in ATTACKS.items():
            number = int(np.ceil(numbers[kind][attack_name] * scale))
            for sampler_name, sampler in SAMPLERS.items():
                alarms = 0
                with progress_bar(f"{kind}, {attack_name}, {sampler_name}", number) as progress:
                    for audit in range(number):
                        models = make(sampler, seed * 1_000_000 + audit)
                        test = permutation_test(attack, models, "shadow-frequency", seed=audit, num_threads=1)
                        alarms += test.is_leakage_found
                        progress(audit + 1)
                low, high = fewest(number, LEVEL), most(number, LEVEL)
                passed &= low <= alarms <= high
                share = f"{100 * alarms / number:.1f} %"
                rows.append([kind, attack_name, sampler_name, f"{number:,}", alarms, share, f"{low} to {high}"])
    head = ["statistics", "attack", "sampler", "audits", "false alarms", "share", "no surprise (99.8 %)"]
    text = f"""Audits of {NUM_MODELS} models whose statistics know nothing of the memberships. The test alarms if the
real AUC is the largest of 20, so in 5 % of such audits. Simulated statistics, of a random graph of {NUM_NODES} nodes,
go up and down together, as real ones do. Trained ones are those of GCNs on the demo graph, and the memberships are of
other samples, drawn independently of the ones that the models were trained on.

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
