"""Decision rules: from log-likelihood ratios to decisions, and to the errors among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from bmpaudit import registry
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats, Ints

if TYPE_CHECKING:
    from bmpaudit.interfaces import DecisionRule


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
    """Errors of one rule on K nodes."""

    false_positives: Ints  # A, number of models without the node that were taken for models with it, shape (K,)
    false_negatives: Ints  # B, number of models with the node that were taken for models without it, shape (K,)


def as_rule(rule: str | DecisionRule) -> DecisionRule:
    """A rule by its name (`strong`, `weak` or `module:Name`), or itself; `InputError` if there is none."""
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
