"""Time of the estimators: exact quadrature and native Algorithm 3 against Algorithm 3 in plain NumPy, in one run.

Then the exact posterior on every kind of counts, for numbers of nodes up to 100,000: processor time a node
(--kinds: only that).

python benchmarks/estimation.py [--nodes 2708] [--models 1000] [--auxiliary 50] [--largest 100000] [--kinds]
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import MP, estimate
from bmpaudit.estimation.likelihood import Likelihood, NormalPrior
from bmpaudit.estimation.mhaar import MhaarSettings, run_mhaar
from bmpaudit.util.values import Floats

REPEATS = 5
PLAIN_ITERATIONS = 20
NATIVE_ITERATIONS = 200
SIZES = (1_000, 10_000, 100_000)
PAPER_ITERATIONS = {"bmp-r": 10_000, "mp": 10_000, "bmp": 50_000}


@dataclass
class PlainMhaar:
    """Algorithm 3 for MP, written in plain NumPy."""

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


@dataclass(frozen=True)
class Attack:
    """A kind of attack: the Beta laws from which each node's two error rates are drawn.

    Attributes:
        name: What it is called.
        false_positive_law: Parameters of the law of α.
        false_negative_law: Parameters of the law of β; none if nothing leaks, so that β = 1 - α.
        prior_law: Parameters of the law of the priors; none if all are 0.25.
    """

    name: str
    false_positive_law: tuple[float, float]
    false_negative_law: tuple[float, float] | None
    prior_law: tuple[float, float] | None = None

    def counts(self, num_nodes: int, num_models: int) -> ErrorCounts:
        """Counts of nodes that are members of some of the models."""
        rng = np.random.default_rng(0)
        prior = np.full(num_nodes, 0.25) if self.prior_law is None else rng.beta(*self.prior_law, num_nodes)
        prior = prior.clip(0.01, 0.95)
        num_in = rng.binomial(num_models, prior)
        num_out = num_models - num_in
        alpha = rng.beta(*self.false_positive_law, num_nodes)
        beta = 1 - alpha if self.false_negative_law is None else rng.beta(*self.false_negative_law, num_nodes)
        return ErrorCounts.from_arrays(
            num_out=num_out,
            num_in=num_in,
            false_positives=rng.binomial(num_out, alpha),
            false_negatives=rng.binomial(num_in, beta),
            prior_prob=prior,
        )


CONSTANT = 1e6  # a Beta law of this size hardly varies
NEVER, VARIED = (1e-9, 1.0), (2.0, 6.0)
ATTACKS = (
    Attack("error rates spread about 0.17 and 0.57", (8, 40), (20, 15)),
    Attack("error rates 0.20 and 0.60", (0.20 * CONSTANT, 0.80 * CONSTANT), (0.60 * CONSTANT, 0.40 * CONSTANT)),
    Attack("error rates 0.002 and 0.98 (few errors)", (0.002 * CONSTANT, 0.998 * CONSTANT), (0.98 * CONSTANT, 2e4)),
)
KINDS = (
    *ATTACKS,
    Attack("spread, priors vary", (8, 40), (20, 15), VARIED),
    Attack("nothing leaks", (8, 8), None),
    Attack("nothing leaks, priors vary", (8, 8), None, VARIED),
    Attack("always non-member", NEVER, NEVER[::-1]),
    Attack("always non-member, priors vary", NEVER, NEVER[::-1], VARIED),
)
KIND_DEFINITIONS = ("bmp-r", "bmp-l", "mp", "bmp")
KIND_MODELS = (24, 1_000, 10_000)


def table_of(counts: ErrorCounts) -> Floats:
    """Rows (n0, n1, A, B)."""
    columns = (counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives)
    return np.column_stack(columns).astype(np.float64)


def seconds(work: Callable[[], object]) -> float:
    """Processor time of all threads, so that other work on the machine does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare_chains(table: Floats, num_auxiliary: int, what: str) -> float:
    """Prints the time of an iteration, native and NumPy, and their ratio: medians of several pairs. Returns NumPy's."""
    plain = PlainMhaar(table, num_auxiliary, epsilon=8.0, rng=np.random.default_rng(1))

    def run_plain() -> None:
        for _ in range(PLAIN_ITERATIONS):
            plain.step()

    def run_native() -> None:
        likelihood = Likelihood(table, np.zeros(len(table)), num_threads=1)
        settings = MhaarSettings(NATIVE_ITERATIONS, NATIVE_ITERATIONS // 2, num_auxiliary, num_chains=1)
        run_mhaar(likelihood, MP(), NormalPrior(), 0.0, settings)

    pairs = [(seconds(run_plain) / PLAIN_ITERATIONS, seconds(run_native) / NATIVE_ITERATIONS) for _ in range(REPEATS)]
    plain_time, native_time = (1e3 * statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(slow / fast for slow, fast in pairs)
    print(f"{what:<40} NumPy {plain_time:.1f} ms an iteration, native {native_time:.2f} ms: {ratio:.1f}x")
    return plain_time / 1e3


def compare_exact(counts: ErrorCounts, definition: str, plain_iteration: float) -> None:
    """Prints the time of the exact posterior, and of as many NumPy iterations as the paper runs."""
    spent, clock = [], []
    for _ in range(REPEATS if definition != "bmp" else 1):
        start = time.perf_counter()
        spent.append(seconds(lambda: estimate(counts, definition)))
        clock.append(time.perf_counter() - start)
    processor, elapsed = statistics.median(spent), min(clock)
    chain = PAPER_ITERATIONS[definition] * plain_iteration
    print(
        f"  exact {definition:<6} {processor:6.2f} s of processor time, {elapsed:.2f} s by the clock; NumPy MHAAR,"
        f" T = {PAPER_ITERATIONS[definition]:,}: {chain:,.0f} s; {chain / processor:,.0f}x by processor time,"
        f" {chain / elapsed:,.0f}x by the clock"
    )


def main() -> None:
    """Runs all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2708)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--auxiliary", type=int, default=50)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="nodes of every kind of counts")
    parser.add_argument("--kinds", action="store_true", help="only the exact posterior of every kind of counts")
    arguments = parser.parse_args()
    if not arguments.kinds:
        compare_estimators(arguments.nodes, arguments.models, arguments.auxiliary)
    estimate(KINDS[0].counts(50, KIND_MODELS[0]), "mp")  # the first one loads and tabulates what all need
    for num_nodes in SIZES:
        if num_nodes <= arguments.largest:
            time_kinds(num_nodes)


def compare_estimators(num_nodes: int, num_models: int, num_auxiliary: int) -> None:
    """Prints the time of chains and exact posteriors."""
    print(
        f"{num_nodes} nodes, {num_models} models, M = {num_auxiliary}; chains on one thread, exact on {os.cpu_count()}"
    )
    for attack in ATTACKS:
        counts = attack.counts(num_nodes, num_models)
        plain_iteration = compare_chains(table_of(counts), num_auxiliary, attack.name)
        for definition in PAPER_ITERATIONS:
            compare_exact(counts, definition, plain_iteration)


def time_kinds(num_nodes: int) -> None:
    """Prints the processor time a node of every kind of counts, one thread."""
    models = ", ".join(f"J = {number:,}" for number in KIND_MODELS)
    print(f"exact, {num_nodes:,} nodes, µs a node: {', '.join(KIND_DEFINITIONS)} for {models}")
    for kind in KINDS:
        cells = []
        for num_models in KIND_MODELS:
            counts = kind.counts(num_nodes, num_models)
            times = (
                seconds(lambda name=name, counts=counts: estimate(counts, name, num_threads=1))  # type: ignore[misc]
                for name in KIND_DEFINITIONS
            )
            cells.append(" ".join(f"{1e6 * spent / num_nodes:5.0f}" for spent in times))
        print(f"  {kind.name:<40} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
