"""How many training nodes each attack names, with few and with many shadow models.

python benchmarks/attacks.py [--data cora citeseer pubmed amazon_photo] [--models gcn gat] [--samplers uniform snowball]
    [--fitted 8 16 64 500] [--challenged 60] [--seed 31337] [--shuffled] [--csv FILE]

Models are trained on a quarter of the nodes, and 60 of them are challenged with a fit on 8 to 500 others. An attack
that takes one query is asked without edges, which tells more. The row attack sees answers about made-up nodes
(`queries`) or the weights. Named is how many members of a model have a score beyond a threshold above which 99 % of
the names are right, learnt on one half of the challenged models and applied to the other, both ways. With `--shuffled`,
memberships are permuted first, between the models to fit on and between the others, when there is nothing to find.
"""

import argparse
import csv
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit import datasets
from bmpaudit.attack import (
    RMIA,
    Base,
    Evidence,
    Gaussian,
    OfflineLiRA,
    RowAttack,
    Strong,
    Student,
    attack_performance,
    challenge,
)
from bmpaudit.interfaces import Attack
from bmpaudit.models import GAT, GCN, Training
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, ShadowRuns, train_shadows
from bmpaudit.util.values import Flags, Floats

RATES = (1e-4, 1e-2)
PRECISION = 0.99
MODELS: dict[str, Any] = {"gcn": GCN(), "gat": GAT()}
SAMPLERS: dict[str, Any] = {"uniform": Uniform(0.25), "snowball": Snowball(0.25)}
ATTACKS: dict[str, tuple[str, Attack]] = {
    "rmia, offline": ("scores", RMIA(offline=True)),
    "lira, offline": ("scores", OfflineLiRA()),
    "rmia": ("scores", RMIA()),
    "base": ("scores", Base()),
    "gaussian": ("scores", Gaussian()),
    "student": ("scores", Student()),
    "rows, queries": ("queries", RowAttack()),
    "rows, weights": ("weights", RowAttack()),
}
COLUMNS = (
    "data",
    "model",
    "sampler",
    "attack",
    "fitted",
    "auc",
    *(f"tpr_{rate:g}" for rate in RATES),
    "named",
    "members",
)


def named(scores: Floats, members: Flags) -> float:
    """Members per model beyond a threshold that the other half of the models has taught; arrays of shape (J, N)."""
    middle, total = len(scores) // 2, 0
    halves = slice(0, middle), slice(middle, None)
    for learnt, asked in (halves, halves[::-1]):
        order = np.argsort(-scores[learnt], axis=None, kind="stable")
        right = members[learnt].ravel()[order].cumsum()
        enough = np.flatnonzero(right >= PRECISION * np.arange(1, len(order) + 1))
        if len(enough):
            threshold = scores[learnt].ravel()[order[enough[-1]]]
            total += int((members[asked] & (scores[asked] >= threshold)).sum())
    return total / len(scores)


def shuffled(runs: ShadowRuns, most_fitted: int) -> ShadowRuns:
    """The same models with memberships of others."""
    rng = np.random.default_rng(0)
    parts = rng.permutation(most_fitted), most_fitted + rng.permutation(runs.num_models - most_fitted)
    return replace(runs, memberships=np.asarray(runs.memberships)[np.concatenate(parts)])


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora", "citeseer", "pubmed", "amazon_photo"])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument("--fitted", nargs="+", type=int, default=[8, 16, 64, 500])
    parser.add_argument("--challenged", type=int, default=60)
    parser.add_argument("--seed", type=int, default=31337)
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows, most = [], max(arguments.fitted)
    head = f"{'AUC':>7} {'TPR@1e-4':>9} {'TPR@1e-2':>9} {'named':>7} {'members':>8} {'CPU s':>6}"
    print(f"{'':30} {'attack':14} fitted {head}")
    for data, model, sampler in [
        (data, model, sampler)
        for data in arguments.data
        for model in arguments.models
        for sampler in arguments.samplers
    ]:
        graph = datasets.load(data)
        plan = ShadowPlan(
            SAMPLERS[sampler], MODELS[model], Training(), seed=arguments.seed, rows=("queries", "weights")
        )
        prior_prob = prior_probabilities(graph, plan.sampler).prob
        with tempfile.TemporaryDirectory() as folder:
            runs = train_shadows(graph, plan, most + arguments.challenged, folder)
            if arguments.shuffled:
                runs = shuffled(runs, most)
            for attack, (access, part) in ATTACKS.items():
                queries = ("full", "none") if part.fuses_queries else ("none",)
                models = Evidence.of_runs(runs, "clean", queries, graph, access)
                challenged = models.take(slice(most, None))
                members = np.asarray(challenged.memberships)
                for number in arguments.fitted:
                    fitting, start = models.take(slice(number)), time.process_time()
                    made = challenge(
                        part, challenged, prior_prob, {"strong": Strong()}, fitting=fitting, with_scores=True
                    )
                    seconds = time.process_time() - start
                    if made.scores is None:
                        raise RuntimeError("scores were asked for")
                    figures = attack_performance(made.scores, "strong", RATES)
                    found = named(made.scores.of("strong"), members[:, made.scores.node])
                    rates, total = [figures.tpr_at_fpr[rate] for rate in RATES], members.sum() / len(members)
                    rows.append((data, model, sampler, attack, number, figures.auc, *rates, found, total))
                    texts = " ".join(f"{rate:9.4f}" for rate in rates)
                    name = f"{data} {model} {sampler}"
                    print(
                        f"{name:30} {attack:14} {number:6} {figures.auc:7.4f} {texts} {found:7.1f} {total:8.1f} "
                        f"{seconds:6.1f}",
                        flush=True,
                    )
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *([*row[:5], *(f"{value:.4g}" for value in row[5:])] for row in rows)])


if __name__ == "__main__":
    main()
