"""Means over models with confidence limits that allow for skewed numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.special

from bmpaudit.arrays import Floats


@dataclass(frozen=True, eq=False)
class Band:
    """Means over models with confidence limits.

    Attributes:
        mean: Means, shape (P,).
        low: Lower limits, shape (P,).
        high: Upper limits, shape (P,).
    """

    mean: Floats
    low: Floats
    high: Floats

    @property
    def half_width(self) -> Floats:
        """Half of the distance between the limits, shape (P,)."""
        return (self.high - self.low) / 2

    def clipped(self, lowest: float, highest: float) -> Band:
        """The same with limits held to what is possible."""
        return Band(self.mean, np.maximum(self.low, lowest), np.minimum(self.high, highest))


def band(per_model: Floats, level: float) -> Band:
    """Limits of the mean of independent models by Student's t after Hall's transformation, which undoes the skewness.

    With T = √J (mean - μ)/s and a = skewness/√J, the law of T + a T²/3 + a² T³/27 + a/6 is that of Student's t up to
    terms in 1/J, where that of T itself is only up to 1/√J (Hall 1992, On the removal of skewness by transformation).
    The cubic rises with T, so limits are found by inverting it. Each side is missed about equally often.

    Args:
        per_model: Values of J models, shape (J, P), at least two.
        level: Confidence level.
    """
    num_models = len(per_model)
    mean, deviation = per_model.mean(axis=0), per_model.std(axis=0, ddof=1)
    error = deviation / math.sqrt(num_models)
    # Where models are all alike there is no spread, and so no skewness.
    standard = (per_model - mean) / np.where(deviation > 0, deviation, 1.0)
    skewness = (standard**3).mean(axis=0) / math.sqrt(num_models)
    quantile = float(scipy.special.stdtrit(num_models - 1, (1 + level) / 2))
    return Band(
        mean, mean - error * untransformed(quantile, skewness), mean - error * untransformed(-quantile, skewness)
    )


def untransformed(value: float, skewness: Floats) -> Floats:
    """T for which T + a T²/3 + a² T³/27 + a/6 is the value, where a is the skewness."""
    is_skewed = np.abs(skewness) > 1e-6
    a = np.where(is_skewed, skewness, 1.0)
    result: Floats = np.where(is_skewed, 3 / a * (np.cbrt(1 + a * (value - a / 6)) - 1), value)
    return result
