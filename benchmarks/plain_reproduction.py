"""What one seed of `python -m reproduction` would cost with a plain PyTorch Geometric loop and MHAAR in NumPy.

python benchmarks/plain_reproduction.py [--out docs/reproduction/plain_costs.csv]

Times one plain model of each of the 8 kinds (data set, fraction, model) and one NumPy iteration of Algorithm 3 for each
data set, all on one thread, and scales them to 16 sets of 1,000 models and 256 posteriors of 10,000 iterations.
It measures processor time, which other work on the machine does not affect.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from estimation import PlainMhaar
from reproduction.experiments import CONFIGURATIONS, DATASETS, FRACTIONS, MODELS, NUM_MODELS
from reproduction.run import MHAAR_ITERATIONS
from shadow_training import PlainGAT, PlainGCN, plain_model

from bmpaudit import datasets

POSTERIORS_PER_SET = 16
NUM_AUXILIARY = 50
REPEATS = 3


def processor_seconds(work: Callable[[], object]) -> float:
    """Median of a few runs."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def training_hours() -> float:
    """All 16,000 models; snowball samples are assumed to cost what uniform ones do."""
    sets_per_kind = len(CONFIGURATIONS) // (len(DATASETS) * len(FRACTIONS) * len(MODELS))
    total = 0.0
    for name in DATASETS:
        graph = datasets.load(name)
        data = graph.to_pyg()
        for fraction in FRACTIONS:
            for model in MODELS:
                kind = PlainGAT if model == "gat" else PlainGCN
                seconds = processor_seconds(
                    lambda kind=kind, fraction=fraction: plain_model(data, kind, graph.num_classes, fraction)  # type: ignore[misc]  # noqa: B023
                )
                print(f"{model.upper()}, {name} {fraction:.0%}: {1e3 * seconds:.0f} ms per model")
                total += sets_per_kind * NUM_MODELS * seconds
    return total / 3600


def estimation_hours() -> float:
    """All 256 posteriors, each by one chain as in the paper."""
    sets_per_dataset = len(CONFIGURATIONS) // len(DATASETS)
    rng = np.random.default_rng(0)
    total = 0.0
    for name in DATASETS:
        num_in = rng.binomial(NUM_MODELS, 0.25, datasets.load(name).num_nodes)
        errors = rng.binomial(NUM_MODELS - num_in, 0.2), rng.binomial(num_in, 0.6)
        counts = np.column_stack([NUM_MODELS - num_in, num_in, *errors]).astype(np.float64)
        plain = PlainMhaar(counts, NUM_AUXILIARY, epsilon=8.0, rng=np.random.default_rng(1))
        seconds = processor_seconds(plain.step)
        print(f"MHAAR, {name}: {1e3 * seconds:.0f} ms per iteration")
        total += sets_per_dataset * POSTERIORS_PER_SET * MHAAR_ITERATIONS * seconds
    return total / 3600


def main() -> None:
    """Prints the pieces and the totals, and writes the totals if --out is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    torch.set_num_threads(1)
    rows = [
        ("16,000 models by a PyTorch Geometric loop", training_hours()),
        ("256 posteriors by NumPy MHAAR", estimation_hours()),
    ]
    for piece, hours in rows:
        print(f"{piece}: {hours:.1f} h")
    if out is not None:
        with out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("piece", "hours"), *((piece, f"{hours:.2f}") for piece, hours in rows)])


if __name__ == "__main__":
    main()
