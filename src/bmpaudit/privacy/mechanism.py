"""Mechanisms small enough to enumerate: the referee of every statement about privacy; and the tightest ε of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from bmpaudit.privacy.epsilon import EpsilonPair, Floats, check_probability, log_ratio
from bmpaudit.privacy.membership_law import check_law, membership_table
from bmpaudit.privacy.region import bayes_decision

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ErrorPair:
    """Error rates of a membership test (Definition 6)."""

    alpha: float  # type I: the test says member of a non-member
    beta: float  # type II: the test says non-member of a member


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
    def joint_in(self) -> Floats:
        """Pr(M_i = 1, W = w), shape (N, num_outputs)."""
        return membership_table(self.num_nodes).T @ self.joint

    @cached_property
    def joint_out(self) -> Floats:
        """Pr(M_i = 0, W = w), shape (N, num_outputs)."""
        return (~membership_table(self.num_nodes)).T @ self.joint

    @property
    def posterior_prob(self) -> Floats:
        """π_i(1 | w), shape (N, num_outputs); NaN for outputs that never come."""
        with np.errstate(invalid="ignore"):
            return self.joint_in / self.output_prob

    @property
    def posterior_log_odds(self) -> Floats:
        """Log π_i(1 | w)/π_i(0 | w), shape (N, num_outputs); NaN for outputs that never come."""
        return log_ratio(self.joint_in, self.joint_out)

    def error_pair(self, node: int, decision: npt.ArrayLike) -> ErrorPair:
        """Error rates of a decision rule (Definition 6); NaN given a membership of probability 0.

        Args:
            node: The node that is tested.
            decision: Probability of saying "member" for each output, shape (num_outputs,); 0 and 1 for a rule
                without chance.
        """
        (says_member,) = check_probability(decision=decision)
        return ErrorPair(
            alpha=_share(self.joint_out[node], says_member),
            beta=_share(self.joint_in[node], 1 - says_member),
        )

    def smallest_cost(self, node: int, cost_false_positive: float = 1.0, cost_false_negative: float = 1.0) -> float:
        """Expected cost of the best attack on a node; with unit costs, its probability of a wrong decision."""
        says_member = bayes_decision(self.posterior_log_odds[node], cost_false_positive, cost_false_negative)
        by_member, by_non_member = cost_false_positive * self.joint_out[node], cost_false_negative * self.joint_in[node]
        return float(np.where(says_member, by_member, by_non_member).sum())

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
        """Pr(M = m | W = w), shape (2^N,): the law that a later release on the same sample meets."""
        joint = self.joint[:, output]
        if joint.sum() == 0:
            raise ValueError(f"output must have positive probability, got output={output} of probability 0")
        law: Floats = joint / joint.sum()
        return law

    @staticmethod
    def in_any_of(*mechanisms: FiniteMechanism) -> FiniteMechanism:
        """Mechanisms on independent samples, all outputs seen; a node counts as in if it was in any sample (Prop. 5).

        Vectors that no combination of samples gives have probability 0; their likelihood, on which no Bayesian
        definition depends, is set to the marginal law of the outputs.
        """
        if len({mechanism.num_nodes for mechanism in mechanisms}) != 1:
            counts = [mechanism.num_nodes for mechanism in mechanisms]
            raise ValueError(f"mechanisms must be one or more with the same number of nodes, got {counts} nodes")
        return reduce(_union, mechanisms)


@dataclass(frozen=True)
class PrivacyLevels:
    """The smallest ε of each definition; ∞ where there is none, -∞ where nothing is constrained.

    The two sides of BMP and BMDP are separate conditions, so the tightest pair is unique and its components are the
    tightest one-sided parameters: `bmp.right` is that of BMP-R, `bmp.left` that of BMP-L, and so for BMDP.
    """

    mp: float  # Definition 1
    mdp: float  # Definition 2
    bmp: EpsilonPair[float]  # Definitions 3 and 4
    bmdp: EpsilonPair[float]  # Definition 5


def privacy_levels(mechanism: FiniteMechanism) -> PrivacyLevels:
    """Enumerates a mechanism.

    Conventions: outputs with f_0(w) = 0 do not count; 0/0 constrains nothing and x/0 is ∞; MP ignores a node whose
    membership is certain; BMDP ranges over the m_{-i} that have positive posterior probability, MDP over all.
    """
    seen = mechanism.output_prob > 0
    odds = mechanism.posterior_log_odds[:, seen]
    log_prior_odds = np.log(mechanism.prior_odds, where=mechanism.prior_odds > 0, out=np.full(len(odds), -np.inf))
    is_uncertain = np.isfinite(log_prior_odds)
    likelihood_ratios = odds[is_uncertain] - log_prior_odds[is_uncertain, None]

    table = membership_table(mechanism.num_nodes)
    neighbours_in = [np.flatnonzero(is_in) for is_in in table.T]
    neighbours_out = [rows - (1 << node) for node, rows in enumerate(neighbours_in)]
    differential = _paired(mechanism.table[:, seen], neighbours_in, neighbours_out)
    conditional_odds = _paired(mechanism.joint[:, seen], neighbours_in, neighbours_out)
    return PrivacyLevels(
        mp=_largest(np.abs(likelihood_ratios)),
        mdp=_largest(np.abs(differential)),
        bmp=EpsilonPair(left=_largest(-odds), right=_largest(odds)),
        bmdp=EpsilonPair(left=_largest(-conditional_odds), right=_largest(conditional_odds)),
    )


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


def _paired(values: Floats, rows_in: list[np.ndarray], rows_out: list[np.ndarray]) -> Floats:
    """Log-ratios of the rows that differ in one membership, for every node."""
    return np.stack([log_ratio(values[m_in], values[m_out]) for m_in, m_out in zip(rows_in, rows_out, strict=True)])


def _largest(values: Floats) -> float:
    """The maximum, without the NaN of 0/0."""
    return float(np.max(values, initial=-np.inf, where=~np.isnan(values)))
