"""The reference of Algorithm 2 against SciPy's normal distribution, and its conventions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from slow_gaussian import decide, log_likelihood_ratio

values = st.lists(st.floats(-50, 50), min_size=2, max_size=8)


@given(values, values, st.floats(-60, 60))
def test_ratio_is_that_of_two_fitted_normals(outside: list[float], inside: list[float], z: float) -> None:
    sigmas = [float(np.std(side)) for side in (outside, inside)]
    if min(sigmas) < 1e-3:
        return
    expected = norm.logpdf(z, np.mean(inside), sigmas[1]) - norm.logpdf(z, np.mean(outside), sigmas[0])
    assert log_likelihood_ratio(z, outside, inside) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_side_with_lower_statistics_may_be_the_members() -> None:
    assert decide(-3.0, [2.0, 3.0], [-3.0, -2.0], 0.5)
    assert not decide(3.0, [2.0, 3.0], [-3.0, -2.0], 0.5)


def test_pooled_variance_is_over_all_models() -> None:
    outside, inside = [0.0, 2.0], [10.0, 10.0, 16.0]
    # Deviations -1, 1 and -2, -2, 4: the variance is 26/5.
    expected = norm.logpdf(5.0, 12.0, np.sqrt(5.2)) - norm.logpdf(5.0, 1.0, np.sqrt(5.2))
    assert log_likelihood_ratio(5.0, outside, inside, pooled_variance=True) == pytest.approx(expected)


def test_sigma_has_a_floor() -> None:
    expected = norm.logpdf(1.0, 2.0, 0.5) - norm.logpdf(1.0, 0.0, 3.0)
    assert log_likelihood_ratio(1.0, [-3.0, 3.0], [2.0, 2.0], min_sigma=0.5) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("z", "outside", "inside", "score"),
    [
        (2.0, [0.0, 0.0], [2.0, 2.0], np.inf),
        (0.0, [0.0, 0.0], [2.0, 2.0], -np.inf),
        (1.0, [0.0, 0.0], [2.0, 2.0], 0.0),  # 0/0
        (2.0, [2.0, 2.0], [2.0, 2.0], 0.0),  # ∞/∞
        (2.0, [0.0, 1.0], [2.0, 2.0], np.inf),
        (2.1, [0.0, 1.0], [2.0, 2.0], -np.inf),
        (0.1, [0.1] * 7, [2.0, 3.0], -np.inf),  # a mean of equal values is that value, also of 0.1
        (0.2, [0.1] * 7, [2.0, 3.0], np.inf),
        (5.0, [0.0], [1.0], 0.0),  # one model on a side: no spread
    ],
)
def test_without_spread(z: float, outside: list[float], inside: list[float], score: float) -> None:
    assert log_likelihood_ratio(z, outside, inside) == score


@pytest.mark.parametrize(
    ("prior_prob", "options", "expected"),
    [
        (0.5, {}, False),  # the ratio is 1, which is not above 1
        (0.6, {}, True),
        (0.6, {"rule": "weak"}, False),
        (0.6, {"cost_false_positive": 1.5}, False),  # prior odds of 1.5 do not exceed 1.5 …
        (0.6, {"cost_false_positive": 1.49}, True),
        (0.4, {"cost_false_negative": 1.51}, True),
        (0.4, {"rule": "weak", "cost_false_negative": 1.01}, True),
        (0.6, {"rule": "weak", "cost_false_positive": 1.01}, False),
    ],
)
def test_priors_and_costs_move_the_threshold(prior_prob: float, options: dict[str, Any], expected: bool) -> None:
    assert decide(1.0, [0.0, 2.0], [0.0, 2.0], prior_prob, **options) is expected
