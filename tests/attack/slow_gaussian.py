"""Algorithm 2 for a single challenge, in plain Python: the slow reference of `Gaussian`, and its conventions."""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt


def log_likelihood_ratio(
    z: float,
    out_statistics: npt.ArrayLike,
    in_statistics: npt.ArrayLike,
    *,
    pooled_variance: bool = False,
    min_sigma: float = 0.0,
) -> float:
    """Log N(z; μ_1, σ_1²) - log N(z; μ_0, σ_0²), the attack's score of one challenge.

    Where both densities are 0, or both infinite, the ratio is 1.

    Args:
        z: Statistic of the challenged model.
        out_statistics: Statistics of models without the node, which give H_0; the challenged model is not among them.
        in_statistics: Statistics of models with the node, which give H_1.
        pooled_variance: Whether both sides share one σ, from the deviations of all models from the mean of their side.
        min_sigma: Lower bound on σ.

    >>> log_likelihood_ratio(2.0, [-1.0, 1.0], [1.0, 3.0])
    2.0
    >>> log_likelihood_ratio(2.0, [0.0, 0.0], [2.0, 2.0])
    inf
    """
    sides = [np.asarray(values, dtype=np.float64) for values in (out_statistics, in_statistics)]
    shifted = [side - side[0] for side in sides]  # so that equal values have a spread of exactly 0
    means = [float(side[0] + values.mean()) for side, values in zip(sides, shifted, strict=True)]
    squares = [float(np.square(values - values.mean()).sum()) for values in shifted]
    if pooled_variance:
        variances = [sum(squares) / (len(sides[0]) + len(sides[1]))] * 2
    else:
        variances = [square / len(side) for square, side in zip(squares, sides, strict=True)]
    log_out, log_in = (
        _log_density(z, mean, max(math.sqrt(variance), min_sigma))
        for mean, variance in zip(means, variances, strict=True)
    )
    return 0.0 if math.isinf(log_in) and log_in == log_out else log_in - log_out


def _log_density(z: float, mean: float, sigma: float) -> float:
    """Log N(z; μ, σ²), without the constant -½ log 2π; with σ = 0, ∞ at μ and -∞ elsewhere."""
    if sigma == 0:
        return math.inf if z == mean else -math.inf
    return -math.log(sigma) - 0.5 * ((z - mean) / sigma) ** 2


def decide(
    z: float,
    out_statistics: npt.ArrayLike,
    in_statistics: npt.ArrayLike,
    prior_prob: float,
    *,
    rule: Literal["strong", "weak"] = "strong",
    pooled_variance: bool = False,
    min_sigma: float = 0.0,
    cost_false_positive: float = 1.0,
    cost_false_negative: float = 1.0,
) -> bool:
    """Algorithm 2: "member" iff N(z; μ_1, σ_1²)/N(z; μ_0, σ_0²) · γ(1)/γ(0) > c_0/c_1.

    The paper has c_0 = c_1; with other costs this is the Bayes decision of Theorem 7, except that ties are decided as
    "non-member". The weak rule leaves out the prior odds.

    >>> decide(1.1, [-1.0, 1.0], [1.0, 3.0], prior_prob=0.25, rule="weak")
    True
    >>> decide(1.1, [-1.0, 1.0], [1.0, 3.0], prior_prob=0.25)
    False
    """
    score = log_likelihood_ratio(z, out_statistics, in_statistics, pooled_variance=pooled_variance, min_sigma=min_sigma)
    if rule == "strong":
        score += math.log(prior_prob) - math.log1p(-prior_prob)
    return score > math.log(cost_false_positive) - math.log(cost_false_negative)
