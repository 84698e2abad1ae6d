"""Confidences behind label margins, and their mean over reference models."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Floats


def log_confidence(margins: npt.ArrayLike) -> Floats:
    """Log-probability of the true label, log 1/(1 + e^-z), for margins z = o_y - log Σ_{c≠y} e^{o_c}.

    >>> np.exp(log_confidence([0.0, np.log(3.0)])).round(6).tolist()
    [0.5, 0.75]
    """
    return -np.logaddexp(0.0, -np.asarray(margins, dtype=np.float64))


def log_mean(log_values: Floats) -> Floats:
    """Log of the mean over models of e^v, from shape (J, N) to (N,)."""
    result: Floats = np.logaddexp.reduce(log_values, axis=0) - np.log(len(log_values))
    return result


def log_mean_of_others(log_values: Floats) -> Floats:
    """For each model the log of the mean over all others, shape (J, N), with J at least 2.

    Sums from the left and from the right are joined, as a difference of sums would lose the small values.
    """
    nothing = np.full((1, log_values.shape[1]), -np.inf)
    before = np.concatenate([nothing, np.logaddexp.accumulate(log_values[:-1], axis=0)])
    after = np.concatenate([np.logaddexp.accumulate(log_values[:0:-1], axis=0)[::-1], nothing])
    result: Floats = np.logaddexp(before, after) - np.log(len(log_values) - 1)
    return result
