"""The accounting of DP-SGD: against quadrature, against mechanisms made to be worst, and against other accountants."""

import itertools

import numpy as np
import pytest
from opacus.accountants import PRVAccountant, RDPAccountant
from scipy.stats import binom, norm

from bmpaudit.models.private import Steps, step_delta
from bmpaudit.util.errors import InputError

LINE = np.linspace(-60.0, 60.0, 240_001)
SPACING = LINE[1] - LINE[0]
EPSILONS = np.array([-1.5, -0.2, 0.0, 0.1, 0.5, 1.0, 2.0, 4.0])


def mixture(means: np.ndarray, weights: np.ndarray, noise: float) -> np.ndarray:
    """Density on the line."""
    return norm.pdf(LINE[:, None], means, noise) @ weights


def excess(first: np.ndarray, second: np.ndarray, cell: float) -> np.ndarray:
    """H_ε of two densities by summation."""
    return np.array([np.maximum(first - np.exp(epsilon) * second, 0).sum() * cell for epsilon in EPSILONS])


def worst_pair(noise: float, rate: float, degree: int) -> tuple[np.ndarray, np.ndarray]:
    k, j = np.arange(degree + 2.0), np.arange(degree + 1.0)
    first = mixture(k, binom.pmf(k, degree + 1, rate), noise)
    return first, mixture(-j, binom.pmf(j, degree, rate), noise)


class TestOneStep:
    """With (d + 1) rows of the sample and d of the other one, as the proof has them."""

    @pytest.mark.parametrize(("noise", "rate", "degree"), [(0.7, 0.3, 1), (2.0, 0.05, 3), (4.0, 1.0, 2), (1.0, 0.5, 0)])
    def test_is_the_hockey_stick_divergence_of_the_pair(self, noise: float, rate: float, degree: int) -> None:
        first, second = worst_pair(noise, rate, degree)
        there, back = step_delta(EPSILONS, noise, rate, degree)
        np.testing.assert_allclose(there, excess(first, second, SPACING), atol=1e-7)
        np.testing.assert_allclose(back, excess(second, first, SPACING), atol=1e-7)

    @pytest.mark.parametrize("degree", [0, 1, 2])
    def test_no_mechanism_with_such_rows_is_told_apart_better(self, degree: int) -> None:
        """Rows of length at most 1 in the plane: the node's own, and those it changes before and after."""
        rng = np.random.default_rng(degree)
        axis = np.linspace(-7.0, 7.0, 561)
        plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        cell = (axis[1] - axis[0]) ** 2
        noise, rate = 0.9, 0.35
        bound = np.array(step_delta(EPSILONS, noise, rate, degree))
        closest = 0.0
        for trial in range(10):
            rows = rng.normal(size=(2 * degree + 1, 2))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True) * rng.choice([1.0, 1.0, 1.7], size=(2 * degree + 1, 1))
            if trial == 0:  # all along one line, those after the change the opposite of those before
                rows = np.array([[1.0, 0.0]] * (degree + 1) + [[-1.0, 0.0]] * degree)
            own, before, after = rows[0], rows[1 : degree + 1], rows[degree + 1 :]
            densities = np.zeros((2, len(plane)))
            for drawn in itertools.product([0, 1], repeat=degree + 1):
                weight = np.prod([rate if bit else 1 - rate for bit in drawn])
                others = np.array(drawn[1:], dtype=float)
                for density, center in zip(densities, (drawn[0] * own + others @ before, others @ after), strict=True):
                    square = ((plane - center) ** 2).sum(axis=1)
                    density += weight * np.exp(-square / (2 * noise**2)) / (2 * np.pi * noise**2)
            seen = np.array([excess(one, other, cell) for one, other in itertools.permutations(densities)])
            assert (seen <= bound + 1e-5).all()  # of summing over a grid
            closest = max(closest, float((seen[0] / bound[0])[:6].min()))
        assert closest == pytest.approx(1, abs=1e-3), "the worst one attains the bound"


class TestManySteps:
    @pytest.mark.parametrize(
        ("noise", "rate", "num_steps"), [(1.0, 0.1, 100), (0.8, 0.05, 200), (2.0, 0.5, 20), (5.0, 0.9, 10)]
    )
    def test_without_neighbours_it_is_what_opacus_accounts_for(self, noise: float, rate: float, num_steps: int) -> None:
        epsilon = Steps(num_steps, rate).epsilon(noise, 1e-5)
        precise, loose = PRVAccountant(), RDPAccountant()
        for accountant in (precise, loose):
            accountant.history = [(noise, rate, num_steps)]
        assert epsilon == pytest.approx(precise.get_epsilon(1e-5, eps_error=0.005), abs=0.01)
        assert epsilon < loose.get_epsilon(1e-5)

    def test_two_steps_are_the_convolution_of_one(self) -> None:
        """Summed over a grid of both outputs."""
        noise, rate, degree, epsilon = 3.0, 0.4, 2, 1.0
        every = slice(None, None, 200)
        first, second = (density[every] for density in worst_pair(noise, rate, degree))
        cell = (200 * SPACING) ** 2
        there = np.outer(first, first) - np.exp(epsilon) * np.outer(second, second)
        back = np.outer(second, second) - np.exp(epsilon) * np.outer(first, first)
        delta = max(np.maximum(there, 0).sum(), np.maximum(back, 0).sum()) * cell
        found = Steps(2, rate, degree).epsilon(noise, float(delta))
        assert found == pytest.approx(epsilon, abs=2e-3)

    def test_all_rows_in_every_batch_are_a_gaussian_of_2d_plus_1(self) -> None:
        noise, degree, num_steps, delta = 20.0, 3, 50, 1e-5
        shift = (2 * degree + 1) * np.sqrt(num_steps) / noise
        epsilon = Steps(num_steps, 1.0, degree).epsilon(noise, delta)
        gaussian = norm.cdf(shift / 2 - epsilon / shift) - np.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)
        assert gaussian == pytest.approx(delta, rel=1e-3)

    def test_grows_with_degree_rate_and_steps(self) -> None:
        few = Steps(50, 0.1, 2).epsilon(4.0, 1e-5)
        for more in (Steps(50, 0.1, 3), Steps(50, 0.2, 2), Steps(100, 0.1, 2)):
            assert more.epsilon(4.0, 1e-5) > few
        assert Steps(50, 0.1, 2).epsilon(8.0, 1e-5) < few


class TestNoise:
    @pytest.mark.parametrize("degree", [0, 3])
    def test_is_the_least_of_three_digits(self, degree: int) -> None:
        steps = Steps(60, 0.1, degree)
        noise = steps.noise_for(2.0, 1e-6)
        assert steps.epsilon(noise, 1e-6) <= 2.0 < steps.epsilon(noise * (1 - 0.012), 1e-6)
        assert float(f"{noise:.3g}") == noise

    def test_is_bounded(self) -> None:
        assert Steps(1, 0.01).noise_for(500.0, 1e-6) == 0.3
        with pytest.raises(
            InputError, match=r"no noise_multiplier up to 10,000 gives epsilon=1e-06 with delta=1e-12 in 9,000 steps"
        ):
            Steps(9_000, 1.0).noise_for(1e-6, 1e-12)
