"""The number of successes in independent trials whose probabilities differ."""

from __future__ import annotations

import numpy as np
import scipy.fft
import scipy.special

from bmpaudit.arrays import Floats

ROUNDING = 1e-12
"""Upper bound on the absolute error of `tail`."""


def pmf(prob: Floats) -> Floats:
    """Pr(Σ = k) for k = 0, …, G, shape (G + 1,).

    The generating function ∏(1 - p + p z) is multiplied out as a balanced tree of products, each level by one batch of
    FFTs: O(G log² G). All factors are probability mass functions, so the absolute error of a product stays within
    rounding of 1.

    >>> pmf(np.array([0.5, 0.5])).round(12)
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


def tail(prob: Floats, at_least: int) -> float:
    """Pr(Σ ≥ at_least) for independent trials with these success probabilities; error below `ROUNDING`.

    >>> round(tail(np.array([0.5, 0.25]), 2), 12)
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
    mass = pmf(prob)
    upper = mass[at_least:].sum()
    # The smaller of the two sums is the more accurate one.
    return float(upper) if upper < 0.5 else float(1 - mass[:at_least].sum())
