"""Shadow models as units: figures of one released model, and by how much they differ between two audits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from bmpaudit.arrays import Floats, Ints
from bmpaudit.proof.bands import untransformed
from bmpaudit.report.compare_words import QUANTITIES, Quantity

LEVEL = 0.95


@dataclass(frozen=True)
class Mean:
    """A mean over models with confidence limits."""

    mean: float
    low: float
    high: float

    @property
    def is_apart_from_0(self) -> bool:
        """Whether the interval does not contain 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Spread:
    """Variance and third central moment of a mean or of a sum of independent ones: both add up."""

    variance: float = 0.0
    third_moment: float = 0.0

    @classmethod
    def of_mean(cls, values: Floats, sign: float = 1.0) -> Spread:
        """That of the mean of J independent values, or of its opposite."""
        num, centred = len(values), values - values.mean()
        return cls(float((centred**2).sum()) / (num - 1) / num, sign * float((centred**3).mean()) / num**2)

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.variance + other.variance, self.third_moment + other.third_moment)


@dataclass(frozen=True, eq=False)
class ModelFigures:
    """Figures of each shadow model of an audit.

    Attributes:
        index: Number of each model in its plan, ascending, shape (J,).
        values: By the quantity's name, shape (J,); NaN where unknown.
        effects: By the quantity's name, what each model has done to the mean through what all models share, times J,
            shape (J,); 0 on average. The nodes of all models are named by one calibration, which was learnt from them.
            Quantities without such effects are left out.
    """

    index: Ints
    values: Mapping[str, Floats]
    effects: Mapping[str, Floats]

    def effect(self, quantity: Quantity) -> Floats:
        """Effects of the models on the mean of a quantity, shape (J,)."""
        return self.effects.get(quantity.name, np.zeros(len(self.index)))

    def mean(self, quantity: Quantity) -> Mean | None:
        """The mean of a quantity with limits as in `band`; None if fewer than two models know it."""
        values = self.with_effects(quantity)
        if len(values) < 2:
            return None
        known = self.values[quantity.name]
        return _limits(float(np.nanmean(known)), Spread.of_mean(values), len(values) - 1)

    def with_effects(self, quantity: Quantity) -> Floats:
        """Known values of a quantity plus effects, whose spread tells how uncertain the mean is."""
        values = self.values[quantity.name] + self.effect(quantity)
        return values[np.isfinite(values)]


@dataclass(frozen=True)
class ModelDifference:
    """By how much a figure of one released model is larger in one audit than in the first.

    Attributes:
        quantity: What is compared.
        change: Mean difference with confidence limits.
        is_paired: Whether models with the same sample were compared, or independent ones.
        num_models: Number of models of the first audit and of the other; of pairs, if paired.
    """

    quantity: Quantity
    change: Mean
    is_paired: bool
    num_models: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "quantity": self.quantity.name,
            **vars(self.change),
            "is_paired": self.is_paired,
            "num_models": list(self.num_models),
        }


def paired_difference(
    first: ModelFigures, other: ModelFigures, quantity: Quantity, pairs: Ints
) -> ModelDifference | None:
    """The mean of other - first over pairs of models of the same sample, with Student's t limits, or Hall's if farther.

    What a sample makes easy or hard is in both models of a pair and cancels, so limits are narrower than those of
    independent models. Models that only one audit has still have an effect on its calibration, and count with that.

    Args:
        first: Figures of the first audit's models.
        other: Figures of the other's.
        quantity: What is compared.
        pairs: Numbers of the models that have the same sample in both.

    Returns:
        None if fewer than two pairs know the quantity.
    """
    rows = [np.searchsorted(each.index, pairs) for each in (first, other)]
    one, two = (each.values[quantity.name][chosen] for each, chosen in zip((first, other), rows, strict=True))
    is_known = np.isfinite(one) & np.isfinite(two)
    num_pairs = int(is_known.sum())
    if num_pairs < 2:
        return None
    change = (two - one)[is_known]
    pulls, spread = np.zeros(num_pairs), Spread()
    for sign, each, chosen in zip((-1.0, 1.0), (first, other), rows, strict=True):
        effect = each.effect(quantity) / len(each.index)
        pulls += sign * num_pairs * effect[chosen[is_known]]
        alone = sign * np.delete(effect, chosen[is_known])
        spread += Spread(float((alone**2).sum()), float((alone**3).sum()))
    spread += Spread.of_mean(change + pulls)
    limits = _farther_limits(float(change.mean()), spread, num_pairs - 1)
    return ModelDifference(quantity, limits, is_paired=True, num_models=(num_pairs, num_pairs))


def independent_difference(first: ModelFigures, other: ModelFigures, quantity: Quantity) -> ModelDifference | None:
    """The difference of two means over independent models; None with fewer than two models on a side.

    Limits are Welch's, or Hall's if farther.
    """
    means = [each.mean(quantity) for each in (first, other)]
    values = [each.with_effects(quantity) for each in (first, other)]
    if means[0] is None or means[1] is None:
        return None
    parts = [Spread.of_mean(each, sign) for each, sign in zip(values, (-1.0, 1.0), strict=True)]
    spread, freedom = parts[0] + parts[1], 1.0
    if spread.variance:  # Satterthwaite
        shares = [(part.variance / spread.variance) ** 2 for part in parts]
        freedom = 1 / sum(share / (len(each) - 1) for share, each in zip(shares, values, strict=True))
    limits = _farther_limits(means[1].mean - means[0].mean, spread, freedom)
    return ModelDifference(quantity, limits, is_paired=False, num_models=(len(values[0]), len(values[1])))


def model_differences(
    first: ModelFigures, other: ModelFigures, pairs: Ints, quantities: Sequence[Quantity] = QUANTITIES
) -> tuple[ModelDifference, ...]:
    """Differences of those quantities that both audits know: over pairs if two at least know it, else independent."""
    found = (
        paired_difference(first, other, quantity, pairs) or independent_difference(first, other, quantity)
        for quantity in quantities
    )
    return tuple(each for each in found if each is not None)


def _farther_limits(mean: float, spread: Spread, freedom: float) -> Mean:
    """Limits of a difference: on each side the farther of those with and without Hall's correction.

    Numbers of named nodes are skewed, and so is their difference where one audit names far more than the other: there
    the plain limit misses too often on one side. Where both name as many, the difference is symmetric with heavy
    tails: there the skewness of the sample is chance, and limits that are corrected for it miss too often.
    """
    plain, corrected = (_limits(mean, each, freedom) for each in (Spread(spread.variance), spread))
    return Mean(mean, min(plain.low, corrected.low), max(plain.high, corrected.high))


def _limits(mean: float, spread: Spread, freedom: float) -> Mean:
    """As `band`, for any sum of independent parts.

    With T = (estimate - truth)/error, the law of T up to 1/√J depends on the third moment over error³ alone, and in the
    same way for one mean and for a sum or difference of several: each mean is correlated with its own variance, by its
    own third moment. So Hall's transformation takes that in place of skewness/√J.
    """
    error = math.sqrt(spread.variance)
    if not error:
        return Mean(mean, mean, mean)
    skewness = np.array(spread.third_moment / error**3)
    quantile = float(scipy.special.stdtrit(freedom, (1 + LEVEL) / 2))
    high, low = (mean - error * float(untransformed(end, skewness)) for end in (-quantile, quantile))
    return Mean(mean, low, high)
