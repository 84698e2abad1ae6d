"""Polynomials in e^-ε and Gauss rules stand for many nodes: what comes out is what each node alone gives."""

from dataclasses import replace

import numpy as np
import pytest

from bmpaudit.estimation.density import approximate_density
from bmpaudit.estimation.likelihood import Likelihood, distinct_rows
from bmpaudit.util.values import Floats

NUM_NODES = 120


def likelihood(kind: str, num_models: int) -> Likelihood:
    rng = np.random.default_rng(3)
    num_in = rng.binomial(num_models, 0.3, NUM_NODES)
    num_out = num_models - num_in
    alpha = rng.beta(4, 12, NUM_NODES)
    alpha, beta = {
        "spread": (alpha, rng.beta(8, 6, NUM_NODES)),
        "nothing leaks": (alpha, 1 - alpha),
        "few errors": (np.full(NUM_NODES, 0.002), np.full(NUM_NODES, 0.98)),
        "never": (np.zeros(NUM_NODES), np.ones(NUM_NODES)),
    }[kind]
    counts = [num_out, num_in, rng.binomial(num_out, alpha), rng.binomial(num_in, beta)]
    return Likelihood(np.column_stack(counts).astype(np.float64), rng.normal(-0.8, 0.2, NUM_NODES), 1)


def one_by_one(of: Likelihood, left: Floats, right: Floats) -> Floats:
    """Few pairs at once, so that no polynomial is worthwhile."""
    return np.concatenate([of(left[i : i + 4], right[i : i + 4]) for i in range(0, len(left), 4)])


@pytest.mark.parametrize("kind", ["spread", "nothing leaks", "few errors", "never"])
@pytest.mark.parametrize("num_models", [20, 200, 5_000])
@pytest.mark.parametrize("sides", ["left", "right", "both"])
def test_many_values_of_one_epsilon(kind: str, num_models: int, sides: str) -> None:
    of = likelihood(kind, num_models)
    epsilon = np.concatenate([np.geomspace(0.01, 30, 80) + np.abs(of.log_prior_odds).max(), [2.5]])
    nothing = np.full_like(epsilon, np.inf)
    left, right = (nothing if sides == "right" else epsilon), (nothing if sides == "left" else epsilon)
    expected = one_by_one(of, left, right)
    np.testing.assert_allclose(of(left, right), expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(of(left[::-1], right[::-1]), expected[::-1], rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", ["spread", "nothing leaks", "few errors", "never"])
@pytest.mark.parametrize("num_models", [20, 200, 5_000])
def test_a_grid_of_two(kind: str, num_models: int) -> None:
    of = likelihood(kind, num_models)
    low = np.abs(of.log_prior_odds).max()
    for start, stop in ((0.02, 0.3), (0.5, 30.0), (2.0, 2.5)):
        left, right = low + np.linspace(start, stop, 30), low + np.linspace(1.1 * start, 0.9 * stop, 20)
        pairs = [values.ravel() for values in np.meshgrid(left, right, indexing="ij")]
        expected = one_by_one(of, *pairs).reshape(30, 20)
        found = of.on_grid(left, right, depth=np.inf)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", ["spread", "nothing leaks", "few errors", "never"])
@pytest.mark.parametrize("num_models", [20, 200, 5_000])
@pytest.mark.parametrize("is_at_floor", [True, False])
def test_rays_from_the_floor(kind: str, num_models: int, is_at_floor: bool) -> None:
    of = likelihood(kind, num_models)
    if is_at_floor:  # the floor of all nodes, where regions have no area
        of = replace(of, log_prior_odds=np.full(NUM_NODES, -0.8))
    low = -of.log_prior_odds.min(), of.log_prior_odds.max()
    distances = np.geomspace(1e-8, 0.1, 30)
    directions = 1 + np.exp([-3.0, 0.1, 0.7]), 1 + np.exp([3.0, -0.1, -0.7])
    left, right = (start + distances[:, None] * each for start, each in zip(low, directions, strict=True))
    expected = one_by_one(of, left.ravel(), right.ravel()).reshape(left.shape)
    np.testing.assert_allclose(of.on_rays(low, distances, directions), expected, rtol=0, atol=1e-7)


def test_decisions_that_never_vary_are_condensed() -> None:
    rng = np.random.default_rng(0)
    num_in = rng.binomial(1_000, 0.25, 3_000)
    rows_in = np.column_stack([1_000 - num_in, num_in, np.zeros_like(num_in), num_in]).astype(np.float64)
    others = np.array([[700.0, 300.0, 20.0, 100.0]])
    counts, log_odds = np.concatenate([rows_in, others]), np.full(3_001, -1.1)
    of, (rows, _) = Likelihood(counts, log_odds, 1), distinct_rows(counts, log_odds)
    condensed = rows.condensed()
    assert len(condensed) < len(rows) / 4
    assert condensed.times.sum() == pytest.approx(3_001)
    left, right = 1.1 + np.array([1e-4, 0.1, 0.1, 5.0]), -1.1 + np.array([6.0, 0.2, 4.0, 9.0])
    np.testing.assert_allclose(of(left, right, rows=condensed), of(left, right), rtol=1e-12)


def test_few_rows_or_other_priors_are_not_condensed() -> None:
    counts = np.column_stack([np.arange(100, 160), np.arange(100, 40, -1), np.zeros(60), np.arange(100, 40, -1)])
    rows, _ = distinct_rows(counts.astype(np.float64), np.linspace(-1, 1, 60))
    assert rows.condensed() is rows
    rows, _ = distinct_rows(counts[:20].astype(np.float64), np.zeros(20))
    assert rows.condensed() is rows


def test_a_rough_density_with_its_peak_at_the_floor_leads_nobody_astray() -> None:
    asked: list[Floats] = []

    def log_density(x: Floats, _: float) -> Floats:
        return -0.5 * ((x - 7) / 0.3) ** 2

    def rough(x: Floats, _: float) -> Floats:
        asked.append(x)
        return np.maximum(log_density(x, 0.0) - 300, -1e6 * x)

    density = approximate_density(log_density, 0.0, 40.0, rough)
    assert float(density.quantile(0.5)) == pytest.approx(7, abs=1e-9)
    assert sum(map(len, asked)) < 50  # no more than one scan
