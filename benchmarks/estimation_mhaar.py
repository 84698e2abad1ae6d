"""Time of an iteration of Algorithm 3: native against plain NumPy, taken in turn, on one thread.

python benchmarks/estimation_mhaar.py [--nodes 2708] [--models 1000] [--auxiliary 50]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.estimation.definition import DEFINITIONS
from bmpaudit.estimation.mhaar import run_mhaar
from bmpaudit.estimation.prior import NormalPrior

Floats = npt.NDArray[np.float64]

REPEATS = 5
PLAIN_ITERATIONS = 20
NATIVE_ITERATIONS = 200


@dataclass
class PlainMhaar:
    """Algorithm 3 for MP as one would write it with NumPy."""

    counts: Floats
    num_auxiliary: int
    epsilon: float
    rng: np.random.Generator

    def __post_init__(self) -> None:
        num_out, num_in, false_positives, false_negatives = self.counts.T
        self.alpha_law = (false_positives + 1, num_out - false_positives + 1)
        self.beta_law = (false_negatives + 1, num_in - false_negatives + 1)
        self.alpha, self.beta = np.full((2, len(self.counts)), 0.5)

    def _weights(self, alpha: Floats, beta: Floats, epsilon: float) -> Floats:
        a, b = np.exp(epsilon), np.exp(-epsilon)
        first, second = alpha + a * beta, alpha + b * beta
        inside = (first >= 1) & (first <= a) & (second >= b) & (second <= 1)
        return inside / np.tanh(epsilon / 2)

    def step(self) -> None:
        """One iteration."""
        rng, size = self.rng, (self.num_auxiliary - 1, len(self.counts))
        proposed = self.epsilon + 0.05 * rng.normal()
        alpha = np.concatenate([self.alpha[None], rng.beta(*self.alpha_law, size=size)])
        beta = np.concatenate([self.beta[None], rng.beta(*self.beta_law, size=size)])
        weights = self._weights(alpha, beta, self.epsilon)
        if proposed > 0:
            proposed_weights = self._weights(alpha, beta, proposed)
            with np.errstate(divide="ignore"):
                log_ratio = (np.log(proposed_weights.sum(axis=0)) - np.log(weights.sum(axis=0))).sum()
            log_ratio += (self.epsilon**2 - proposed**2) / 20
            if np.log(rng.random()) < log_ratio:
                self.epsilon, weights = proposed, proposed_weights
        cumulative = np.cumsum(weights, axis=0)
        chosen = (cumulative <= rng.random(size[1]) * cumulative[-1]).sum(axis=0)
        nodes = np.arange(size[1])
        self.alpha, self.beta = alpha[chosen, nodes], beta[chosen, nodes]


def simulated_counts(num_nodes: int, num_models: int, false_positive_prob: float, false_negative_prob: float) -> Floats:
    """Counts of nodes that are members of about a quarter of the models."""
    rng = np.random.default_rng(0)
    num_in = rng.binomial(num_models, 0.25, num_nodes)
    num_out = num_models - num_in
    errors = rng.binomial(num_out, false_positive_prob), rng.binomial(num_in, false_negative_prob)
    return np.column_stack([num_out, num_in, *errors]).astype(np.float64)


def seconds(work: Callable[[], object]) -> float:
    """Processor time, so that other work on the machine does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(counts: Floats, num_auxiliary: int, what: str) -> None:
    """Prints both times of an iteration and their ratio: medians of several pairs."""
    plain = PlainMhaar(counts, num_auxiliary, epsilon=8.0, rng=np.random.default_rng(1))

    def run_plain() -> None:
        for _ in range(PLAIN_ITERATIONS):
            plain.step()

    def run_native() -> None:
        run_mhaar(
            counts,
            np.zeros(len(counts)),
            DEFINITIONS["mp"],
            NormalPrior(),
            num_iterations=NATIVE_ITERATIONS,
            num_auxiliary=num_auxiliary,
            num_chains=1,
            num_threads=1,
        )

    pairs = [(seconds(run_plain) / PLAIN_ITERATIONS, seconds(run_native) / NATIVE_ITERATIONS) for _ in range(REPEATS)]
    plain_time, native_time = (1e3 * statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(slow / fast for slow, fast in pairs)
    print(f"{what:<38} {plain_time:>8.2f} ms {native_time:>8.2f} ms {ratio:>7.1f}x")


def main() -> None:
    """Runs the comparison for two kinds of attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2708)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--auxiliary", type=int, default=50)
    arguments = parser.parse_args()
    print(
        f"{arguments.nodes} nodes, {arguments.models} models, M = {arguments.auxiliary}, one thread, time an iteration"
    )
    print(f"{'':<38} {'NumPy':>11} {'native':>11} {'ratio':>8}")
    for what, false_positive_prob, false_negative_prob in (
        ("error rates 0.20 and 0.60", 0.20, 0.60),
        ("error rates 0.002 and 0.98 (few errors)", 0.002, 0.98),
    ):
        counts = simulated_counts(arguments.nodes, arguments.models, false_positive_prob, false_negative_prob)
        compare(counts, arguments.auxiliary, what)


if __name__ == "__main__":
    main()
