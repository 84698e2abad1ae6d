"""Simulation-based calibration of both estimators: is the truth where the posterior says it is?"""

from __future__ import annotations

import numpy as np
import scipy.stats
from section import Section, fewest, most, table
from test_calibration import simulate

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import Posterior, estimate
from bmpaudit.util.progress import progress_bar
from bmpaudit.util.values import Floats, Ints

NUM_EXACT, NUM_MHAAR = 2_000, 500
ITERATIONS, CHAINS = 4_000, 2
LEVELS = (0.5, 0.9, 0.99)
SMALLEST_P = 1e-4  # of a Kolmogorov-Smirnov test that ranks are uniform
NAMES = ("mp", "bmp-r", "bmp-l", "bmp-s", "bmp")
TRIALS = np.array([[150, 50], [30, 60], [400, 100]])
LOG_ODDS = np.array([-1.1, 0.2, -0.4])


def run(scale: float, seed: int) -> Section:
    """Ranks of the truth in the posterior, and how often intervals contain it."""
    rows, passed = [], True
    for method, number in (("exact", int(NUM_EXACT * scale)), ("mhaar", int(NUM_MHAAR * scale))):
        for name in NAMES:
            for parameter, ranks in _ranks(method, name, number, seed).items():
                p_value = float(scipy.stats.kstest(ranks, "uniform").pvalue)
                inside = [int((np.abs(ranks - 0.5) < level / 2).sum()) for level in LEVELS]
                as_expected = [
                    fewest(number, level) <= count <= most(number, level)
                    for count, level in zip(inside, LEVELS, strict=True)
                ]
                passed &= all(as_expected) and p_value > SMALLEST_P
                shares = [f"{100 * count / number:.1f} %" for count in inside]
                rows.append([method, f"{name}: {parameter}", f"{number:,}", *shares, f"{p_value:.2g}"])
    head = ["estimator", "parameter", "simulations", *(f"within {level:.0%}" for level in LEVELS), "p of uniform ranks"]
    trials = ", ".join(f"{out} + {inside}" for out, inside in TRIALS)
    text = f"""ε is drawn from its prior, the error rates of three nodes from the uniform law on R, the errors from
binomials ({trials} trials); the law is written out in the tests, apart from the code under test. If the posterior is
right, the truth lies in its central intervals as often as they say, and its rank is uniform (Talts et al. 2018). MHAAR
runs {CHAINS} chains of {ITERATIONS:,} iterations.

{table(head, rows)}

A check fails if a right posterior would give a share so far off once in a thousand times, or at a p-value below
{SMALLEST_P:g}."""
    return Section(text, passed)


def _ranks(method: str, name: str, number: int, seed: int) -> dict[str, Floats]:
    truth, counts = simulate(name, TRIALS, LOG_ODDS, number, np.random.default_rng([seed, NAMES.index(name)]))
    ranks = {parameter: np.empty(number) for parameter in truth}
    with progress_bar(f"{method} {name}", number) as progress:
        for j, row in enumerate(counts):
            posterior = _posterior(row, name, method, seed + j)
            for parameter, values in truth.items():
                ranks[parameter][j] = posterior.marginals[parameter].cdf(values[j : j + 1])[0]
            progress(j + 1)
    return ranks


def _posterior(row: Ints, name: str, method: str, seed: int) -> Posterior:
    prior_prob = 1 / (1 + np.exp(-LOG_ODDS))
    num_out, num_in, false_positives, false_negatives = row.T
    counts = ErrorCounts.from_arrays(num_out, num_in, false_positives, false_negatives, prior_prob)
    if method == "exact":
        return estimate(counts, name, num_threads=1)
    return estimate(
        counts, name, method="mhaar", num_iterations=ITERATIONS, num_chains=CHAINS, seed=seed, num_threads=1
    )
