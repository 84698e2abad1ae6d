"""Mechanisms small enough to enumerate: the referee of every statement about privacy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from bmpaudit.privacy.epsilon import Floats, check_probability, log_ratio
from bmpaudit.privacy.error_bounds import bayes_decision
from bmpaudit.privacy.membership_law import check_law, membership_table

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ErrorPair:
    """Error rates of a membership test (Definition 6).

    Attributes:
        alpha: Type I: the test says member of a non-member.
        beta: Type II: the test says non-member of a member.
    """

    alpha: float
    beta: float


@dataclass(frozen=True, eq=False)
class FiniteMechanism:
    """𝒜 = (𝒮, Φ) with N nodes and finitely many outputs, as two tables.

    Attributes:
        membership_prob: Pr(M = m), shape (2^N,); bit i of the row number m tells whether node i is in.
        likelihood: f(w | m), shape (2^N, num_outputs), for every m, also those of probability 0.

    >>> from bmpaudit.privacy import independent_memberships, privacy_levels
    >>> response = FiniteMechanism(independent_memberships([0.5]), [[0.75, 0.25], [0.25, 0.75]])
    >>> round(privacy_levels(response).mp, 4)
    1.0986
    """

    membership_prob: npt.ArrayLike
    likelihood: npt.ArrayLike

    def __post_init__(self) -> None:
        law = check_law(self.membership_prob)
        (table,) = check_probability(likelihood=self.likelihood)
        if table.ndim != 2 or len(table) != len(law) or table.shape[1] == 0:
            raise ValueError(f"likelihood must have shape ({len(law)}, num_outputs), got {table.shape}")
        if (np.abs(table.sum(axis=1) - 1) > _SUM_TOLERANCE).any():
            row = int(np.argmax(np.abs(table.sum(axis=1) - 1)))
            raise ValueError(f"every row of likelihood must sum to 1, row {row} sums to {table[row].sum()}")
        object.__setattr__(self, "membership_prob", law)
        object.__setattr__(self, "likelihood", table)

    @property
    def law(self) -> Floats:
        """Pr(M = m), shape (2^N,)."""
        return np.asarray(self.membership_prob)

    @property
    def table(self) -> Floats:
        """f(w | m), shape (2^N, num_outputs)."""
        return np.asarray(self.likelihood)

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.law).bit_length() - 1

    @cached_property
    def joint(self) -> Floats:
        """Pr(M = m, W = w), shape (2^N, num_outputs)."""
        return self.law[:, None] * self.table

    @property
    def prior_prob(self) -> Floats:
        """γ_i(1), shape (N,)."""
        return self.law @ membership_table(self.num_nodes)

    @property
    def prior_odds(self) -> Floats:
        """η_i, shape (N,)."""
        table = membership_table(self.num_nodes)
        return np.exp(log_ratio(self.law @ table, self.law @ ~table))

    @property
    def output_prob(self) -> Floats:
        """f_0(w), shape (num_outputs,)."""
        return self.joint.sum(axis=0)

    @cached_property
    def _joint_in(self) -> Floats:
        return membership_table(self.num_nodes).T @ self.joint

    @cached_property
    def _joint_out(self) -> Floats:
        return (~membership_table(self.num_nodes)).T @ self.joint

    def conditional_output_prob(self, node: int, membership: int) -> Floats:
        """f_i(w | m_i), shape (num_outputs,); NaN if that membership has probability 0."""
        joint = (self._joint_in if membership else self._joint_out)[node]
        with np.errstate(invalid="ignore"):
            return joint / joint.sum()

    @property
    def posterior_prob(self) -> Floats:
        """π_i(1 | w), shape (N, num_outputs); NaN for outputs that never come."""
        with np.errstate(invalid="ignore"):
            return self._joint_in / self.output_prob

    @property
    def posterior_log_odds(self) -> Floats:
        """Log π_i(1 | w)/π_i(0 | w), shape (N, num_outputs); NaN for outputs that never come."""
        return log_ratio(self._joint_in, self._joint_out)

    def error_pair(self, node: int, decision: npt.ArrayLike) -> ErrorPair:
        """Error rates of a decision rule (Definition 6); NaN given a membership of probability 0.

        Args:
            node: The node that is tested.
            decision: Probability of saying "member" for each output, shape (num_outputs,); 0 and 1 for a rule
                without chance.
        """
        (says_member,) = check_probability(decision=decision)
        return ErrorPair(
            alpha=_share(self._joint_out[node], says_member),
            beta=_share(self._joint_in[node], 1 - says_member),
        )

    def smallest_cost(self, node: int, cost_false_positive: float = 1.0, cost_false_negative: float = 1.0) -> float:
        """Expected cost of the best attack on a node; with unit costs, its probability of a wrong decision."""
        says_member = bayes_decision(self.posterior_log_odds[node], cost_false_positive, cost_false_negative)
        wrong = np.where(
            says_member,
            cost_false_positive * self._joint_out[node],
            cost_false_negative * self._joint_in[node],
        )
        return float(wrong.sum())

    def post_process(self, channel: npt.ArrayLike) -> FiniteMechanism:
        """The mechanism whose output goes through a channel, rows Pr(z | w), shape (num_outputs, num_new_outputs)."""
        (rows,) = check_probability(channel=channel)
        return FiniteMechanism(self.law, _renormalise(self.table @ rows))

    def then(self, likelihood: npt.ArrayLike) -> FiniteMechanism:
        """This release, and then another on the same sample; the output is the pair.

        Args:
            likelihood: f(w' | m), shape (2^N, num_new); or, for a release that depends on the first output,
                f(w' | w, m), shape (2^N, num_outputs, num_new).
        """
        second = np.asarray(likelihood, dtype=np.float64)
        if second.ndim == 2:
            second = second[:, None, :]
        return FiniteMechanism(self.law, _renormalise((self.table[:, :, None] * second).reshape(len(self.law), -1)))

    def given_output(self, output: int) -> Floats:
        """Pr(M = m | W = w), shape (2^N,): the law that a later release on the same sample meets.

        Raises:
            ValueError: if that output never comes.
        """
        joint = self.joint[:, output]
        if joint.sum() == 0:
            raise ValueError(f"output must have positive probability, got output={output} of probability 0")
        return _normalised(joint)

    @staticmethod
    def in_any_of(*mechanisms: FiniteMechanism) -> FiniteMechanism:
        """Mechanisms on independent samples, all outputs seen; a node counts as in if it was in any sample (Prop. 5).

        Vectors that no combination of samples gives have probability 0; their likelihood, on which no Bayesian
        definition depends, is set to the marginal law of the outputs.

        Raises:
            ValueError: if there is no mechanism, or they have different numbers of nodes.
        """
        if len({mechanism.num_nodes for mechanism in mechanisms}) != 1:
            counts = [mechanism.num_nodes for mechanism in mechanisms]
            raise ValueError(f"mechanisms must be one or more with the same number of nodes, got {counts} nodes")
        return reduce(_union, mechanisms)


def _union(first: FiniteMechanism, second: FiniteMechanism) -> FiniteMechanism:
    size = len(first.law)
    joint = np.zeros((size, first.table.shape[1], second.table.shape[1]))
    for m_first in range(size):
        for m_second in range(size):
            joint[m_first | m_second] += first.joint[m_first][:, None] * second.joint[m_second][None, :]
    flat = joint.reshape(size, -1)
    law = flat.sum(axis=1)
    marginal = flat.sum(axis=0) / flat.sum()
    likelihood = np.where(law[:, None] > 0, flat / np.where(law > 0, law, 1)[:, None], marginal)
    return FiniteMechanism(law / law.sum(), _renormalise(likelihood))


def _renormalise(table: Floats) -> Floats:
    """Rows that sum to 1 up to rounding, made to do so; anything else is left for the constructor to refuse."""
    sums = table.sum(axis=1, keepdims=True)
    is_near = np.abs(sums - 1) < _SUM_TOLERANCE
    return np.where(is_near, np.minimum(table / np.where(is_near, sums, 1.0), 1.0), table)


def _share(masses: Floats, chosen: Floats) -> float:
    """The chosen part of the total: never above 1, and exactly 0 or 1 if nothing or all is chosen.

    A test that never varies has error rates 0 and 1; one rounding off would make it look infinitely informative.
    """
    taken, left = masses @ chosen, masses @ (1 - chosen)
    with np.errstate(invalid="ignore"):
        return float(np.divide(taken, taken + left))


def _normalised(weights: Floats) -> Floats:
    law: Floats = weights / weights.sum()
    return law
