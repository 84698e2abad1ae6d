"""Bias and coverage of the estimates on mechanisms whose ε is known, as a Markdown table.

Randomised response reports each node's membership truthfully with probability e^ε/(1+e^ε), memberships being fair
coins: it is ε-MP, and the best attack believes it. Its error rates are therefore not drawn from the uniform
distribution on R that the hierarchical posterior assumes: they lie on the edge of R for every node. The table shows
the consequences. Counts are binomial, as those of Algorithm 4 are.

    python examples/coverage.py
"""

import argparse
from dataclasses import dataclass
from itertools import product

import numpy as np

from bmpaudit.attack import ErrorCounts
from bmpaudit.estimation import estimate, lower_bound, node_leakage
from bmpaudit.privacy import FiniteMechanism, bayes_decision, independent_memberships, privacy_levels

EPSILONS = (0.5, 1.0, 2.0)
NUM_NODES = (1, 5, 20)
NUM_TRIALS = (100, 500, 5000)
LEVEL = 0.9
BOUND_LEVEL = 0.95


def randomised_response(epsilon: float) -> FiniteMechanism:
    """The mechanism of one node; nodes are independent, so each has the ε of the whole."""
    truthful = 1 / (1 + np.exp(-epsilon))
    return FiniteMechanism(independent_memberships([0.5]), [[truthful, 1 - truthful], [1 - truthful, truthful]])


@dataclass(frozen=True)
class Cell:
    """One row of the table, over repeated audits.

    Attributes:
        epsilon: True ε.
        num_nodes: Number of nodes, K.
        num_trials: Number of trials on either side of each node.
        median_bias: Mean of the hierarchical posterior's median, minus the true ε.
        coverage: Share of audits whose 90 % credible interval contains the true ε.
        coverage_error: Standard error of `coverage`.
        missed_above: Share of audits whose interval lies above the true ε.
        node_coverage: Coverage of the nodes' own 90 % intervals of e_R, averaged over nodes.
        bound: Mean of the bound on MP's ε proven with 95 % confidence; 0 where nothing is proven.
        bound_holds: Share of audits whose bound is at most the true ε.
    """

    epsilon: float
    num_nodes: int
    num_trials: int
    median_bias: float
    coverage: float
    coverage_error: float
    missed_above: float
    node_coverage: float
    bound: float
    bound_holds: float


def audit(mechanism: FiniteMechanism, num_nodes: int, num_trials: int, rng: np.random.Generator) -> ErrorCounts:
    """Errors of the best attack on each of the nodes."""
    errors = mechanism.error_pair(0, bayes_decision(mechanism.posterior_log_odds[0]))
    return ErrorCounts.from_arrays(
        num_out=num_trials,
        num_in=num_trials,
        false_positives=rng.binomial(num_trials, errors.alpha, num_nodes),
        false_negatives=rng.binomial(num_trials, errors.beta, num_nodes),
        prior_prob=0.5,
    )


def measure(epsilon: float, num_nodes: int, num_trials: int, num_audits: int, seed: int) -> Cell:
    """Repeats an audit and summarises."""
    rng = np.random.default_rng([seed, int(1000 * epsilon), num_nodes, num_trials])
    mechanism = randomised_response(epsilon)
    truth = privacy_levels(mechanism)
    medians, covered, above, node_covered, bounds = [], [], [], [], []
    for _ in range(num_audits):
        counts = audit(mechanism, num_nodes, num_trials, rng)
        low, median, high = estimate(counts, "mp").quantile([(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])
        medians.append(median)
        covered.append(low <= truth.mp <= high)
        above.append(low > truth.mp)
        right = node_leakage(counts, LEVEL).right
        node_covered.append(np.mean((right.low <= truth.bmp.right) & (truth.bmp.right <= right.high)))
        bounds.append(lower_bound(counts, BOUND_LEVEL).mp.bound or 0.0)
    share = float(np.mean(covered))
    return Cell(
        epsilon=epsilon,
        num_nodes=num_nodes,
        num_trials=num_trials,
        median_bias=float(np.mean(medians)) - truth.mp,
        coverage=share,
        coverage_error=float(np.sqrt(share * (1 - share) / num_audits)),
        missed_above=float(np.mean(above)),
        node_coverage=float(np.mean(node_covered)),
        bound=float(np.mean(bounds)),
        bound_holds=float(np.mean(np.array(bounds) <= truth.mp)),
    )


def markdown(cells: list[Cell]) -> str:
    """The table."""
    lines = [
        "| ε | nodes | trials per side | bias of the median | 90 % interval contains ε | lies above ε "
        "| node's 90 % interval contains ε | proven bound (95 %), mean | is at most ε |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {cell.epsilon:g} | {cell.num_nodes} | {cell.num_trials:,} | {cell.median_bias:+.2f} "
        f"| {100 * cell.coverage:.0f} % (± {100 * cell.coverage_error:.0f}) | {100 * cell.missed_above:.0f} % "
        f"| {100 * cell.node_coverage:.0f} % | {cell.bound:.2f} | {100 * cell.bound_holds:.1f} % |"
        for cell in cells
    ]
    return "\n".join(lines)


def main() -> None:
    """Measures every cell and prints the table."""
    parser = argparse.ArgumentParser(description="Bias and coverage of the estimates for mechanisms of known ε.")
    parser.add_argument("--audits", type=int, default=200, help="number of audits for each row")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    settings = product(EPSILONS, NUM_NODES, NUM_TRIALS)
    print(markdown([measure(*setting, arguments.audits, arguments.seed) for setting in settings]))


if __name__ == "__main__":
    main()
