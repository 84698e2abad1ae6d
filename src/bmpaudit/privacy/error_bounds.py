"""What BMP says about the best attack: bounds on its expected cost (Theorem 7), and the attack itself."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bmpaudit.privacy.epsilon import Floats, check_epsilon, log_prior_odds


def bayes_decision(
    posterior_log_odds: npt.ArrayLike, cost_false_positive: float = 1.0, cost_false_negative: float = 1.0
) -> npt.NDArray[np.bool_]:
    """The decision of least expected cost: "member" iff c0·π(0|w) ≤ c1·π(1|w).

    >>> bayes_decision([-0.1, 0.0, 2.0])
    array([False,  True,  True])
    """
    _check_costs(cost_false_positive, cost_false_negative)
    with np.errstate(invalid="ignore"):  # the log-odds of an output that never comes are NaN; it decides nothing
        return np.asarray(posterior_log_odds) >= np.log(cost_false_positive) - np.log(cost_false_negative)


def expected_cost_bound(
    prior_odds: npt.ArrayLike,
    epsilon_left: npt.ArrayLike,
    epsilon_right: npt.ArrayLike,
    cost_false_positive: float = 1.0,
    cost_false_negative: float = 1.0,
) -> Floats:
    """Theorem 7: under (ε_L, ε_R)-BMP no attack on a node costs less, in expectation.

    The largest of min(c0/(1+e^{ε_R}), c1/(1+e^{ε_L})), γ(0)·min(c1·e^{-ε_L}, c0) and γ(1)·min(c0·e^{-ε_R}, c1). With
    unit costs it bounds the probability of a wrong decision; there the paper leaves out the inner minima, which
    matter for negative ε.

    >>> round(float(expected_cost_bound(prior_odds=1.0, epsilon_left=1.0, epsilon_right=1.0)), 4)
    0.2689
    """
    c0, c1 = _check_costs(cost_false_positive, cost_false_negative)
    left, right = check_epsilon(epsilon_left=epsilon_left, epsilon_right=epsilon_right)
    log_odds = log_prior_odds(prior_odds)
    with np.errstate(over="ignore"):
        by_posterior = np.minimum(c0 * expit(-right), c1 * expit(-left))
        by_non_member = expit(-log_odds) * np.minimum(c1 * np.exp(-left), c0)
        by_member = expit(log_odds) * np.minimum(c0 * np.exp(-right), c1)
    return np.maximum(by_posterior, np.maximum(by_non_member, by_member))


def attained_cost_bound(
    prior_odds: npt.ArrayLike,
    epsilon_left: npt.ArrayLike,
    epsilon_right: npt.ArrayLike,
    cost_false_positive: float = 1.0,
    cost_false_negative: float = 1.0,
) -> Floats:
    """The best bound that (ε_L, ε_R)-BMP allows: some mechanism attains it.

    The least expected cost is E[h(π)] with h(p) = min(c0(1-p), c1·p) concave and E[π] = γ(1), so it is least when the
    posterior takes only its extreme values p_lo = 1/(1+e^{ε_L}) and p_hi = 1/(1+e^{-ε_R}):
    λ·h(p_hi) + (1-λ)·h(p_lo) with λ = (γ(1)-p_lo)/(p_hi-p_lo). At least as large as `expected_cost_bound`.

    Raises:
        ValueError: if the prior lies outside [p_lo, p_hi], where by Prop. 1 there is no such mechanism.

    >>> round(float(attained_cost_bound(prior_odds=0.5, epsilon_left=1.0, epsilon_right=1.0)), 4)
    0.2689
    """
    c0, c1 = _check_costs(cost_false_positive, cost_false_negative)
    left, right = check_epsilon(epsilon_left=epsilon_left, epsilon_right=epsilon_right)
    log_odds = log_prior_odds(prior_odds)
    if ((log_odds < -left) | (log_odds > right)).any():
        raise ValueError(
            "no mechanism is (ε_L, ε_R)-BMP unless -ε_L ≤ log η ≤ ε_R (Prop. 1), "
            f"got epsilon_left={epsilon_left!r}, epsilon_right={epsilon_right!r}, prior_odds={prior_odds!r}"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        # σ(x) - σ(y) = σ(x)σ(-y)(1 - e^{y-x}): differences of logistic functions without cancellation.
        spread = -np.expm1(-(left + right))
        weight_high = expit(log_odds) * -np.expm1(-(left + log_odds)) / (expit(right) * spread)
        weight_low = expit(-log_odds) * -np.expm1(log_odds - right) / (expit(left) * spread)
        bound = weight_high * np.minimum(c0 * expit(-right), c1 * expit(right))
        bound = bound + weight_low * np.minimum(c0 * expit(left), c1 * expit(-left))
    # Where the extremes coincide, or the prior is certain, the posterior is the prior.
    is_prior = (spread == 0) | np.isinf(log_odds)
    return np.where(is_prior, np.minimum(c0 * expit(-log_odds), c1 * expit(log_odds)), bound)[()]


def _check_costs(cost_false_positive: float, cost_false_negative: float) -> tuple[float, float]:
    for name, cost in (
        ("cost_false_positive", cost_false_positive),
        ("cost_false_negative", cost_false_negative),
    ):
        if not 0 < cost < np.inf:
            raise ValueError(f"{name} must be positive and finite, got {name}={cost}")
    return cost_false_positive, cost_false_negative
