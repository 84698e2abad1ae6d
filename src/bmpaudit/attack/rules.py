"""Decision rules: from log-likelihood ratios to decisions, and to the errors among them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from bmpaudit import registry
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats, Ints

if TYPE_CHECKING:
    from bmpaudit.interfaces import DecisionRule


RuleName = Literal["strong", "weak"]
"""Names of the built-in rules."""


@dataclass(frozen=True)
class Strong:
    """Weighs the likelihood ratio with the prior odds, as Algorithm 2 does: the score is log LR + log η."""

    def decision_score(self, log_likelihood_ratio: Floats, log_prior_odds: Floats) -> Floats:
        """Log posterior odds of membership, shape (num_models, num_nodes)."""
        return log_likelihood_ratio + log_prior_odds


@dataclass(frozen=True)
class Weak:
    """Goes by the likelihood ratio alone: the paper's weak test."""

    def decision_score(self, log_likelihood_ratio: Floats, log_prior_odds: Floats) -> Floats:  # noqa: ARG002
        """The log-likelihood ratio itself, shape (num_models, num_nodes)."""
        return log_likelihood_ratio


class RuleErrors(NamedTuple):
    """Errors of one rule on K nodes.

    Attributes:
        false_positives: A, number of models without the node that were taken for models with it, shape (K,).
        false_negatives: B, number of models with the node that were taken for models without it, shape (K,).
    """

    false_positives: Ints
    false_negatives: Ints


def as_rule(rule: str | DecisionRule) -> DecisionRule:
    """A rule by its name (`strong`, `weak` or `module:Name`), or itself.

    Raises:
        InputError: if there is no such rule.
    """
    built: DecisionRule = registry.build(registry.RULE, rule)
    return built


def log_prior_odds(prior_prob: Floats) -> Floats:
    """Log η = log γ(1) - log γ(0); infinite where the prior is 0 or 1."""
    with np.errstate(divide="ignore"):
        return np.log(prior_prob) - np.log1p(-prior_prob)


Unfittable = Literal["leave-out", "non-member"]


@dataclass(frozen=True)
class DecisionSettings:
    """Costs of errors, and what happens to nodes that cannot be attacked.

    Attributes:
        cost_false_positive: Cost of taking a non-member for a member, c_0 of Theorem 7.
        cost_false_negative: Cost of taking a member for a non-member, c_1 of Theorem 7.
        unfittable: Treatment of nodes that cannot be attacked (too few models, or a prior of 0 or 1): `leave-out`; or
            `non-member`, every decision is "non-member", which seems to be what the paper does.
    """

    cost_false_positive: float = 1.0
    cost_false_negative: float = 1.0
    unfittable: Unfittable = "leave-out"

    def __post_init__(self) -> None:
        for name in ("cost_false_positive", "cost_false_negative"):
            cost = getattr(self, name)
            if not 0 < cost < np.inf:
                raise InputError(f"{name} must be positive and finite, got {name}={cost}")
        if self.unfittable not in get_args(Unfittable):
            choices = " or ".join(get_args(Unfittable))
            raise InputError(f"unfittable must be {choices}, got unfittable={self.unfittable!r}")

    @property
    def threshold(self) -> float:
        """log(c_0/c_1): a decision score above it means "member"."""
        return float(np.log(self.cost_false_positive) - np.log(self.cost_false_negative))


DEFAULT_SETTINGS = DecisionSettings()


# Algorithm 2 for a single challenge, to read and to compare with: `Gaussian` does the same for all at once.


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
    rule: RuleName = "strong",
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
