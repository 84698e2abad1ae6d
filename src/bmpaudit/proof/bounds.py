"""Fixed-sample bounds: what a number of correct guesses proves about ε.

All of them rest on the same facts. The challenged models are independent of each other and of everything the guessing
rule was made from: the models it was fitted on, the priors, the threshold. A guess is a function of the output of its
model. So given all outputs, guesses about different models are right or wrong independently, each with the posterior
probability that the definition of privacy bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.special

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.errors import InputError
from bmpaudit.proof import poisson_binomial

PRECISION = 1e-6  # of a bound found by bisection
QUICK_PRECISION = 1e-3  # of one that only serves to choose
MIN_FAILURE_PROB = 1e-9  # far above rounding in a tail probability
LARGEST_EPSILON = 700.0  # exp(ε) is a number


def check_level(level: float) -> float:
    """The probability 1 - level that a bound may fail with.

    Raises:
        InputError: unless level is in (0, 1 - 1e-9].
    """
    if not 0 < level <= 1 - MIN_FAILURE_PROB:
        raise InputError(f"level must be in (0, 1 - 1e-9], got level={level}")
    return 1 - level


def epsilon_bound(num_hits: int, num_guesses: int, level: float = 0.95) -> float | None:
    """The lower bound on ε_R that C correct guesses of members out of G prove; None if they prove nothing.

    For ε_L, count correct guesses of non-members. One guess, or none, per challenged model for BMP; any number of
    guesses per model for BMDP.

    Formal guarantee: if the mechanism is ε-BMP-R, the bound exceeds ε with probability at most 1 - level, whatever the
    dependence between memberships, whatever the priors, and however the nodes were chosen from the outputs.

    Proof for BMP. Let κ = σ(ε) = 1/(1 + e^-ε). Given the outputs w_1, w_2, … and the rule, the guessed models and nodes
    are fixed, so is G, and memberships of different models are independent. The guess "node i is in model j" is right
    with probability Pr(M_i = 1 | w_j) ≤ κ (Definition 4). Hence C is a sum of G independent indicators of probability
    at most κ, stochastically dominated by B ~ Binomial(G, κ). The limit L(C) = BetaInv(a; C, G - C + 1) rises in C and
    Pr(L(B) > κ) ≤ a (Clopper and Pearson), so Pr(L(C) > κ) ≤ a. This holds given any outputs, so also without the
    condition. logit is increasing and logit(κ) = ε. ∎

    Proof for BMDP. Number the guesses of one model; let F be the output and the earlier memberships guessed. Averaging
    over all other memberships, Pr(M_i = 1 | F) = E[Pr(M_i = 1 | M_-i, w) | F] ≤ κ (Definition 5). So each guess is
    right with conditional probability at most κ given the earlier ones, and by induction C is dominated by
    Binomial(G, κ). ∎

    What it does not prove: a low bound does not show privacy, as a better attack may prove more. With several guesses
    per model nothing follows for BMP (see `mean_bound`); and BMDP's ε is infinite for samplers of fixed size whatever
    the model, as all other memberships give away the last.

    Args:
        num_hits: Number of correct guesses, C.
        num_guesses: Number of guesses, G.
        level: Confidence level.

    Raises:
        InputError: if the counts or the level are impossible.

    >>> round(epsilon_bound(500, 500), 3), epsilon_bound(0, 500)
    (5.114, None)
    """
    failure_prob = check_level(level)
    _check_counts(num_hits, num_guesses)
    if num_hits == 0:
        return None
    # From the miss rate, which keeps its digits when it is small.
    misses = float(scipy.special.betainccinv(num_guesses - num_hits + 1, num_hits, failure_prob))
    return math.log1p(-misses) - math.log(misses) if misses < 1 else None


def most_provable(num_guesses: int, level: float = 0.95) -> float:
    """The bound on ε_R that so many guesses prove if all of them are right; -∞ without any.

    >>> round(most_provable(500), 3)
    5.114
    """
    bound = epsilon_bound(num_guesses, num_guesses, level)
    return -math.inf if bound is None else bound


def guesses_needed(epsilon: float, level: float = 0.95) -> int:
    """The smallest number of guesses that prove a bound of ε on ε_R if all of them are right.

    >>> guesses_needed(5.0), guesses_needed(8.0), most_provable(guesses_needed(5.0)) >= 5.0
    (447, 8932, True)
    """
    failure_prob = check_level(level)
    # All right: κ^G ≤ a, with κ = σ(ε).
    return math.ceil(math.log(failure_prob) / -math.log1p(math.exp(-epsilon)))


def mp_bound(num_hits: int, log_odds: Floats, level: float = 0.95) -> float | None:
    """The lower bound on ε of MP that C correct guesses prove; None if they prove nothing.

    Formal guarantee: if the mechanism is ε-MP, the bound exceeds ε with probability at most 1 - level.

    Proof. By Definition 1 the posterior odds of the guessed statement are at most e^ε times its prior odds, so a guess
    of prior log-odds o_k is right with probability at most q_k = σ(ε + o_k), o_k being log η_i for "node i is in" and
    -log η_i for "node i is not in". Given the outputs, hits are independent (one guess per model), so C is dominated by
    the Poisson-binomial law with probabilities q(ε), and p(ε) = Pr(PB(q(ε)) ≥ C) is at most a with probability at most
    a. p rises in ε, so {ε: p(ε) > a} is a half-line; the bound lies at its lower end, and exceeds ε only if p(ε) ≤ a. ∎

    Upper limits in place of o_k raise every q_k(ε) and so lower the bound: with limits that hold together except with
    probability b, the bound holds with probability 1 - a - b.

    What it does not prove: as `epsilon_bound`. Guesses with several per model are not covered.

    Args:
        num_hits: Number of correct guesses, C.
        log_odds: Prior log-odds of each guessed statement, or upper limits of them, shape (G,).
        level: Confidence level 1 - a.

    Raises:
        InputError: if the counts, odds or level are impossible.

    >>> round(mp_bound(500, np.zeros(500)), 3), round(mp_bound(500, np.full(500, -1.1)), 3)
    (5.114, 6.214)
    """
    failure_prob = check_level(level)
    odds = np.asarray(log_odds, dtype=np.float64)
    _check_counts(num_hits, len(odds))
    if np.isnan(odds).any():
        raise InputError("log_odds must be numbers, got NaN")

    def is_rejected(epsilon: float) -> bool:
        tail = poisson_binomial.tail(scipy.special.expit(epsilon + odds), int(num_hits))
        return tail + poisson_binomial.ROUNDING <= failure_prob

    return largest_rejected(is_rejected)


def quick_mp_bounds(hit_rates: Floats, log_odds: Floats, num_guesses: Ints) -> Floats:
    """The ε of MP at which guesses of these prior log-odds would be right at a rate, at most; 0 if at any ε.

    For choosing a threshold. With the rate at its Clopper-Pearson limit this is never above `mp_bound` where that
    matters: by Hoeffding (1956) the tail of a Poisson-binomial law at C ≥ Σ q_k + 1 is at most that of the binomial law
    with the same mean.

    Args:
        hit_rates: Rates of B sets of guesses, shape (B,).
        log_odds: Prior log-odds of all guesses, shape (G,).
        num_guesses: How many of them, from the first on, each set has; at least 1, shape (B,).

    Returns:
        Shape (B,), as exact as choosing needs.
    """
    starts = np.cumsum(num_guesses) - num_guesses
    odds = log_odds[np.arange(num_guesses.sum()) - np.repeat(starts, num_guesses)]

    def is_rejected(epsilon: Floats) -> Flags:
        probs = scipy.special.expit(np.repeat(epsilon, num_guesses) + odds)
        result: Flags = np.add.reduceat(probs, starts) / num_guesses <= hit_rates
        return result

    low = np.zeros(len(hit_rates))
    is_open = is_rejected(low)
    high = np.where(is_open, 1.0, 0.0)
    while (is_open := is_open & is_rejected(high)).any():
        low = np.where(is_open, high, low)
        is_open &= high <= LARGEST_EPSILON
        high = np.where(is_open, 2 * high, high)
    while (is_wide := high - low > QUICK_PRECISION).any():
        middle = (low + high) / 2
        is_low = is_rejected(middle)
        low, high = np.where(is_wide & is_low, middle, low), np.where(is_wide & ~is_low, middle, high)
    return low


def largest_rejected(is_rejected: Callable[[float], bool]) -> float | None:
    """The end, from below, of the rejected half-line in ε ≥ 0; None if 0 is not rejected."""
    if not is_rejected(0.0):
        return None
    low, high = 0.0, 1.0
    while is_rejected(high):
        if high > LARGEST_EPSILON:
            return high
        low, high = high, 2 * high
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if is_rejected(middle) else (low, middle)
    return low


def _check_counts(num_hits: int, num_guesses: int) -> None:
    if num_guesses < 0 or not 0 <= num_hits <= num_guesses:
        raise InputError(f"num_hits must be in [0, num_guesses={num_guesses}], got num_hits={num_hits}")
