from statistics import NormalDist

import numpy as np
import pytest
from quantile_errors import mcse_quantile

from bmpaudit.estimation.mhaar import diagnose, quantile_ess, split_chains
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats


def autoregressive_chains(phi: float, num_chains: int, num_draws: int, seed: int) -> Floats:
    """Stationary x_t = φ x_{t-1} + noise with variance 1: its mean has ESS S (1-φ)/(1+φ)."""
    noise = np.random.default_rng(seed).normal(size=(num_chains, num_draws))
    chains = np.empty_like(noise)
    chains[:, 0] = noise[:, 0]
    for t in range(1, num_draws):
        chains[:, t] = phi * chains[:, t - 1] + np.sqrt(1 - phi**2) * noise[:, t]
    return chains


def test_independent_draws_are_worth_their_number() -> None:
    draws = np.random.default_rng(0).normal(size=(4, 5000))
    found = diagnose(draws)
    assert abs(found.r_hat - 1) < 0.003
    assert found.bulk_ess == pytest.approx(20_000, rel=0.1)
    assert found.tail_ess == pytest.approx(20_000, rel=0.15)
    assert found.mcse_mean == pytest.approx(1 / np.sqrt(20_000), rel=0.05)
    assert found.has_converged


@pytest.mark.parametrize("phi", [0.5, 0.9, -0.5])
def test_autoregressive_chains_have_their_known_ess(phi: float) -> None:
    draws = autoregressive_chains(phi, 4, 20_000, seed=1)
    known = draws.size * (1 - phi) / (1 + phi)
    found = diagnose(draws)
    assert found.bulk_ess == pytest.approx(known, rel=0.12)
    assert found.mcse_mean == pytest.approx(1 / np.sqrt(known), rel=0.08)


def test_ess_for_a_quantile_follows_the_indicator() -> None:
    # P(x_0 ≤ 0, x_t ≤ 0) = 1/4 + arcsin(φ^t)/(2π), so the indicator at the median has autocorrelation (2/π) arcsin φ^t.
    phi = 0.8
    draws = autoregressive_chains(phi, 4, 20_000, seed=2)
    time = 1 + 2 * (2 / np.pi * np.arcsin(phi ** np.arange(1, 200))).sum()
    assert quantile_ess(split_chains(draws), 0.5) == pytest.approx(draws.size / time, rel=0.12)


@pytest.mark.parametrize("prob", [0.05, 0.5, 0.9])
def test_error_of_a_quantile(prob: float) -> None:
    draws = np.random.default_rng(3).normal(size=(4, 5000))
    normal = NormalDist()
    known = np.sqrt(prob * (1 - prob) / draws.size) / normal.pdf(normal.inv_cdf(prob))
    assert mcse_quantile(draws, prob) == pytest.approx(known, rel=0.25)


def test_chains_that_disagree() -> None:
    draws = np.random.default_rng(4).normal(size=(4, 1000))
    shifted = draws + np.array([[0.0], [0.0], [0.0], [3.0]])
    assert diagnose(shifted).r_hat > 1.3
    assert diagnose(shifted).bulk_ess < 20
    assert not diagnose(shifted).has_converged
    wider = draws * np.array([[1.0], [1.0], [1.0], [4.0]])  # the same means: only the folded ranks differ
    assert diagnose(wider).r_hat > 1.1
    drifting = draws[:1] + np.linspace(0, 4, 1000)
    assert diagnose(drifting).r_hat > 1.5


def test_what_is_invariant() -> None:
    draws = autoregressive_chains(0.5, 3, 501, seed=5)
    found = diagnose(draws)
    assert diagnose(np.exp(3 * draws)).bulk_ess == pytest.approx(found.bulk_ess)
    assert diagnose(2 - draws).tail_ess == pytest.approx(found.tail_ess, rel=1e-6)
    assert diagnose(10 + 2 * draws).r_hat == pytest.approx(found.r_hat)


def test_constant_draws() -> None:
    draws = np.ones((2, 10))
    found = diagnose(draws)
    assert (found.r_hat, found.bulk_ess, found.mcse_mean) == (1.0, 20.0, 0.0)
    assert diagnose(draws * [[1.0], [2.0]]).r_hat == np.inf


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        (np.zeros(10), "draws must have shape"),
        (np.zeros((4, 3)), "draws must have shape"),
        (np.full((4, 10), np.nan), "draws must be finite"),
    ],
)
def test_bad_draws_are_refused(draws: Floats, message: str) -> None:
    with pytest.raises(InputError, match=message):
        diagnose(draws)
