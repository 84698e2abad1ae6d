"""The definitions with a δ: each bounds what is in excess of ε by a probability (docs/guarantees.md has the proofs).

The excess of P over e^ε·Q is the hockey-stick divergence H_ε(P‖Q) = Σ_w max(P(w) - e^ε·Q(w), 0), the largest
P(O) - e^ε·Q(O) over all sets of outputs O. With δ = 0 each definition is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bmpaudit.privacy.conversions import bmp_to_mp, mdp_to_mp, mp_to_bmp
from bmpaudit.privacy.epsilon import Floats, check_epsilon, check_probability, log_prior_odds
from bmpaudit.privacy.mechanism import FiniteMechanism
from bmpaudit.privacy.membership_law import membership_table


@dataclass(frozen=True)
class ApproximateMP:
    """Parameters of (ε, δ)-MP: f_i(O | 1) ≤ e^ε·f_i(O | 0) + δ for every node i and set of outputs O, and vice versa.

    Attributes:
        epsilon: ε.
        delta: δ; 1 says nothing.
    """

    epsilon: float
    delta: float

    @property
    def corners(self) -> Floats:
        """Corners (α, β) of the error rates that a test of any node can have, in order, shape (8, 2).

        1 - β ≤ e^ε·α + δ, 1 - α ≤ e^ε·β + δ, and the same of the opposite test; with δ = 0 four corners coincide with
        others, and the region is R_1(ε, ε), which is R_η(ε - log η, ε + log η) for every η.
        """
        spared = 1.0 - self.delta
        least = spared * float(expit(-self.epsilon))
        left = [(0.0, 1.0), (0.0, spared), (least, least), (spared, 0.0)]
        return np.array(left + [(1.0 - alpha, 1.0 - beta) for alpha, beta in left])


@dataclass(frozen=True)
class ApproximateBMP:
    """Parameters of (ε_L, ε_R, δ)-BMP, a bound on the joint law of a membership and the output.

    Pr(M_i = 1, W ∈ O) ≤ e^{ε_R}·Pr(M_i = 0, W ∈ O) + δ and Pr(M_i = 0, W ∈ O) ≤ e^{ε_L}·Pr(M_i = 1, W ∈ O) + δ for
    every node i and set of outputs O.

    Attributes:
        left: ε_L.
        right: ε_R.
        delta: δ; 1 says nothing.
    """

    left: float
    right: float
    delta: float


def hockey_stick(first: npt.ArrayLike, second: npt.ArrayLike, epsilon: float) -> Floats:
    """H_ε = Σ_w max(P(w) - e^ε·Q(w), 0) of two measures, along the last axis; 0 at ε = ∞, which imposes nothing.

    >>> round(float(hockey_stick([0.75, 0.25], [0.25, 0.75], 0.0)), 12)
    0.5
    """
    check_epsilon(epsilon=epsilon)
    p, q = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if epsilon == np.inf:
        return np.zeros(np.broadcast_shapes(p.shape, q.shape)[:-1])
    with np.errstate(over="ignore", invalid="ignore"):
        allowed = np.where(q > 0, np.exp(epsilon) * q, 0.0)
    excess: Floats = np.maximum(p - allowed, 0.0).sum(axis=-1)
    return excess


def mdp_delta(mechanism: FiniteMechanism, epsilon: float) -> float:
    """The smallest δ for which a mechanism is (ε, δ)-MDP: over all pairs of vectors that differ in one membership.

    All outputs count, also those that never come under the sampler: so it is closed under post-processing, which
    Definition 2 is not.
    """
    _check_non_negative(epsilon)
    table = membership_table(mechanism.num_nodes)
    worst = 0.0
    for node, is_in in enumerate(table.T):
        rows_in = np.flatnonzero(is_in)
        member, non_member = mechanism.table[rows_in], mechanism.table[rows_in - (1 << node)]
        worst = max(worst, float(_both_ways(member, non_member, epsilon).max()))
    return worst


def mp_delta(mechanism: FiniteMechanism, epsilon: float) -> float:
    """The smallest δ for which a mechanism is (ε, δ)-MP; a node whose membership is certain does not count."""
    _check_non_negative(epsilon)
    member, non_member = _joint_laws(mechanism)
    prior_in, prior_out = member.sum(axis=1), non_member.sum(axis=1)
    is_uncertain = (prior_in > 0) & (prior_out > 0)
    if not is_uncertain.any():
        return 0.0
    given_in = member[is_uncertain] / prior_in[is_uncertain, None]
    given_out = non_member[is_uncertain] / prior_out[is_uncertain, None]
    return float(_both_ways(given_in, given_out, epsilon).max())


def bmp_delta(mechanism: FiniteMechanism, epsilon_left: float, epsilon_right: float) -> float:
    """The smallest δ for which a mechanism is (ε_L, ε_R, δ)-BMP."""
    member, non_member = _joint_laws(mechanism)
    right = hockey_stick(member, non_member, epsilon_right)
    left = hockey_stick(non_member, member, epsilon_left)
    return float(np.maximum(left, right).max())


def approximate_mdp_to_mp(epsilon: float, delta: float, distance: int = 1) -> ApproximateMP:
    """(ε, δ)-MDP implies (D·ε, δ·(1 + e^ε + … + e^{(D-1)ε}))-MP: the δ grows by more than the factor D.

    Args:
        epsilon: ε of MDP, at least 0.
        delta: δ of MDP.
        distance: D from `membership_distance`, 1 for independent memberships.

    >>> approximate_mdp_to_mp(0.5, 1e-6, distance=1)
    ApproximateMP(epsilon=0.5, delta=1e-06)
    """
    check_probability(delta=delta)
    grown = mdp_to_mp(epsilon, distance)
    if delta == 0:
        return ApproximateMP(grown, 0.0)
    with np.errstate(over="ignore"):
        terms = distance if epsilon == 0 else np.expm1(grown) / np.expm1(epsilon)
    return ApproximateMP(grown, float(np.fmin(1.0, delta * terms)))


def approximate_mp_to_bmp(epsilon: float, delta: float, prior_odds: npt.ArrayLike) -> ApproximateBMP:
    """(ε, δ)-MP implies (ε - log η_min, ε + log η_max, δ·max_i max(γ_i(0), γ_i(1)))-BMP.

    >>> approximate_mp_to_bmp(1.0, 1e-6, [1.0, 1.0])
    ApproximateBMP(left=1.0, right=1.0, delta=5e-07)
    """
    check_probability(delta=delta)
    pair = mp_to_bmp(epsilon, prior_odds)
    return ApproximateBMP(pair.left, pair.right, delta * float(_likelier(prior_odds).max()))


def approximate_bmp_to_mp(
    epsilon_left: float, epsilon_right: float, delta: float, prior_odds: npt.ArrayLike
) -> ApproximateMP:
    """(ε_L, ε_R, δ)-BMP implies (ε, δ/min_i min(γ_i(0), γ_i(1)))-MP with the ε of `bmp_to_mp`.

    A δ as large as the rarest membership says nothing of MP: it allows to tell all about that node.

    >>> approximate_bmp_to_mp(1.0, 1.0, 5e-07, [1.0, 1.0])
    ApproximateMP(epsilon=1.0, delta=1e-06)
    """
    check_probability(delta=delta)
    epsilon = bmp_to_mp(epsilon_left, epsilon_right, prior_odds)
    rarest = float(np.min(expit(-np.abs(log_prior_odds(prior_odds)))))
    if delta == 0:
        return ApproximateMP(epsilon, 0.0)
    return ApproximateMP(epsilon, 1.0 if rarest <= delta else delta / rarest)


def _both_ways(first: Floats, second: Floats, epsilon: float) -> Floats:
    return np.maximum(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))


def _joint_laws(mechanism: FiniteMechanism) -> tuple[Floats, Floats]:
    """Pr(M_i = 1, W = w) and Pr(M_i = 0, W = w), each of shape (N, num_outputs)."""
    table = membership_table(mechanism.num_nodes)
    return table.T @ mechanism.joint, (~table).T @ mechanism.joint


def _likelier(prior_odds: npt.ArrayLike) -> Floats:
    """max(γ(0), γ(1)) of each node."""
    likelier: Floats = expit(np.abs(log_prior_odds(prior_odds)))
    return np.atleast_1d(likelier)


def _check_non_negative(epsilon: float) -> None:
    check_epsilon(epsilon=epsilon)
    if epsilon < 0:
        raise ValueError(f"the ε of MP and MDP must be ≥ 0, got {epsilon}")
