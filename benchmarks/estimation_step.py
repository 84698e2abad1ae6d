"""What the estimation step of an audit takes beside its training: processor time of all threads, in one run.

python benchmarks/estimation_step.py [--data cora pubmed …] [--models 200] [--samplers uniform snowball] [--model gcn]

Training is measured once; the step, which is short, several times, of which the median is printed.
"""

import argparse
import statistics
import time
from collections.abc import Callable

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.stages import estimation_tasks, run_estimates
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan

REPEATS = 5
QUIET = Runtime(quiet=True)


def seconds(work: Callable[[], object]) -> float:
    """Processor time of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(data: str, sampler: str, model: str, num_models: int) -> None:
    """Prints both for one audit, and their ratio."""
    plan = AuditPlan(sampler=sampler, model=model, shadows=num_models)
    pipeline = Pipeline(Subject(datasets.load(data), data, plan), runtime=QUIET)
    training = seconds(lambda: pipeline.runs)
    attacks = pipeline.attacks
    step = statistics.median(seconds(lambda: run_estimates(plan, attacks, QUIET)) for _ in range(REPEATS))
    print(
        f"{data:14} {sampler:9} {model:4} {num_models:6,} {training:9.2f} {step:8.2f} {step / training:6.2f}"
        f"   {len(estimation_tasks(plan, attacks))} posteriors",
        flush=True,
    )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora", "citeseer", "pubmed", "amazon_photo", "coauthor_cs"])
    parser.add_argument("--samplers", nargs="+", default=["uniform", "snowball"])
    parser.add_argument("--model", choices=("gcn", "gat"), default="gcn")
    parser.add_argument("--models", nargs="+", type=int, default=[200])
    arguments = parser.parse_args()
    print("seconds of processor time: training, estimation step, their ratio")
    for data in arguments.data:
        for sampler in arguments.samplers:
            for num_models in arguments.models:
                compare(data, sampler, arguments.model, num_models)


if __name__ == "__main__":
    main()
