"""What follows from a guarantee: in another definition (Propositions 1 and 3), and of several releases (4 and 5).

Each rule of composition is named for the condition it needs.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit

from bmpaudit.privacy.epsilon import (
    EpsilonPair,
    Floats,
    check_epsilon,
    check_non_negative,
    log_prior_odds,
    sum_where_certain_wins,
)

_TINY = 1e-17


def prior_floor(prior_odds: npt.ArrayLike) -> EpsilonPair[float]:
    """Prop. 1: no mechanism on this sampler is (ε_L, ε_R)-BMP below (-log η_min, log η_max).

    >>> prior_floor([1.0, 0.25])
    EpsilonPair(left=1.3862943611198906, right=0.0)
    """
    log_odds = log_prior_odds(prior_odds)
    return EpsilonPair(left=-float(log_odds.min()) + 0.0, right=float(log_odds.max()) + 0.0)


def mp_to_bmp(epsilon: float, prior_odds: npt.ArrayLike) -> EpsilonPair[float]:
    """Prop. 3: ε-MP implies (ε - log η_min, ε + log η_max)-BMP.

    >>> mp_to_bmp(1.0, [1.0, 1.0])
    EpsilonPair(left=1.0, right=1.0)
    """
    check_epsilon(epsilon=epsilon)
    floor = prior_floor(prior_odds)
    left, right = (float(sum_where_certain_wins(epsilon, side)) for side in (floor.left, floor.right))
    return EpsilonPair(left, right)


def bmp_to_mp(epsilon_left: float, epsilon_right: float, prior_odds: npt.ArrayLike) -> float:
    """Prop. 3, the other way: (ε_L, ε_R)-BMP implies ε-MP with ε = max(ε_L + log η_max, ε_R - log η_min).

    A node whose membership is certain makes ε_L or ε_R infinite, and nothing follows.

    >>> bmp_to_mp(1.0, 1.0, [1.0, 1.0])
    1.0
    """
    check_epsilon(epsilon_left=epsilon_left, epsilon_right=epsilon_right)
    floor = prior_floor(prior_odds)
    pairs = ((floor.right, epsilon_left), (floor.left, epsilon_right))
    return max(float(sum_where_certain_wins(*pair)) for pair in pairs)


def mdp_to_mp(epsilon: float, distance: int = 1) -> float:
    """ε-MDP implies D·ε-MP.

    The paper says that MDP is the stronger of the two; with dependent memberships it is so only up to the factor D.

    Args:
        epsilon: Of MDP, at least 0.
        distance: D from `membership_distance`: 1 for independent memberships (`Bernoulli`), 2 for sampling without
            replacement (`Uniform`, `Stratified`).

    >>> mdp_to_mp(0.5, distance=2)
    1.0
    """
    check_epsilon(epsilon=epsilon)
    if epsilon < 0 or distance < 1:
        raise ValueError(f"epsilon must be ≥ 0 and distance ≥ 1, got epsilon={epsilon}, distance={distance}")
    return epsilon * distance


def bmp_to_positive_pmp(epsilon_right: npt.ArrayLike, prior_odds: npt.ArrayLike) -> Floats:
    """ε_R-BMP-R as the factor of positive membership privacy (Li et al. 2013), node by node.

    The smallest c ≥ 1 that BMP-R guarantees with Pr(in | w) ≤ c·Pr(in) and Pr(out | w) ≥ Pr(out)/c. If all priors
    are equal the two definitions are one-to-one.

    >>> round(float(bmp_to_positive_pmp(1.0, prior_odds=1.0)), 4)
    1.8591
    """
    (epsilon,) = check_epsilon(epsilon_right=epsilon_right)
    log_odds = log_prior_odds(prior_odds)
    with np.errstate(over="ignore", invalid="ignore"):
        by_membership = np.exp(log_expit(epsilon) - log_expit(log_odds))
        by_non_membership = np.exp(log_expit(-log_odds) - log_expit(-epsilon))
    # About a node whose membership is certain nothing more can be learnt.
    factor = np.where(np.isinf(log_odds), 1.0, np.maximum(by_membership, by_non_membership))
    return np.maximum(factor, 1.0)


def compose_mdp(epsilons: npt.ArrayLike) -> float:
    """Releases on the same sample, each ε_t-MDP whatever came before, are together Σε_t-MDP.

    With `mdp_to_mp` and `mp_to_bmp` this bounds BMP for every sampler; for samplers without replacement it is the
    only one of these rules that says anything (their conditional priors are 0 or 1, so BMDP is infinite).

    >>> compose_mdp([0.5, 0.25])
    0.75
    """
    return _sum_of_non_negative(epsilons)


def compose_bmdp_with_mdp(epsilon_left: float, epsilon_right: float, epsilons: npt.ArrayLike) -> EpsilonPair[float]:
    """An (ε_L, ε_R)-BMDP release, then releases on the same sample that are each ε_t-MDP whatever came before.

    Together they are (ε_L + Σε_t, ε_R + Σε_t)-BMDP, and therefore BMP. Always holds.

    >>> compose_bmdp_with_mdp(1.0, 2.0, [0.5, 0.25])
    EpsilonPair(left=1.75, right=2.75)
    """
    check_epsilon(epsilon_left=epsilon_left, epsilon_right=epsilon_right)
    spent = _sum_of_non_negative(epsilons)
    # -∞ says that every membership is certain, which no release changes.
    left, right = (float(sum_where_certain_wins(spent, side)) for side in (epsilon_left, epsilon_right))
    return EpsilonPair(left, right)


def compose_bmp_with_conditional_mp(
    epsilon_left: float, epsilon_right: float, epsilons: npt.ArrayLike
) -> EpsilonPair[float]:
    """Prop. 4 with the condition it needs: an (ε_L, ε_R)-BMP release, then releases that are ε_t-MP *given the past*.

    Given the past means: MP of release t under the law of M that remains after the outputs w_0, …, w_{t-1} are known,
    for each value they can have. MP under the sampler's own law is not enough (docs/theory.md has the
    counterexample); nor is MDP, unless the remaining law keeps memberships independent.

    >>> compose_bmp_with_conditional_mp(1.0, 2.0, [0.5])
    EpsilonPair(left=1.5, right=2.5)
    """
    return compose_bmdp_with_mdp(epsilon_left, epsilon_right, epsilons)


def compose_independent_samples(epsilon_left: npt.ArrayLike, epsilon_right: npt.ArrayLike) -> EpsilonPair[float]:
    """Prop. 5: T mechanisms on independent samples; a node counts as in if it was in any of them.

    With μ_t = 1/(1 + e^{-ε_L,t}) and κ_t = 1/(1 + e^{-ε_R,t}) the bounds of the paper become
    ε_L = -log(exp(Σ softplus(-ε_L,t)) - 1) and ε_R = log(exp(Σ softplus(ε_R,t)) - 1), which never cancel.

    Args:
        epsilon_left: ε_L of each mechanism, shape (T,).
        epsilon_right: ε_R of each mechanism, shape (T,).

    >>> composed = compose_independent_samples([0.0, 0.0], [0.0, 0.0])
    >>> round(composed.left, 4), round(composed.right, 4)
    (-1.0986, 1.0986)
    """
    left, right = check_epsilon(epsilon_left=epsilon_left, epsilon_right=epsilon_right)
    if left.ndim != 1 or left.shape != right.shape or len(left) == 0:
        raise ValueError(
            f"epsilon_left and epsilon_right must be lists of one length ≥ 1, got shapes {left.shape}, {right.shape}"
        )
    return EpsilonPair(left=-_log_expm1_of_sum(-left), right=_log_expm1_of_sum(right))


def _sum_of_non_negative(epsilons: npt.ArrayLike) -> float:
    (values,) = check_non_negative(epsilons=epsilons)
    return float(values.sum())


def _log_expm1_of_sum(x: Floats) -> float:
    """log(e^S - 1) for S = Σ softplus(x), without overflow, and without underflow where S is tiny."""
    total = float(np.logaddexp(0, x).sum())
    if total > 1:
        return total + float(np.log1p(-np.exp(-total)))
    if total > _TINY:
        return float(np.log(np.expm1(total)))
    # softplus(x) = e^x and e^S - 1 = S, both up to a relative error of the order of S.
    return float(np.logaddexp.reduce(x))
