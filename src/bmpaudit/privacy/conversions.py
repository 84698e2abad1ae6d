"""From one definition of membership privacy to another (Propositions 1 and 3)."""

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit

from bmpaudit.privacy.epsilon import EpsilonPair, Floats, check_epsilon, log_prior_odds


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
    return EpsilonPair(left=_infinity_wins(epsilon, floor.left), right=_infinity_wins(epsilon, floor.right))


def bmp_to_mp(epsilon_left: float, epsilon_right: float, prior_odds: npt.ArrayLike) -> float:
    """Prop. 3, the other way: (ε_L, ε_R)-BMP implies ε-MP with ε = max(ε_L + log η_max, ε_R - log η_min).

    A node whose membership is certain makes ε_L or ε_R infinite, and nothing follows.

    >>> bmp_to_mp(1.0, 1.0, [1.0, 1.0])
    1.0
    """
    check_epsilon(epsilon_left=epsilon_left, epsilon_right=epsilon_right)
    floor = prior_floor(prior_odds)
    return max(_infinity_wins(floor.right, epsilon_left), _infinity_wins(floor.left, epsilon_right))


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


def _infinity_wins(term: float, decisive: float) -> float:
    """Term + decisive, where an infinite `decisive` wins over an opposite infinity."""
    return decisive if np.isinf(decisive) else term + decisive
