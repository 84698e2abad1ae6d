"""Whether a gate passes recipes that exceed its thresholds, with too few shadow models or with enough."""

from __future__ import annotations

from typing import Any

import numpy as np
from section import Section, table
from simulated_audit import shifted, simulated_audit

from bmpaudit.auditing.context import Runtime
from bmpaudit.gate import GateResult, check
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan, Gate

NUM_SIMULATED, NUM_REAL = 200, 30
NUM_NODES = 300
MOST_PASSED = 0.01  # share of the audits in which some threshold passes
# How many nodes leak, by how many standard deviations, and thresholds that the recipe exceeds: of a node that is given
# away in every model ε is infinite, and so it is with normal answers.
RECIPES = {
    "one node given away": (1, 10.0, Gate(max_exposure=("0.2@0.99", "0.2@0.9"), max_node_exposure=0.5)),
    "ten nodes given away": (10, 10.0, Gate(max_exposure=("2@0.99", "2@0.9"), max_node_exposure=0.5)),
    "all nodes by 3 sigma": (NUM_NODES, 3.0, Gate(max_exposure=("20@0.99", "40@0.9"), max_node_exposure=0.25)),
}
SIZES = (28, 48, 64, 128, 200, 300, 500, 1_000)
PROVEN, EPSILONS = ("max_proven_right", "max_proven_left", "max_proven_mp"), (0.0, 1.0, 2.0, 3.0, 4.0)
# Of the demo, of whose GCNs hundreds of shadow models name more than 20 members at 99 % (tens by one query).
REAL_GATE = Gate(
    max_exposure=("5@0.99", "15@0.9"),
    max_proven_right=2.0,
    max_proven_left=3.0,
    max_node_exposure=0.5,
    max_leaking_nodes=0,
    max_estimated_right=2.0,
)
REAL_SIZES = (28, 32, 36, 40, 44, 48)


def run(scale: float, seed: int) -> Section:
    """Simulated and real audits of recipes that exceed every threshold of their gate."""
    rows, num_passed, num_audits = [], 0, 0
    for name, number, passed, decided in (*_simulated(scale, seed), *_real(scale, seed)):
        rows.append([name, number, passed, f"{decided:.0%}"])
        num_passed, num_audits = num_passed + passed, num_audits + number
    text = f"""Recipes that exceed every threshold of a gate: nodes whose answers are drawn from normal distributions,
{NUM_NODES} nodes of prior 0.25, with {SIZES[0]} to {SIZES[-1]:,} models, and GCNs on the demo with {REAL_SIZES[0]} to
{REAL_SIZES[-1]} models. An audit has passed if a single threshold has; exceeded are the thresholds of these audits that
were found to be.

{table(["recipe", "audits", "passed", "thresholds exceeded"], rows)}

More than {MOST_PASSED:.0%} of passed audits would be too many."""
    return Section(text, num_passed <= MOST_PASSED * num_audits)


def _simulated(scale: float, seed: int) -> list[list[Any]]:
    number = max(int(NUM_SIMULATED * scale), len(SIZES))
    results: dict[str, list[list[str]]] = {name: [] for name in RECIPES}
    for k in range(number):
        name = list(RECIPES)[k % len(RECIPES)]
        num_leaking, shift, gate = RECIPES[name]
        size = SIZES[k // len(RECIPES) % len(SIZES)]
        done = simulated_audit(size, shifted(NUM_NODES, num_leaking, shift), 1000 * seed + k)
        found = [
            check(done, gate, max_leaking_nodes=0, max_estimated_right=2.0),
            *(check(done, Gate(**dict.fromkeys(PROVEN, epsilon))) for epsilon in EPSILONS),
        ]
        results[name].append(_outcomes(*found))
    return [[name, len(each), *_totals(each)] for name, each in results.items()]


def _real(scale: float, seed: int) -> list[list[Any]]:
    number = max(int(NUM_REAL * scale), 2)
    results: dict[str, list[list[str]]] = {"demo": [], "demo, one query": []}
    for k in range(number):
        name = "demo" if k % 5 else "demo, one query"
        queries = {} if k % 5 else {"queries": "full"}
        plan = AuditPlan().replace(shadows=REAL_SIZES[k % len(REAL_SIZES)], definitions="bmp-r", seed=1000 * seed + k)
        done = audit("demo", plan.replace(releases="clean", **queries), runtime=Runtime(quiet=True), pictures="none")
        results[name].append(_outcomes(check(done, REAL_GATE)))
    return [[name, len(each), *_totals(each)] for name, each in results.items()]


def _outcomes(*found: GateResult) -> list[str]:
    for gate in found:
        for each in gate.thresholds:
            if each.outcome == "passed":
                print(f"{gate.subject}: passed {each.label}, {each.explanation}", flush=True)
    return [each.outcome for gate in found for each in gate.thresholds]


def _totals(audits: list[list[str]]) -> tuple[int, float]:
    """In how many audits a threshold has passed, and the share of thresholds that were exceeded."""
    passed = sum("passed" in outcomes for outcomes in audits)
    return passed, float(np.mean([outcome == "exceeded" for outcomes in audits for outcome in outcomes]))
