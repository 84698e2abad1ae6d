"""How often the permutation test finds leakage where there is none."""

from __future__ import annotations

import numpy as np
from section import Section, fewest, most, table

from bmpaudit import Graph, datasets
from bmpaudit.attack import Evidence, Gaussian, Student, permutation_test
from bmpaudit.interfaces import Attack, Sampler
from bmpaudit.progress import progress_bar
from bmpaudit.samplers import Snowball, Uniform, draw_memberships

NUM_AUDITS = {"gaussian": 2_000, "student": 400}
NUM_MODELS, EVERY = 40, 5
LEVEL = 1 / 20  # the real statistic is one of 20 exchangeable ones
ATTACKS: dict[str, Attack] = {"gaussian": Gaussian(), "student": Student()}
SAMPLERS: dict[str, Sampler] = {"uniform": Uniform(0.25), "snowball": Snowball(0.25)}


def run(scale: float, seed: int) -> Section:
    """Audits of statistics that have nothing to do with memberships, but much with each other."""
    graph = datasets.load("demo")
    rows, passed = [], True
    for attack_name, attack in ATTACKS.items():
        number = int(NUM_AUDITS[attack_name] * scale)
        for sampler_name, sampler in SAMPLERS.items():
            with progress_bar(f"{attack_name}, {sampler_name}", number) as progress:
                alarms = 0
                for audit in range(number):
                    models = _models(graph, sampler, seed * 1_000_000 + audit)
                    targets = np.arange(0, graph.num_nodes, EVERY)
                    test = permutation_test(attack, models, "shadow-frequency", seed=audit, targets=targets)
                    alarms += test.is_leakage_found
                    progress(audit + 1)
            low, high = fewest(number, LEVEL), most(number, LEVEL)
            passed &= low <= alarms <= high
            share = f"{100 * alarms / number:.1f} %"
            rows.append([attack_name, sampler_name, f"{number:,}", alarms, share, f"{low} to {high}"])
    text = f"""{NUM_MODELS} models of the demo graph whose statistics go up and down together, as real ones do, and know
nothing of the memberships. The test alarms if the real AUC is the largest of 20, so in 5 % of such audits.

{table(["attack", "sampler", "audits", "false alarms", "share", "no surprise (99.8 %)"], rows)}"""
    return Section("Permutation test: false alarms", text, passed)


def _models(graph: Graph, sampler: Sampler, seed: int) -> Evidence:
    rng, members = np.random.default_rng(seed), draw_memberships(graph, sampler, NUM_MODELS, seed)
    statistics = {}
    for query in ("full", "none"):
        common = rng.normal(size=(NUM_MODELS, 3)) @ rng.normal(size=(3, graph.num_nodes))
        statistics[query] = rng.normal(size=members.shape) + common
    return Evidence(statistics, members, np.arange(NUM_MODELS), graph)
