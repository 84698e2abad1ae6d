"""The definitions with a δ: each bounds what is in excess of ε by a probability; and what a proof guarantees.

docs/guarantees.md has the proofs.

The excess of P over e^ε·Q is the hockey-stick divergence H_ε(P‖Q) = Σ_w max(P(w) - e^ε·Q(w), 0), the largest
P(O) - e^ε·Q(O) over all sets of outputs O. With δ = 0 each definition is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bmpaudit.privacy.conversions import bmp_to_mp, mdp_to_mp, mp_to_bmp
from bmpaudit.privacy.epsilon import Floats, check_epsilon, check_non_negative, check_probability, log_prior_odds
from bmpaudit.privacy.mechanism import FiniteMechanism
from bmpaudit.privacy.membership_law import membership_table


@dataclass(frozen=True)
class ApproximateMP:
    """(ε, δ)-MP: f_i(O | 1) ≤ e^ε·f_i(O | 0) + δ for every node i and set of outputs O, and vice versa."""

    epsilon: float
    delta: float  # 1 says nothing

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
    """

    left: float  # ε_L
    right: float  # ε_R
    delta: float  # 1 says nothing


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
    check_non_negative(epsilon=epsilon)
    table = membership_table(mechanism.num_nodes)
    worst = 0.0
    for node, is_in in enumerate(table.T):
        rows_in = np.flatnonzero(is_in)
        member, non_member = mechanism.table[rows_in], mechanism.table[rows_in - (1 << node)]
        worst = max(worst, float(_both_ways(member, non_member, epsilon).max()))
    return worst


def mp_delta(mechanism: FiniteMechanism, epsilon: float) -> float:
    """The smallest δ for which a mechanism is (ε, δ)-MP; a node whose membership is certain does not count."""
    check_non_negative(epsilon=epsilon)
    member, non_member = mechanism.joint_in, mechanism.joint_out
    prior_in, prior_out = member.sum(axis=1), non_member.sum(axis=1)
    is_uncertain = (prior_in > 0) & (prior_out > 0)
    if not is_uncertain.any():
        return 0.0
    given_in = member[is_uncertain] / prior_in[is_uncertain, None]
    given_out = non_member[is_uncertain] / prior_out[is_uncertain, None]
    return float(_both_ways(given_in, given_out, epsilon).max())


def bmp_delta(mechanism: FiniteMechanism, epsilon_left: float, epsilon_right: float) -> float:
    """The smallest δ for which a mechanism is (ε_L, ε_R, δ)-BMP."""
    right = hockey_stick(mechanism.joint_in, mechanism.joint_out, epsilon_right)
    left = hockey_stick(mechanism.joint_out, mechanism.joint_in, epsilon_left)
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


def non_empty_mdp_to_mp(epsilon: float, delta: float, prior_odds: npt.ArrayLike) -> ApproximateMP:
    """(ε, δ)-MDP with independent memberships, where a sample without nodes gives no output: what follows for MP.

    That there is an output says that the sample is not empty. With h = max_i Π_{j≠i} 1/(1 + η_j·e^{-ε}) the output and
    its existence together are (ε - log(1 - h), δ·(1 + N·h/(1 - h)))-MP, and so is the output of non-empty samples
    alone. They move no odds down by more than e^ε and δ (docs/guarantees.md). At ε = 0, h is the largest probability
    that all other nodes are out.

    Args:
        epsilon: ε of MDP, at least 0.
        delta: δ of MDP.
        prior_odds: η of all nodes, shape (N,), samples without nodes included; or lower limits of them.

    >>> non_empty_mdp_to_mp(0.0, 0.0, [1.0, 1.0]).epsilon, round(non_empty_mdp_to_mp(1.0, 0.0, [1.0] * 100).epsilon, 4)
    (0.6931471805599453, 1.0)
    """
    check_non_negative(epsilon=epsilon)
    check_probability(delta=delta)
    log_odds = log_prior_odds(prior_odds)

    def existence(shift: float) -> float:
        """-log(1 - h) at this ε; the sum over all nodes but the likeliest, which is left out."""
        others = float(np.sort(np.logaddexp(0.0, log_odds - shift))[:-1].sum())
        return -float(np.log(-np.expm1(-others)))

    if np.isposinf(log_odds).any():  # a node that is always in: no sample is empty
        return ApproximateMP(epsilon, delta)
    with np.errstate(divide="ignore", over="ignore"):
        # The second is never less, but for numbers too small to be told from 0.
        given_away = min(existence(epsilon), epsilon + existence(0.0))
        grown = delta and delta * (1.0 + len(log_odds) * np.expm1(given_away))
    return ApproximateMP(epsilon + given_away, float(min(1.0, grown)))


def approximate_mp_to_bmp(epsilon: float, delta: float, prior_odds: npt.ArrayLike) -> ApproximateBMP:
    """(ε, δ)-MP implies (ε - log η_min, ε + log η_max, δ·max_i max(γ_i(0), γ_i(1)))-BMP.

    >>> approximate_mp_to_bmp(1.0, 1e-6, [1.0, 1.0])
    ApproximateBMP(left=1.0, right=1.0, delta=5e-07)
    """
    check_probability(delta=delta)
    pair = mp_to_bmp(epsilon, prior_odds)
    likeliest = float(np.max(expit(np.abs(log_prior_odds(prior_odds)))))
    return ApproximateBMP(pair.left, pair.right, delta * likeliest)


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


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-MDP by a proof, and the sampler it is used with.

    MDP compares samples that differ in one node, added or removed. What it says of one node's membership depends on
    the sampler through D alone: where a sample of fixed size replaces a node, D is 2.

    Attributes:
        mechanism: What gives the guarantee, such as "PrivateSGC".
        epsilon: ε of MDP, at least 0.
        delta: δ of MDP; 0 for a pure guarantee.
        distance: D, how many memberships may change with one (`membership_distance`), or an upper bound on it.

    >>> guarantee = Guarantee("PrivateSGC", epsilon=0.5, distance=2)
    >>> guarantee.mp
    ApproximateMP(epsilon=1.0, delta=0.0)
    >>> print(guarantee.sentence(prior_odds=1 / 3))
    PrivateSGC is 0.5-MDP. With this sampler up to 2 memberships change together, so it is 1-MP and (2.1, -0.0986)-BMP.
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0
    distance: int = 1

    def __post_init__(self) -> None:
        check_probability(delta=self.delta)
        mdp_to_mp(self.epsilon, self.distance)  # refuses what they cannot be

    def repeated(self, times: int) -> Guarantee:
        """The guarantee of several models that are trained independently on the same sample (basic composition).

        >>> Guarantee("PrivateSGC", epsilon=0.5).repeated(3)
        Guarantee(mechanism='PrivateSGC, 3 times', epsilon=1.5, delta=0.0, distance=1)
        """
        if times == 1:
            return self
        name = f"{self.mechanism}, {times} times"
        return replace(self, mechanism=name, epsilon=times * self.epsilon, delta=min(times * self.delta, 1.0))

    @property
    def mp(self) -> ApproximateMP:
        """The MP that follows on this sampler."""
        return approximate_mdp_to_mp(self.epsilon, self.delta, self.distance)

    def bmp(self, prior_odds: npt.ArrayLike) -> ApproximateBMP:
        """The BMP that follows for nodes with these prior odds η."""
        return approximate_mp_to_bmp(self.mp.epsilon, self.mp.delta, prior_odds)

    def sentence(self, prior_odds: npt.ArrayLike) -> str:
        """The guarantee and what follows, in words."""
        mp, bmp = self.mp, self.bmp(prior_odds)
        together = f"up to {self.distance:,} memberships change together"
        return (
            f"{self.mechanism} is {_level(self.epsilon, delta=self.delta)}-MDP. With this sampler "
            f"{'memberships are independent' if self.distance == 1 else together}, so it is "
            f"{_level(mp.epsilon, delta=mp.delta)}-MP and {_level(bmp.left, bmp.right, delta=bmp.delta)}-BMP."
        )


def _both_ways(first: Floats, second: Floats, epsilon: float) -> Floats:
    return np.maximum(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))


def _level(*epsilons: float, delta: float) -> str:
    values = [f"{epsilon:.3g}" for epsilon in epsilons] + ([f"{delta:.2g}"] if delta > 0 else [])
    return values[0] if len(values) == 1 else f"({', '.join(values)})"
