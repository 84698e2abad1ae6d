"""The likelihood where one side has far more trials than the other, and on grids with an attack strength."""

import os

import numpy as np
import pytest
import scipy.special

from bmpaudit import _native
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.privacy import Region
from bmpaudit.util.values import Floats

Counts = tuple[int, int, int, int]


def slow_log_probability(counts: Counts, log_a: float, log_b: float, panels: int = 200) -> float:
    """log Pr((α, β) ∈ R): both rates on many Gauss-Legendre panels, nothing but densities, no distribution function.

    For each x = 1 - β, α runs between its two bounds, on panels of its own that crowd where its density is.
    """
    num_out, num_in, false_positives, false_negatives = counts
    a, b = np.exp(log_a), np.exp(log_b)
    nodes, weights = np.polynomial.legendre.leggauss(16)

    def law(successes: int, trials: int) -> tuple[float, float, float]:
        mean = (successes + 1) / (trials + 2)
        return successes, trials - successes, 14 * np.sqrt(mean * (1 - mean) / (trials + 3)) + 40 / (trials + 3)

    def log_density(u: Floats, rises: float, falls: float) -> Floats:
        return (
            scipy.special.xlogy(rises, u)
            + scipy.special.xlog1py(falls, -u)
            - scipy.special.betaln(rises + 1, falls + 1)
        )

    x_rises, x_falls, x_reach = law(num_in - false_negatives, num_in)
    u_rises, u_falls, u_reach = law(false_positives, num_out)
    x_mean, u_mean = (x_rises + 1) / (num_in + 2), (u_rises + 1) / (num_out + 2)
    kinks = [(1 - b) / (a - b), (a - 1) / (a - b)]
    # Where the lines pass through the bulk of α, x needs fine panels too.
    through = [u_mean / b, u_mean / a, 1 - (1 - u_mean) / a, 1 - (1 - u_mean) / b]
    crowd = np.concatenate([[x_mean], through])
    reach = max(x_reach, u_reach)
    near = (crowd[:, None] + np.linspace(-1, 1, panels) * np.minimum(reach, [[x_reach], *[[u_reach / b]] * 4])).ravel()
    edges = np.unique(np.concatenate([np.clip(near, 0, 1), np.linspace(0, 1, panels), np.clip(kinks, 0, 1)]))
    half = np.diff(edges)[:, None] / 2
    x = ((edges[1:] + edges[:-1])[:, None] / 2 + half * nodes).ravel()
    x_weight = (half * weights).ravel()
    low = np.clip(np.maximum(b * x, 1 - a * (1 - x)), 0, 1)
    high = np.clip(np.minimum(a * x, 1 - b * (1 - x)), 0, 1)
    fractions = np.unique(np.clip(np.concatenate([u_mean + np.linspace(-1, 1, 60) * u_reach, [0, 1]]), 0, 1))
    keep = high > low
    rows = []
    for x_low, x_high in zip(low[keep], high[keep], strict=True):
        inner = np.unique(np.concatenate([[x_low], fractions[(fractions > x_low) & (fractions < x_high)], [x_high]]))
        inner_half = np.diff(inner)[:, None] / 2
        u = ((inner[1:] + inner[:-1])[:, None] / 2 + inner_half * nodes).ravel()
        rows.append(scipy.special.logsumexp(log_density(u, u_rises, u_falls), b=(inner_half * weights).ravel()))
    return float(scipy.special.logsumexp(log_density(x[keep], x_rises, x_falls) + np.array(rows), b=x_weight[keep]))


def log_probability(counts: Counts, log_a: float, log_b: float) -> float:
    likelihood = Likelihood(np.array([counts], dtype=np.float64), np.zeros(1))
    return float(likelihood(log_a, -log_b)) + float(Region(1.0, log_a, -log_b).log_area)


@pytest.mark.parametrize(
    ("counts", "log_a", "log_b"),
    [
        ((998, 2, 150, 1), 0.7, -0.9),
        ((998, 2, 150, 0), 0.2, -0.1),
        ((2, 998, 1, 700), 0.4, -0.3),
        ((998, 2, 0, 2), 1.5, -2.0),
        ((1_000_000, 10, 300_000, 4), 0.5, -0.5),
        ((10, 1_000_000, 2, 600_000), 0.5, -0.5),
        ((1_000_000, 10, 300_000, 0), 0.05, -0.05),
        ((100_000, 100_000, 30_000, 60_000), 0.4, -0.6),
        ((100_000, 100_000, 30_000, 60_000), 0.25, -0.25),
    ],
)
def test_lopsided_sides_keep_their_digits(counts: Counts, log_a: float, log_b: float) -> None:
    expected = slow_log_probability(counts, log_a, log_b)
    assert log_probability(counts, log_a, log_b) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("counts", [(998, 2, 150, 1), (10, 1_000_000, 2, 600_000), (100_000, 100_000, 30_000, 69_000)])
@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_duality_holds_for_lopsided_sides(counts: Counts, strength: float) -> None:
    num_out, num_in, false_positives, false_negatives = counts
    table = np.array([counts, (num_in, num_out, false_negatives, false_positives)], dtype=np.float64)
    one, dual = (Likelihood(row[None], np.zeros(1)) for row in table)
    for left, right in ((0.3, 0.8), (1.5, 0.2), (3.0, 3.0)):
        assert float(one(left, right, strength)) == pytest.approx(float(dual(right, left, strength)), abs=1e-8)


TABLE = np.array(
    [(100, 80, 10, 30), (50, 60, 0, 0), (80, 20, 8, 20), (80, 20, 8, 20), (998, 2, 5, 1)], dtype=np.float64
)
LOG_ODDS = np.log([0.4, 1.0, 2.5, 2.5, 1.2])


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.9])
def test_grid_with_strength_agrees_with_single_points(strength: float) -> None:
    likelihood = Likelihood(TABLE, LOG_ODDS)
    left, right = np.array([0.5, 1.0, 2.0, 5.0, 9.0]), np.array([0.95, 1.5, 4.0, 8.0])
    expected = likelihood(left[:, None], right[None, :], strength)
    assert likelihood.on_grid(left, right, strength, depth=np.inf) == pytest.approx(expected, abs=1e-9)


def test_grid_drops_only_what_lies_deep_below() -> None:
    likelihood = Likelihood(np.repeat(TABLE, 9, axis=0), np.repeat(LOG_ODDS, 9))
    left, right = np.array([0.93, 1.0, 2.0, 5.0]), np.array([0.95, 1.5, 4.0, 8.0])
    whole = likelihood.on_grid(left, right, depth=np.inf)
    cut = likelihood.on_grid(left, right, depth=100.0)
    assert np.array_equal(cut, np.where(whole >= whole.max() - 100, whole, -np.inf))
    assert np.isinf(cut).any()


def test_equal_nodes_count_as_often_as_they_occur() -> None:
    likelihood, repeated = Likelihood(TABLE, LOG_ODDS), Likelihood(np.tile(TABLE, (7, 1)), np.tile(LOG_ODDS, 7))
    epsilon = np.array([1.0, 2.0, 6.0])
    assert repeated(epsilon, epsilon) == pytest.approx(7 * likelihood(epsilon, epsilon), abs=1e-9)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng = np.random.default_rng(3)
    trials = rng.integers(0, 300, (400, 2))
    table = np.column_stack([trials, rng.binomial(trials, rng.random((400, 2)))]).astype(np.float64)
    log_odds = rng.normal(0, 0.2, 400)
    epsilon, cutoff = np.linspace(0.8, 6, 9), np.full(9, -1e4)
    times = np.ones(400)
    lists = [
        _native.log_likelihood(table, log_odds, times, epsilon, epsilon, cutoff, 0.0, threads, None)
        for threads in (1, 2, 5)
    ]
    grids = [
        _native.grid_log_likelihood(table, log_odds, times, epsilon, epsilon, 300.0, 0.2, n, None)
        for n in (1, 3, os.cpu_count() or 1)
    ]
    assert all(np.array_equal(values, lists[0]) for values in lists)
    assert all(np.array_equal(values, grids[0]) for values in grids)
