"""How well `bmpaudit plan cost` foretells: the price of every step beside what it takes, on several graphs.

python benchmarks/cost.py [--data cora pubmed …] [--models 200 1000] [--sampler snowball]

The last column is the largest ratio, in either direction, of the steps that take at least a second.
"""

import argparse
import tempfile
from pathlib import Path

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.pipeline.cost import audit_cost
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan

SECONDS_THAT_COUNT = 1.0
QUIET = Runtime(quiet=True)


def spent(subject: Subject) -> dict[str, float]:
    """What each step of a whole audit takes."""
    with tempfile.TemporaryDirectory() as folder:
        pipeline = Pipeline(subject, Workspace(Path(folder)), QUIET)
        with pipeline.prepared():
            pipeline.report()
    return pipeline.timings


def compare(data: str, num_models: int, sampler: str) -> None:
    """Prints both for one audit."""
    subject = Subject(datasets.load(data), data, AuditPlan(sampler=sampler, shadows=num_models))
    price = audit_cost(subject, QUIET).seconds
    real = spent(subject)
    pairs = {step: (price[step], real[step]) for step in price}
    whole = sum(price.values()), sum(real.values())
    worst = max(
        max(priced / taken, taken / priced) for priced, taken in (*pairs.values(), whole) if taken >= SECONDS_THAT_COUNT
    )
    cells = " ".join(f"{priced:7.1f} /{taken:7.1f}" for priced, taken in (*pairs.values(), whole))
    print(f"{data:14} {num_models:6,} {cells} {worst:6.2f}", flush=True)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora", "citeseer", "pubmed", "amazon_photo", "coauthor_cs"])
    parser.add_argument("--models", nargs="+", type=int, default=[200, 1_000])
    parser.add_argument("--sampler", default="snowball")
    arguments = parser.parse_args()
    print(
        "seconds, priced / taken: training, priors, permutation test, attack, proof and exposure, estimation, report, "
        "in all"
    )
    for data in arguments.data:
        for num_models in arguments.models:
            compare(data, num_models, arguments.sampler)


if __name__ == "__main__":
    main()
