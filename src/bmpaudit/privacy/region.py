"""What BMP allows an attack: a region of error rates (Theorem 6), and an expected cost (Theorem 7)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bmpaudit.privacy.epsilon import (
    EpsilonPair,
    Floats,
    check_epsilon,
    check_probability,
    log_prior_odds,
    log_ratio,
    sum_where_certain_wins,
)


@dataclass(frozen=True, eq=False)
class Region:
    """R_η(ε_L, ε_R): the pairs (α, β) of type-I and type-II error rates that an attack on a node can have.

    With a = η·e^{ε_L} and b = η·e^{-ε_R} it is {1 ≤ α + aβ ≤ a, b ≤ α + bβ ≤ 1}: both α/(1-β) and (1-α)/β lie in
    [b, a]. It has positive area iff b < 1 < a, is the segment α + β = 1 if a = 1 or b = 1, and empty beyond that.
    An infinite ε imposes nothing on its side, whatever η.

    The three parameters may be arrays that broadcast: one region for each element.

    Attributes:
        prior_odds: η = γ(1)/γ(0), in [0, ∞].
        epsilon_left: ε_L.
        epsilon_right: ε_R.

    >>> region = Region(prior_odds=1.0, epsilon_left=1.0, epsilon_right=1.0)
    >>> round(float(region.area), 12), round(float(np.tanh(0.5)), 12)
    (0.46211715726, 0.46211715726)
    >>> bool(region.contains(0.3, 0.6))
    True
    """

    prior_odds: npt.ArrayLike
    epsilon_left: npt.ArrayLike
    epsilon_right: npt.ArrayLike

    def __post_init__(self) -> None:
        check_epsilon(epsilon_left=self.epsilon_left, epsilon_right=self.epsilon_right)
        log_prior_odds(self.prior_odds)

    @cached_property
    def log_a(self) -> Floats:
        """Log a = log η + ε_L; ∞ where the left pair of inequalities is not imposed."""
        return _sum_where_infinity_wins(log_prior_odds(self.prior_odds), self.epsilon_left)

    @cached_property
    def log_b(self) -> Floats:
        """Log b = log η - ε_R; -∞ where the right pair of inequalities is not imposed."""
        return -_sum_where_infinity_wins(-log_prior_odds(self.prior_odds), self.epsilon_right)

    @property
    def is_empty(self) -> npt.NDArray[np.bool_]:
        """Whether no pair of error rates is allowed: the prior alone breaks the bound (Prop. 1)."""
        return (self.log_a < 0) | (self.log_b > 0)

    def contains(self, alpha: npt.ArrayLike, beta: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether (α, β) is allowed; arrays broadcast against the region's."""
        alpha, beta = check_probability(alpha=alpha, beta=beta)
        with np.errstate(divide="ignore"):
            log_a, log_b = self.log_a, self.log_b
            log_alpha, log_one_minus_alpha = np.log(alpha), np.log1p(-alpha)
            log_beta, log_one_minus_beta = np.log(beta), np.log1p(-beta)
        with np.errstate(invalid="ignore"):  # ∞ - ∞ arises only where a side is not imposed
            left = (log_one_minus_alpha <= log_a + log_beta) & (log_alpha <= log_a + log_one_minus_beta)
            right = (log_alpha >= log_b + log_one_minus_beta) & (log_one_minus_alpha >= log_b + log_beta)
        return np.logical_and(left | (log_a == np.inf), right | (log_b == -np.inf))

    @property
    def area(self) -> Floats:
        """|R| = (a-1)(1-b)/(a-b), and 0 where the region is empty or a segment.

        ε_L = ∞ gives 1-b, ε_R = ∞ gives 1-1/a, and η = 1 with ε_L = ε_R = ε gives tanh(ε/2).
        """
        return np.exp(self.log_area)

    @property
    def log_area(self) -> Floats:
        """Log |R|, right also where |R| is tiny; -∞ where it is 0."""
        log_a, log_b = np.broadcast_arrays(self.log_a, self.log_b)
        has_area = (log_b < 0) & (log_a > 0)
        # Divided by a, so that nothing overflows: (1 - 1/a)(1 - b)/(1 - b/a).
        log_a, log_b = np.where(has_area, log_a, 1.0), np.where(has_area, log_b, -1.0)
        value = _log1mexp(log_a) + _log1mexp(-log_b) - _log1mexp(log_a - log_b)
        return np.where(has_area, value, -np.inf)[()]

    @property
    def vertices(self) -> Floats:
        """Corners (α, β), shape (…, 4, 2), in order around the region from (0, 1) to (1, 0) and back.

        In the coordinates (1-β, α) the region is the parallelogram on P1 = (1-b)/(a-b)·(1, a) and
        P2 = (a-1)/(a-b)·(1, b). For a segment two corners coincide with the other two; an empty region has NaN.
        """
        log_a, log_b = np.broadcast_arrays(self.log_a, self.log_b)
        is_flat = (log_a == 0) | (log_b == 0)
        has_area = (log_a > 0) & (log_b < 0)
        safe_a, safe_b = np.where(has_area, log_a, 1.0), np.where(has_area, log_b, -1.0)
        scale = -np.expm1(safe_b - safe_a)
        # P2 lies on the side where the attack does well (α + β ≤ 1), P1 on the other. The region is its own mirror
        # image about (1/2, 1/2), so 1-β of one is β of the other, and small error rates keep all their digits.
        detected_2 = -np.expm1(-safe_a) / scale
        alpha_2 = np.exp(safe_b) * detected_2
        alpha_1 = -np.expm1(safe_b) / scale
        detected_1 = np.exp(-safe_a) * alpha_1
        zero, one = np.zeros_like(scale), np.ones_like(scale)
        alpha = np.stack([zero, np.where(is_flat, 0, alpha_2), one, np.where(is_flat, 1, alpha_1)], axis=-1)
        beta = np.stack([one, np.where(is_flat, 1, detected_1), zero, np.where(is_flat, 0, detected_2)], axis=-1)
        corners = np.stack([alpha, beta], axis=-1)
        return np.where(self.is_empty[..., None, None], np.nan, corners)

    @property
    def boundary(self) -> Floats:
        """The corners and the first one again, for plotting as a closed line, shape (…, 5, 2)."""
        corners = self.vertices
        return np.concatenate([corners, corners[..., :1, :]], axis=-2)


def implied_epsilon(alpha: npt.ArrayLike, beta: npt.ArrayLike, prior_odds: npt.ArrayLike) -> EpsilonPair[Floats]:
    """The smallest (ε_L, ε_R) whose region holds (α, β): the leakage that one node's error rates imply.

    e_R = log η + max{log((1-β)/α), log(β/(1-α))}, e_L = -log η + max{log((1-α)/β), log(α/(1-β))}, where 0/0 implies
    nothing and x/0 implies ∞. Then (α, β) ∈ R_η(ε_L, ε_R) iff ε_L ≥ e_L and ε_R ≥ e_R.

    >>> e = implied_epsilon(alpha=0.05, beta=0.5, prior_odds=1.0)
    >>> round(float(e.left), 4), round(float(e.right), 4)
    (0.6419, 2.3026)
    """
    alpha, beta = check_probability(alpha=alpha, beta=beta)
    log_odds = log_prior_odds(prior_odds)
    gain_right = np.fmax(log_ratio(1 - beta, alpha), log_ratio(beta, 1 - alpha))
    gain_left = np.fmax(log_ratio(1 - alpha, beta), log_ratio(alpha, 1 - beta))
    # A membership that is certain stays so, whatever an attack does.
    return EpsilonPair(sum_where_certain_wins(gain_left, -log_odds), sum_where_certain_wins(gain_right, log_odds))


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

    A `ValueError` says if the prior lies outside [p_lo, p_hi], where by Prop. 1 there is no such mechanism.

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


def _sum_where_infinity_wins(log_odds: Floats, epsilon: npt.ArrayLike) -> Floats:
    """log_odds + epsilon, where one that is ∞ says "not imposed" whatever the other."""
    given = np.asarray(epsilon, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        total: Floats = np.where((log_odds == np.inf) | (given == np.inf), np.inf, log_odds + given)[()]
    return total


def _log1mexp(x: Floats) -> Floats:
    """log(1 - e^{-x}) for x > 0, without loss of digits at either end (Mächler 2012)."""
    with np.errstate(divide="ignore"):
        return np.where(x > np.log(2), np.log1p(-np.exp(-x)), np.log(-np.expm1(-x)))


def _check_costs(cost_false_positive: float, cost_false_negative: float) -> tuple[float, float]:
    for name, cost in (("cost_false_positive", cost_false_positive), ("cost_false_negative", cost_false_negative)):
        if not 0 < cost < np.inf:
            raise ValueError(f"{name} must be positive and finite, got {name}={cost}")
    return cost_false_positive, cost_false_negative
