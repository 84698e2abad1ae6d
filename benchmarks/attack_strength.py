"""How strong and how fast the attacks are: AUC and true positive rates at low false positive rates, on several graphs.

python benchmarks/attack_strength.py [--data cora amazon_photo] [--models 1000] [--seed 7] [--folder FOLDER]

GCNs are trained on a quarter of the nodes, drawn uniformly or by snowball. Half of the models are challenged with a
fit on 16, on 64 and on the whole other half, by the rule that weighs the prior. An attack that does not fuse queries
is given each of them, and the better one is shown. Then all models are challenged, each left out of its own fit, and
the processor time is compared with that of training. On the first graph all is repeated with memberships shuffled
between models, when there is nothing to find.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from bmpaudit import datasets
from bmpaudit.attack import (
    RMIA,
    AttackPerformance,
    Base,
    Evidence,
    Gaussian,
    Strong,
    Student,
    attack_performance,
    challenge,
)
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Attack, Sampler
from bmpaudit.models import GCN, Training
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, ShadowRuns, train_shadows
from bmpaudit.util.values import Floats, Ints

ATTACKS: dict[str, Attack] = {"gaussian": Gaussian(), "student": Student(), "rmia": RMIA(), "base": Base()}
QUERIES = ("full", "none")
RATES = (1e-4, 1e-2)
NUM_FITTING = (16, 64)


def views(attack: Attack, runs: ShadowRuns, graph: Graph) -> Iterator[Evidence]:
    """What an attack is given: all queries at once, or one after the other."""
    for queries in [QUERIES] if attack.fuses_queries else [(query,) for query in QUERIES]:
        yield Evidence.of_runs(runs, "clean", queries, graph)


def performance(attack: Attack, models: Evidence, fitting: Evidence | None, prior_prob: Floats) -> AttackPerformance:
    """Of one attack on some models."""
    made = challenge(attack, models, prior_prob, {"strong": Strong()}, fitting=fitting, with_scores=True)
    if made.scores is None:
        raise RuntimeError("scores were asked for")
    return attack_performance(made.scores, "strong", RATES)


def row(name: str, attack: str, num_fitting: int, query: str, made: AttackPerformance, rest: str = "") -> None:
    """Prints a line of the table."""
    rates = " ".join(f"{made.tpr_at_fpr[rate]:8.4f}" for rate in RATES)
    print(f"{name:24} {attack:9} {num_fitting:6} {query:10} {made.auc:7.4f} {rates} {rest}", flush=True)


def compare(
    name: str, graph: Graph, runs: ShadowRuns, prior_prob: Floats, training: float | None, order: Ints | None
) -> None:
    """Prints the rows of one graph; `order` shuffles memberships between models."""
    half = len(runs.memberships) // 2
    for label, attack in ATTACKS.items():
        for num_fitting in (*(each for each in NUM_FITTING if each < half), half):
            best = None
            for models in views(attack, runs, graph):
                if order is not None:
                    models = replace(models, memberships=np.asarray(models.memberships)[order])
                fitting, challenged = models.take(slice(0, num_fitting)), models.take(slice(half, None))
                made = performance(attack, challenged, fitting, prior_prob)
                if best is None or made.auc > best[0].auc:
                    best = made, "+".join(models.queries)
            if best is not None:
                row(name, label, num_fitting, best[1], best[0])
        if training is None:
            continue
        for models in views(attack, runs, graph):
            start = time.process_time()
            challenge(attack, models, prior_prob, {"strong": Strong()})
            seconds = time.process_time() - start
            made = performance(attack, models, None, prior_prob)
            rest = f"{seconds:6.2f} s, {seconds / training:.1%} of training"
            row(name, label, models.num_models - 1, "+".join(models.queries), made, rest)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["cora", "amazon_photo"])
    parser.add_argument("--models", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", help="keep the shadow models here, and use those that are there")
    arguments = parser.parse_args()
    columns = " ".join(f"TPR@{rate:.0e}" for rate in RATES)
    print(f"{'':24} {'attack':9} fitted {'query':10} {'AUC':>7} {columns}")
    samplers: dict[str, Sampler] = {"uniform": Uniform(0.25), "snowball": Snowball(0.25)}
    with tempfile.TemporaryDirectory() as temporary:
        for data in arguments.data:
            graph = datasets.load(data)
            for label, sampler in samplers.items():
                folder = Path(arguments.folder or temporary) / f"{data}-{label}"
                was_there = folder.exists()
                start = time.process_time()
                plan = ShadowPlan(sampler, GCN(), Training(), seed=arguments.seed)
                runs = train_shadows(graph, plan, arguments.models, folder)
                training = None if was_there else time.process_time() - start
                prior_prob = prior_probabilities(graph, sampler).prob
                compare(f"{data} {label}", graph, runs, prior_prob, training, None)
                if data == arguments.data[0] and label == "uniform":
                    order = np.random.default_rng(0).permutation(arguments.models)
                    compare(f"{data} {label} shuffled", graph, runs, prior_prob, None, order)


if __name__ == "__main__":
    main()
