"""Scores of challenges: what an attack returns, and what is kept of it together with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.attack.not_auditable import NotAuditable
from bmpaudit.attack.rules import as_rule, log_prior_odds

if TYPE_CHECKING:
    from bmpaudit.interfaces import DecisionRule


@dataclass(frozen=True, eq=False)
class Scores:
    """What an attack returns: a score for each model and each node that it was asked about.

    Attributes:
        log_likelihood_ratio: Log-likelihood ratio of "member" against "non-member", shape (num_models, num_targets);
            higher means more likely a member, ±∞ is allowed. The columns are those of `Evidence.nodes`.
        not_auditable: Nodes that the attack cannot score, and why; their columns are ignored.
    """

    log_likelihood_ratio: Floats
    not_auditable: tuple[NotAuditable, ...] = ()


@dataclass(frozen=True, eq=False)
class ChallengeScores:
    """Scores of all challenges (model, node), with the truth.

    Attributes:
        node: Ids of the K nodes, shape (K,).
        log_likelihood_ratio: The attack's scores, shape (J, K); -∞ for nodes that it could not score.
        memberships: The truth, shape (J, K).
        prior_prob: γ(1), shape (K,).
        is_scored: Whether a node could be attacked, shape (K,); others are only here if they were to be kept.
        threshold: log(c_0/c_1): a decision score above it means "member".
    """

    node: Ints
    log_likelihood_ratio: Floats
    memberships: Flags
    prior_prob: Floats
    is_scored: Flags
    threshold: float

    def of(self, rule: str | DecisionRule) -> Floats:
        """Decision scores of a rule, shape (J, K); -∞ for nodes that could not be attacked."""
        # A node that was kept may have a prior of 0 or 1; it is never decided to be a member.
        log_odds = np.where(self.is_scored, log_prior_odds(self.prior_prob), 0.0)
        values = as_rule(rule).decision_score(self.log_likelihood_ratio, log_odds)
        return values if self.is_scored.all() else np.where(self.is_scored, values, -np.inf)
