"""How many training nodes the row attack names, from unit queries and from weights, beside the Student attack.

python benchmarks/row_attack.py [--data cora citeseer] [--challenged 60] [--seed 31337] [--shuffled]

GCNs are trained on a quarter of the nodes, drawn uniformly or by snowball. Models are challenged with a fit on 8, 16
and 64 others. Named is how many members of a model have a score beyond a threshold above which 99 % of the names are
right, learnt on one half of the challenged models and applied to the other, both ways. With `--shuffled`, memberships
are permuted first, between the models to fit on and between the others, when there is nothing to find.
"""

import argparse
import tempfile
import time
from dataclasses import replace

import numpy as np

from bmpaudit import datasets
from bmpaudit.attack import Evidence, RowAttack, Strong, Student, attack_performance, challenge
from bmpaudit.interfaces import Attack, Sampler
from bmpaudit.models import GCN, Training
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.values import Flags, Floats

FITTED = (8, 16, 64)
RATES = (1e-4, 1e-2)
PRECISION = 0.99
ATTACKS: dict[str, Attack] = {"scores": Student(), "queries": RowAttack(), "weights": RowAttack()}


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


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora", "citeseer"])
    parser.add_argument("--challenged", type=int, default=60)
    parser.add_argument("--seed", type=int, default=31337)
    parser.add_argument("--shuffled", action="store_true")
    arguments = parser.parse_args()
    columns = " ".join(f"TPR@{rate:.0e}" for rate in RATES)
    print(f"{'':20} {'access':8} fitted {'AUC':>7} {columns} {'named':>6} {'members':>8} {'CPU s':>6}")
    samplers: dict[str, Sampler] = {"uniform": Uniform(0.25), "snowball": Snowball(0.25)}
    for data in arguments.data:
        graph = datasets.load(data)
        for label, sampler in samplers.items():
            plan = ShadowPlan(sampler, GCN(), Training(), seed=arguments.seed, rows=("queries", "weights"))
            prior_prob = prior_probabilities(graph, sampler).prob
            with tempfile.TemporaryDirectory() as folder:
                runs = train_shadows(graph, plan, max(FITTED) + arguments.challenged, folder)
            if arguments.shuffled:
                rng = np.random.default_rng(0)
                parts = rng.permutation(max(FITTED)), max(FITTED) + rng.permutation(runs.num_models - max(FITTED))
                order = np.concatenate(parts)
                runs = replace(runs, memberships=np.asarray(runs.memberships)[order])
            for access, attack in ATTACKS.items():
                models = Evidence.of_runs(runs, "clean", ("full", "none"), graph, access)
                challenged = models.take(slice(max(FITTED), None))
                members = np.asarray(challenged.memberships)
                for number in FITTED:
                    fitting, start = models.take(slice(number)), time.process_time()
                    made = challenge(
                        attack, challenged, prior_prob, {"strong": Strong()}, fitting=fitting, with_scores=True
                    )
                    seconds = time.process_time() - start
                    if made.scores is None:
                        raise RuntimeError("scores were asked for")
                    figures = attack_performance(made.scores, "strong", RATES)
                    rates = " ".join(f"{figures.tpr_at_fpr[rate]:9.4f}" for rate in RATES)
                    found = named(made.scores.of("strong"), members[:, made.scores.node])
                    row = f"{data + ' ' + label:20} {access:8} {number:6} {figures.auc:7.4f} {rates} {found:6.1f}"
                    print(f"{row} {members.sum() / len(members):8.1f} {seconds:6.1f}", flush=True)


if __name__ == "__main__":
    main()
