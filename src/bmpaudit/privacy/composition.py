"""Several releases (Propositions 4 and 5), each rule named for the condition it needs."""

import numpy as np
import numpy.typing as npt

from bmpaudit.privacy.epsilon import EpsilonPair, Floats, check_epsilon

_TINY = 1e-17


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
    return EpsilonPair(
        left=epsilon_left if np.isinf(epsilon_left) else epsilon_left + spent,
        right=epsilon_right if np.isinf(epsilon_right) else epsilon_right + spent,
    )


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
    (values,) = check_epsilon(epsilons=epsilons)
    if (values < 0).any():
        raise ValueError(f"the ε of MP and MDP must be ≥ 0, got {values.min()}")
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
