"""Whether exposure and calibration can be believed: on models that taught nothing, and with few models as with many.

python benchmarks/exposure.py [--data demo cora citeseer pubmed] [--sampler uniform snowball] [--models 64 256 1000]
                              [--folder FOLDER]

GCNs are trained on a quarter of the nodes and attacked with the Student attack, all queries. Three tables:

1. Calibration: a recalibration is learnt from the largest of the numbers of models (of which PubMed gets at most 256)
   and from the smallest, then 200 (PubMed: 100) other models are scored with a fit on all of the former and mapped with
   it, as one released model is. Expected calibration error before and after the map, and of the nodes stated at 90, 95
   and 99 % or more, how many there are per model and which share is right.
2. Names, of demo and Cora: members named correctly at 90, 95 and 99 % with each number of models, whether they settle
   it, how many names are certified, and whether the intervals of all numbers overlap.
3. Nodes, with the largest number: how often the 20 nodes that rank first are named in fresh models that they are in,
   and the mean over all nodes; how many of them the attack gets wrong more often than not.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import scipy.special

from bmpaudit import datasets, registry
from bmpaudit.attack import Evidence, Strong, challenge
from bmpaudit.graph.graph import Graph
from bmpaudit.inference.released import calibrate
from bmpaudit.interfaces import Attack, Sampler
from bmpaudit.models import GCN, Training
from bmpaudit.proof import ReleaseExposure, certify, expose, reliability
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.values import Flags, Floats

SAMPLERS: dict[str, Sampler] = {"uniform": Uniform(0.25), "snowball": Snowball(0.25)}
LEVELS = (0.9, 0.95, 0.99)
WITH_INTERVALS = ("demo", "cora")
LARGE = 10_000  # nodes
NUM_TOP = 20


class Case:
    """Models of one graph and sampler, and what `expose` says of some of them."""

    def __init__(self, data: str, label: str, numbers: list[int], folder: Path) -> None:
        self.name, self.attack = f"{data} {label}", registry.build(registry.ATTACK, "student")
        graph: Graph = datasets.load(data)
        is_large = graph.num_nodes > LARGE
        self.numbers = sorted({min(number, 256) if is_large else number for number in numbers})
        self.num_fresh = 100 if is_large else 200
        plan = ShadowPlan(SAMPLERS[label], GCN(), Training(), seed=11)
        runs = train_shadows(graph, plan, self.numbers[-1] + self.num_fresh, folder / f"{data}-{label}")
        self.models = Evidence.of_runs(runs, "clean", ["full", "none"], graph).take(
            slice(self.numbers[-1] + self.num_fresh)
        )
        self.prior_prob = prior_probabilities(graph, SAMPLERS[label]).prob
        self.exposed = {number: self.expose(number) for number in self.numbers if self.is_wanted(data, number)}

    def is_wanted(self, data: str, number: int) -> bool:
        """Whether a table needs this number of models."""
        return data in WITH_INTERVALS or number in (self.numbers[0], self.numbers[-1])

    def expose(self, number: int) -> ReleaseExposure:
        """The exposure of the first models."""
        attack: Attack = self.attack
        return expose(attack, self.models.take(slice(number)), self.prior_prob)

    def fresh(self, number: int) -> tuple[Floats, Floats, Flags]:
        """Log-odds of other models, as the attack gives them and recalibrated, and the truth."""
        fitting, fresh = self.models.take(slice(number)), self.models.take(slice(-self.num_fresh, None))
        rules = {"strong": Strong()}
        made = challenge(self.attack, fresh, self.prior_prob, rules, fitting=fitting, with_scores=True)
        if made.scores is None:
            raise RuntimeError("scores were asked for")
        raw = made.scores.of("strong")[:, made.scores.is_scored]
        learnt = calibrate(self.attack, fitting, self.prior_prob, None).recalibration
        return raw, learnt(raw), made.scores.memberships[:, made.scores.is_scored]


def calibration(case: Case) -> None:
    """Prints the first table's rows of one case."""
    for number in sorted({case.numbers[0], case.numbers[-1]}):
        raw, mapped, truth = case.fresh(number)
        errors = [reliability(values, truth).expected_calibration_error for values in (raw, mapped)]
        cells = []
        for level in LEVELS:
            is_named = mapped >= scipy.special.logit(level)
            share = f"{truth[is_named].mean():.4f}" if is_named.any() else "  –   "
            cells.append(f"{is_named.sum(axis=1).mean():7.1f} {share}")
        print(f"{case.name:18} {number:6,} {errors[0]:8.4f} {errors[1]:8.4f}  {'  '.join(cells)}", flush=True)


def intervals(case: Case) -> None:
    """Prints the second table's rows of one case."""
    certified = {
        number: {
            each.certainty: each.names
            for each in certify(case.attack, case.models.take(slice(number)), case.prior_prob).members
        }
        for number in case.exposed
    }
    for level in LEVELS:
        lows, highs = [], []
        for number, exposed in case.exposed.items():
            curve = exposed.exposure.members
            k, correct = curve.at(level), curve.correct
            lows.append(correct.low[k])
            highs.append(correct.high[k])
            limits, is_enough = f"{lows[-1]:.1f} to {highs[-1]:.1f}", "enough" if curve.is_settled[k] else "too few"
            print(
                f"{case.name:18} {level:6} {number:7,} {correct.mean[k]:8.1f}  {limits:18} {is_enough:8} "
                f"{certified[number][level]:9.1f}",
                flush=True,
            )
        print(f"{'':18} {level:6} {'all overlap' if max(lows) <= min(highs) else 'DO NOT OVERLAP'}")


def ranking(case: Case) -> None:
    """Prints the third table's row of one case."""
    number = case.numbers[-1]
    _, mapped, truth = case.fresh(number)
    nodes = case.exposed[number].exposure.member_nodes
    top = nodes.ranked()[:NUM_TOP]
    is_named = mapped >= scipy.special.logit(0.99)
    with np.errstate(invalid="ignore"):
        named = (is_named & truth).sum(axis=0) / truth.sum(axis=0)
    wrong = ((mapped > 0) != truth).mean(axis=0) > 0.5
    print(
        f"{case.name:18} {np.nanmean(nodes.share[top]):6.3f} {np.nanmean(named[top]):6.3f} {np.nanmean(named):6.3f} "
        f"{int(wrong[top].sum()):6} {int(wrong.sum()):6}",
        flush=True,
    )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["demo", "cora", "citeseer", "pubmed"])
    parser.add_argument("--sampler", nargs="+", default=list(SAMPLERS), choices=list(SAMPLERS))
    parser.add_argument("--models", nargs="+", type=int, default=[64, 256, 1_000])
    parser.add_argument("--folder", help="keep the shadow models here, and use those that are there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or temporary)
        print(f"{'':18} models {'before':>8} {'after':>8}  " + "  ".join(f"{level:7} right " for level in LEVELS))
        cases = []
        for data in arguments.data:
            for label in arguments.sampler:
                case = Case(data, label, arguments.models, folder)
                calibration(case)
                if data in WITH_INTERVALS:
                    cases.append(case)
        print(f"\n{'':18} {'level':6} {'models':>7} {'correct':>8}  {'interval':18} {'models':8} certified")
        for case in cases:
            intervals(case)
        print(f"\n{'':18} top {NUM_TOP}  fresh    all  wrong    all")
        for case in cases:
            ranking(case)


if __name__ == "__main__":
    main()
