import numpy as np
import pytest
import scipy.stats

from bmpaudit.proof.bounds import ROUNDING, poisson_binomial_pmf, poisson_binomial_tail
from bmpaudit.util.values import Floats


def one_by_one(prob: Floats) -> Floats:
    mass = np.zeros(len(prob) + 1)
    mass[0] = 1.0
    for p in prob:
        mass[1:] = mass[1:] * (1 - p) + mass[:-1] * p
        mass[0] *= 1 - p
    return mass


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 65, 1000])
def test_agrees_with_adding_trials_one_by_one(size: int) -> None:
    prob = np.random.default_rng(size).random(size)
    reference = one_by_one(prob)
    assert np.abs(poisson_binomial_pmf(prob) - reference).max() < ROUNDING
    for at_least in range(0, size + 2, max(1, size // 20)):
        assert abs(poisson_binomial_tail(prob, at_least) - reference[at_least:].sum()) < ROUNDING


def test_ten_thousand_trials_that_mostly_succeed() -> None:
    prob = 1 - np.random.default_rng(1).random(10_000) ** 3 * 0.01
    reference = one_by_one(prob)
    for at_least in (9_900, 9_970, 9_980, 9_999, 10_000):
        assert abs(poisson_binomial_tail(prob, at_least) - reference[at_least:].sum()) < ROUNDING


def test_equal_probabilities_are_binomial() -> None:
    for at_least in (0, 1, 50, 99, 100, 101):
        tail = poisson_binomial_tail(np.full(100, 0.7), at_least)
        assert tail == pytest.approx(scipy.stats.binom.sf(at_least - 1, 100, 0.7), abs=1e-14)
