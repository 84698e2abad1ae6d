"""Priors of ε: how far up they are followed, and posteriors that are nothing but the prior."""

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import NormalPrior, estimate
from bmpaudit.estimation.likelihood import upper_end
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats

PROBS = (0.01, 0.05, 0.5, 0.95, 0.99)


def no_trials() -> ErrorCounts:
    return ErrorCounts.from_arrays(num_out=[0], num_in=0, false_positives=0, false_negatives=0, prior_prob=0.5)


def test_a_node_that_is_never_in_leaves_the_prior_as_it_is() -> None:
    """η = 0 imposes nothing on ε_R and bounds it nowhere: the posterior is the whole normal law."""
    counts = ErrorCounts.from_arrays(num_out=[90], num_in=10, false_positives=4, false_negatives=3, prior_prob=0.0)
    posterior = estimate(counts, "bmp-r", prior=NormalPrior(1.0, 4.0))
    np.testing.assert_allclose(posterior.quantile(PROBS), norm(1, 2).ppf(PROBS), atol=1e-5)
    assert posterior.mean() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("mean", [-30.0, 0.0, 100.0, 1000.0])
@pytest.mark.parametrize("variance", [0.01, 10.0])
def test_without_trials_the_posterior_is_the_prior_above_the_floor(mean: float, variance: float) -> None:
    """However far from the floor the prior has its peak, on either side."""
    posterior = estimate(no_trials(), "mp", prior=NormalPrior(mean, variance))
    scale = np.sqrt(variance)
    expected = truncnorm(-mean / scale, np.inf, loc=mean, scale=scale).ppf(PROBS)
    np.testing.assert_allclose(posterior.quantile(PROBS), expected, atol=1e-5)


@pytest.mark.parametrize("low", [-50.0, 0.0, 7.0])
@pytest.mark.parametrize("mean", [-5.0, 0.0, 60.0])
def test_a_prior_is_negligible_beyond_its_upper_end_and_not_long_before(low: float, mean: float) -> None:
    prior = NormalPrior(mean, 10.0)
    end, peak = upper_end(prior, low), max(low, mean)
    depth = prior(np.array([peak]))[0] - prior(np.array([peak + (end - peak) * 0.8, end]))
    assert depth[0] < 90 < 100
    assert depth[1] > 80


def test_a_prior_that_does_not_vanish_is_refused() -> None:
    with pytest.raises(InputError, match="the prior must vanish for large ε"):
        upper_end(lambda epsilon: -np.log(1 + epsilon**2), 0.0)


def test_a_prior_that_is_nothing_above_the_floor_is_refused() -> None:
    def below_zero(epsilon: Floats) -> Floats:
        return np.where(epsilon < -1, epsilon, -np.inf)

    with pytest.raises(InputError, match="the posterior is 0 everywhere"):
        estimate(no_trials(), "mp", prior=below_zero)
