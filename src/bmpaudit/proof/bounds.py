"""What a number of correct guesses proves about ε: with a fixed number of models, at any time, several a model.

All bounds rest on the same facts. The challenged models are independent of each other and of everything the guessing
rule was made from: the models it was fitted on, the priors, the threshold. A guess is a function of the output of its
model. So given all outputs, guesses about different models are right or wrong independently, each with the posterior
probability that the definition of privacy bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.fft
import scipy.special

from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.values import AnyFloats, Flags, Floats, Ints

ROUNDING = 1e-12
"""Upper bound on the absolute error of `poisson_binomial_tail`."""
PRECISION = 1e-6  # of a bound found by bisection
QUICK_PRECISION = 1e-3  # of one that only serves to choose
MIN_FAILURE_PROB = 1e-9  # far above rounding in a tail probability
LARGEST_EPSILON = 700.0  # exp(ε) is a number


def check_level(level: float) -> float:
    """The probability 1 - level that a bound may fail with; `InputError` unless level is in (0, 1 - 1e-9]."""
    if not 0 < level <= 1 - MIN_FAILURE_PROB:
        raise InputError(f"level must be in (0, 1 - 1e-9], got level={level}")
    return 1 - level


def check_log_odds(log_odds: AnyFloats, memberships: Flags) -> tuple[AnyFloats, Flags]:
    """Posterior log-odds about models, not NaN, and the truth as arrays of one shape (J, K); float32 stays."""
    values, truth = np.asarray(log_odds), np.asarray(memberships, dtype=np.bool_)
    if values.ndim != 2 or values.shape != truth.shape:
        raise InputError(
            f"log-odds and memberships must have one shape (num_models, num_nodes), got {values.shape} and "
            f"{truth.shape}"
        )
    if np.isnan(values).any():
        raise InputError("log-odds must not be NaN")
    return values if values.dtype == np.float32 else values.astype(np.float64), truth


def poisson_binomial_pmf(prob: Floats) -> Floats:
    """Pr(Σ = k) for k = 0, …, G, shape (G + 1,).

    The generating function ∏(1 - p + p z) is multiplied out as a balanced tree of products, each level by one batch of
    FFTs: O(G log² G). All factors are probability mass functions, so the absolute error of a product stays within
    rounding of 1.

    >>> poisson_binomial_pmf(np.array([0.5, 0.5])).round(12)
    array([0.25, 0.5 , 0.25])
    """
    num_leaves = 1 << max(len(prob) - 1, 0).bit_length()
    success = np.zeros(num_leaves)
    success[: len(prob)] = prob
    factors = np.stack([1 - success, success], axis=1)
    while len(factors) > 1:
        degree = factors.shape[1] - 1
        size = scipy.fft.next_fast_len(2 * degree + 1, real=True)
        spectra = scipy.fft.rfft(factors, size, axis=1)
        factors = scipy.fft.irfft(spectra[0::2] * spectra[1::2], size, axis=1)[:, : 2 * degree + 1]
    mass: Floats = np.clip(factors[0, : len(prob) + 1], 0.0, 1.0)
    return mass


def poisson_binomial_tail(prob: Floats, at_least: int) -> float:
    """Pr(Σ ≥ at_least) for independent trials with these success probabilities; error below `ROUNDING`.

    >>> round(poisson_binomial_tail(np.array([0.5, 0.25]), 2), 12)
    0.125
    """
    num_trials = len(prob)
    if at_least <= 0:
        return 1.0
    if at_least > num_trials:
        return 0.0
    if at_least == num_trials:
        return float(np.prod(prob))
    if (prob == prob[0]).all():
        return float(scipy.special.betainc(at_least, num_trials - at_least + 1, prob[0]))
    mass = poisson_binomial_pmf(prob)
    upper = mass[at_least:].sum()
    # The smaller of the two sums is the more accurate one.
    return float(upper) if upper < 0.5 else float(1 - mass[:at_least].sum())


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
    per model nothing follows for BMP (see `surest_hits`); and BMDP's ε is infinite for samplers of fixed size whatever
    the model, as all other memberships give away the last.

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


def mp_bound(num_hits: int, log_odds: Floats, level: float = 0.95) -> float | None:
    """The lower bound on ε of MP that C correct guesses prove; None if they prove nothing.

    Formal guarantee: if the mechanism is ε-MP, the bound exceeds ε with probability at most 1 - level.

    Proof. By Definition 1 the posterior odds of the guessed statement are at most e^ε times its prior odds, so a guess
    of prior log-odds o_k is right with probability at most q_k = σ(ε + o_k), o_k being log η_i for "node i is in" and
    -log η_i for "node i is not in". Given the outputs, hits are independent (one guess per model), so C is dominated by
    the Poisson-binomial law with probabilities q(ε), and p(ε) = Pr(PB(q(ε)) ≥ C) is at most a with probability at most
    a. p rises in ε, so {ε: p(ε) > a} is a half-line; the bound lies at its lower end, and exceeds ε only if p(ε) ≤ a. ∎

    Upper limits in place of o_k, the `log_odds`, raise every q_k(ε) and so lower the bound: with limits that hold
    together except with probability b, the bound holds with probability 1 - a - b.

    What it does not prove: as `epsilon_bound`. Guesses with several per model are not covered.

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
        return poisson_binomial_tail(scipy.special.expit(epsilon + odds), int(num_hits)) + ROUNDING <= failure_prob

    return largest_rejected(is_rejected)


def quick_mp_bounds(hit_rates: Floats, log_odds: Floats, num_guesses: Ints) -> Floats:
    """The ε of MP at which guesses of these prior log-odds would be right at a rate, at most; 0 if at any ε.

    For choosing a threshold, and as exact as that needs. With the rate at its Clopper-Pearson limit this is never above
    `mp_bound` where that matters: by Hoeffding (1956) the tail of a Poisson-binomial law at C ≥ Σ q_k + 1 is at most
    that of the binomial law with the same mean. There are B rates, each of the first `num_guesses` of all G guesses.
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


def largest_rejected(is_rejected: Callable[[float], bool], low: float = 0.0) -> float | None:
    """The end, from below, of the rejected half-line in ε ≥ `low`; None if `low` is not rejected."""
    if not is_rejected(low):
        return None
    high = max(low, -1.0) + 1.0
    while is_rejected(high):
        if high > LARGEST_EPSILON:
            return high
        low, high = high, high + max(1.0, abs(high))
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if is_rejected(middle) else (low, middle)
    return low


def _check_counts(num_hits: int, num_guesses: int) -> None:
    if num_guesses < 0 or not 0 <= num_hits <= num_guesses:
        raise InputError(f"num_hits must be in [0, num_guesses={num_guesses}], got num_hits={num_hits}")


NUM_STAKES = 400
WEIGHT_OF_ALL = 0.4
# Shares of the wealth that are staked, and the logarithms of their weights.
STAKES: Floats = np.append(np.sin((np.arange(NUM_STAKES) + 0.5) * (np.pi / 2) / NUM_STAKES) ** 2, 1.0)
LOG_WEIGHTS: Floats = np.log(np.append(np.full(NUM_STAKES, (1 - WEIGHT_OF_ALL) / NUM_STAKES), WEIGHT_OF_ALL))


class AnytimeBound:
    """A lower confidence bound on ε from guesses that come one by one, valid under optional stopping.

    Formal guarantee: if the mechanism is ε-BMP-R, then with probability at least `level` the bound is at most ε after
    every update, for all time at once. So it also holds at any time that was chosen by looking at it, and the largest
    bound ever reached holds too, which is what `value` gives. The same is true of ε-BMP-L with guesses of non-members,
    and of ε-MP if each guess comes with its prior log-odds.

    Proof. Let X_j in [0, 1] be the share of correct guesses about model j (0 or 1 for a single guess), q = σ(ε + o_j)
    with o_j = 0 for BMP, and F_j all that is known after model j. The nodes are chosen from F_{j-1} and the output w_j;
    as models are independent, memberships of model j given F_{j-1} and w_j follow the posterior given w_j. Every guess
    is right with probability at most q (`epsilon_bound`, `mp_bound`), hence E[X_j | F_{j-1}, w_j] ≤ q, without any
    assumption on how several memberships of one model depend on each other. For a stake c in [0, 1] the factor
    1 + c (X_j/q - 1) is at least 0 with conditional expectation at most 1; the product over models is a non-negative
    supermartingale that starts at 1, and so is the mixture over stakes with fixed weights. By Ville's inequality it
    ever reaches 1/a with probability at most a. All ε at which it has done so are ruled out. Each factor falls in ε, so
    these are a half-line; the bound is its upper end, and exceeds the true ε only if that was ruled out. ∎

    The mixture has weight 0.4 on c = 1, which is the best stake as long as no guess is wrong, and spreads the rest by
    the arcsine law. Compared with the fixed-sample bound at 95 % this costs 0.16 if all guesses are right, 0.4 to 0.5
    if a few of some hundreds are wrong, and next to nothing if many are.

    What it does not prove: as `epsilon_bound`. The guess about a model must not use its memberships, nor anything made
    from later models. Models must be taken in an order that does not depend on how they come out.

    Args:
        level: Confidence level 1 - a.
        lowest: Smallest ε of interest, below which nothing is reported: -∞ for BMP, 0 for MP.

    >>> bound = AnytimeBound()
    >>> for _ in range(500):
    ...     bound.update(1)
    >>> round(bound.value, 2)
    4.96
    """

    def __init__(self, level: float = 0.95, lowest: float = -math.inf) -> None:
        self.level = level
        self._log_target = -math.log(check_level(level))
        self._lowest = max(lowest, -LARGEST_EPSILON)
        self._counts: Counter[tuple[float, float]] = Counter()
        self._value: float | None = None

    def update(self, shares: npt.ArrayLike, log_odds: npt.ArrayLike = 0.0) -> None:
        """Adds one or more models; a model about which nothing is guessed need not be added.

        The share of correct guesses about a model is 0 or 1 for a single guess. Log-odds, for MP, are the prior ones of
        what is guessed, or upper limits of them.

        Raises:
            InputError: if a share is not in [0, 1] or log-odds are NaN.
        """
        pairs = np.broadcast_arrays(np.asarray(shares, dtype=np.float64), np.asarray(log_odds, dtype=np.float64))
        share, odds = (values.ravel() for values in pairs)
        is_share = (share >= 0) & (share <= 1)
        if not is_share.all():
            raise InputError(f"share must be in [0, 1], got share={share[~is_share][0]:g}")
        if np.isnan(odds).any():
            raise InputError("log_odds must be a number, got NaN")
        self._counts.update(zip(share.tolist(), odds.tolist(), strict=True))

    @property
    def value(self) -> float | None:
        """The largest bound at any time that `value` was read; None if nothing is proven yet."""
        low = self._lowest if self._value is None else self._value
        larger = largest_rejected(lambda epsilon: self.log_wealth(epsilon) >= self._log_target, low)
        if larger is not None:
            self._value = larger
        return self._value

    def log_wealth(self, epsilon: float) -> float:
        """Logarithm of the mixture supermartingale for a hypothetical ε."""
        if not self._counts:
            return 0.0
        shares, odds = np.array(list(self._counts)).T[:, :, None]
        counts = np.array(list(self._counts.values()), dtype=np.float64)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            payoff = np.where(shares > 0, shares * np.exp(-epsilon - odds), 0.0)
            factors = np.log(np.maximum(1 - STAKES * (1 - shares) + STAKES * payoff, 0.0))
        return float(scipy.special.logsumexp(LOG_WEIGHTS + counts @ factors))

    def __str__(self) -> str:
        value = self.value
        proven = "nothing proven" if value is None else f"ε ≥ {value:.2f}"
        return f"{proven} with {100 * self.level:g} % confidence at any time, {self._counts.total():,} guesses"


def surest_hits(log_odds: Floats, memberships: Flags, guesses_per_model: int, *, says_member: bool = True) -> Ints:
    """How many are right of k guesses about each of G models: that the k surest nodes are in, or are not; shape (G,).

    BMP bounds the probability that each guess is right, but not how the memberships of several nodes depend on each
    other given the output. So for BMP the guesses about one model count as a single observation, the share of them that
    is right, with mean at most σ(ε_R): `AnytimeBound().update(hits / k)`. For BMDP all guesses count:
    `epsilon_bound(hits.sum(), G * k)`.

    Log-odds are posterior ones, by a rule fitted on other models, shape (G, N), as the truth; k is chosen without
    looking at these models. Members are guessed for ε_R, non-members for ε_L.

    Raises:
        InputError: if shapes differ, log-odds are NaN, or there are fewer than k nodes.
    """
    values, truth = check_log_odds(log_odds, memberships)
    check_at_least_one(guesses_per_model=guesses_per_model)
    if guesses_per_model > values.shape[1]:
        raise InputError(
            f"guesses_per_model must be at most {values.shape[1]}, the number of nodes, got {guesses_per_model}"
        )
    surest = np.argsort(-values if says_member else values, axis=1, kind="stable")[:, :guesses_per_model]
    return (np.take_along_axis(truth, surest, axis=1) == says_member).sum(axis=1, dtype=np.int64)
