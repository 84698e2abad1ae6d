"""Decision rules: from log-likelihood ratios to decisions, and to the errors among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags, Floats, Ints

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


def errors_at(decision_score: Floats, memberships: Flags, threshold: float) -> RuleErrors:
    """Errors of the decisions "member" where the score exceeds the threshold; both arrays of shape (J, K)."""
    says_member = decision_score > threshold
    return RuleErrors(
        np.count_nonzero(says_member & ~memberships, axis=0), np.count_nonzero(~says_member & memberships, axis=0)
    )


def log_prior_odds(prior_prob: Floats) -> Floats:
    """Log η = log γ(1) - log γ(0); infinite where the prior is 0 or 1."""
    with np.errstate(divide="ignore"):
        return np.log(prior_prob) - np.log1p(-prior_prob)
