"""Polynomials in e^-ε stand for many nodes: what comes out is what each node alone gives."""

import numpy as np
import pytest

from bmpaudit.estimation.likelihood import Likelihood
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
