"""The definitions that Appendix A compares BMP with, on finite mechanisms.

Each is taken over the one sampling law of the mechanism (Li et al. take a family of laws), for node membership as the
secret. docs/theory.md says how they relate; the tests check it.
"""

from itertools import combinations

import numpy as np

from bmpaudit.privacy.epsilon import Floats, log_ratio
from bmpaudit.privacy.mechanism import FiniteMechanism
from bmpaudit.privacy.membership_law import membership_table


def positive_pmp_factor(mechanism: FiniteMechanism) -> float:
    """Positive membership privacy (Li et al. 2013): the smallest c with Pr(in|w) ≤ c·Pr(in), Pr(out|w) ≥ Pr(out)/c."""
    member, non_member = _log_belief_changes(mechanism)
    return float(np.exp(np.max(np.fmax(member, -non_member))))


def negative_pmp_factor(mechanism: FiniteMechanism) -> float:
    """Negative membership privacy (Li et al. 2013): the same with in and out exchanged."""
    member, non_member = _log_belief_changes(mechanism)
    return float(np.exp(np.max(np.fmax(-member, non_member))))


def differential_identifiability(mechanism: FiniteMechanism) -> float:
    """Differential identifiability (Lee and Clifton 2012): the largest posterior ρ of who the last member is.

    The adversary knows all members but one, and that there is exactly one more; ρ is the highest probability that
    some output lets them give to one of the remaining nodes.
    """
    table = membership_table(mechanism.num_nodes)
    seen = mechanism.output_prob > 0
    largest = 0.0
    for known in range(len(mechanism.law)):
        candidates = [known | 1 << node for node in range(mechanism.num_nodes) if not table[known, node]]
        joint = mechanism.joint[candidates][:, seen]
        total = joint.sum(axis=0) if candidates else np.zeros(0)
        if (total > 0).any():
            largest = max(largest, float(np.max(joint[:, total > 0] / total[total > 0])))
    return largest


def bayesian_dp_epsilon(mechanism: FiniteMechanism) -> float:
    """Bayesian DP (Yang et al. 2015): MP against every adversary who already knows some other memberships.

    The largest |log Pr(w | M_i = 1, M_K = x) / Pr(w | M_i = 0, M_K = x)| over nodes i, sets K of other nodes and
    values x that are possible with both. K = ∅ alone is MP.
    """
    table = membership_table(mechanism.num_nodes)
    largest = 0.0
    for node in range(mechanism.num_nodes):
        others = [other for other in range(mechanism.num_nodes) if other != node]
        for size in range(len(others) + 1):
            for known in combinations(others, size):
                for values in membership_table(size):
                    matches = (table[:, list(known)] == values).all(axis=1)
                    joint_in = mechanism.joint[matches & table[:, node]].sum(axis=0)
                    joint_out = mechanism.joint[matches & ~table[:, node]].sum(axis=0)
                    if joint_in.sum() > 0 and joint_out.sum() > 0:
                        ratios = np.abs(log_ratio(joint_in / joint_in.sum(), joint_out / joint_out.sum()))
                        largest = max(largest, float(np.max(ratios, initial=0.0, where=~np.isnan(ratios))))
    return largest


def bayesian_dp_delta(mechanism: FiniteMechanism, epsilon: float) -> float:
    """Bayesian DP (Triastcyn and Faltings 2020): δ = the chance that the privacy loss exceeds ε.

    The loss log f(w | m)/f(w | m with node i flipped), with the output w and the membership of i drawn from the
    mechanism given the other memberships, for the worst i and the worst possible others.
    """
    worst = 0.0
    for node in range(mechanism.num_nodes):
        for m_out in np.flatnonzero(~membership_table(mechanism.num_nodes)[:, node]):
            pair = [m_out, m_out | 1 << node]
            weight = mechanism.law[pair]
            if weight.sum() == 0:
                continue
            loss = log_ratio(mechanism.table[pair], mechanism.table[pair[::-1]])
            exceeds = np.where(np.isnan(loss), -np.inf, loss) > epsilon
            worst = max(worst, float((weight[:, None] * mechanism.table[pair] * exceeds).sum() / weight.sum()))
    return worst


def pac_membership_success(mechanism: FiniteMechanism) -> float:
    """PAC membership privacy (Xiao and Devadas 2023): the best success rate of any guess of one node's membership.

    One minus the smallest probability of a wrong decision, which Theorem 7 bounds from below.
    """
    return 1.0 - min(mechanism.smallest_cost(node) for node in range(mechanism.num_nodes))


def _log_belief_changes(mechanism: FiniteMechanism) -> tuple[Floats, Floats]:
    """Log π_i(1|w)/γ_i(1) and log π_i(0|w)/γ_i(0) for the outputs that come; NaN for a membership that cannot be."""
    is_in = membership_table(mechanism.num_nodes)
    seen = mechanism.output_prob > 0
    member, non_member = (
        log_ratio((rows.T @ mechanism.joint[:, seen]) / mechanism.output_prob[seen], (mechanism.law @ rows)[:, None])
        for rows in (is_in, ~is_in)
    )
    return member, non_member
