"""Values that the tests of pictures draw, and what they look for."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection

from bmpaudit.attack import ErrorCounts
from bmpaudit.estimation import Posterior, estimate
from bmpaudit.privacy import Region
from bmpaudit.proof import ExposureCurve, Reliability
from bmpaudit.proof.exposure import Band
from bmpaudit.report import figures

INCHES = {"one": 3.35, "two": 6.9}
WIDTHS: list[figures.Width] = ["one", "two"]
PANELS = {
    "(a)": Region(1.0, 0.5, 0.5),
    "(b)": Region(4.0, 0.5, 2.0),
    "(c)": Region(0.25, 2.0, math.inf),
    "(d)": Region(4.0, math.inf, 2.0),
}
K = 200
RNG = np.random.default_rng(5)
PRIOR = RNG.uniform(0.02, 0.8, K)
LOW = np.log(PRIOR / (1 - PRIOR)) + RNG.gamma(1.0, 1.0, K)
MEDIAN = LOW + RNG.gamma(2.0, 0.5, K)
HIGH = MEDIAN + RNG.gamma(2.0, 0.5, K)
FLAGGED = np.arange(K) % 7 == 0
CLASSES = RNG.integers(0, 4, K)
DEGREES = RNG.geometric(0.3, K) - 1
DRAWS = RNG.normal([2, 3], 0.2, (300, 2))
SHARE = RNG.beta(0.4, 3.0, K)
RATES = np.array([0, 0.001, 0.1, 1])
ROC = {"weak": (RATES, np.array([0, 0.02, 0.4, 1])), "strong": (RATES, np.array([0, 0.05, 0.5, 1]))}


@cache
def make_posterior(prior_prob: float = 0.5, definition: Any = "bmp-r", false_positives: int = 10) -> Posterior:
    counts = ErrorCounts.from_arrays(
        num_out=[100] * 3,
        num_in=100,
        false_positives=[false_positives, 20, 15],
        false_negatives=[30, 25, 40],
        prior_prob=prior_prob,
    )
    return estimate(counts, definition)


@cache
def make_exposure(strength: float = 1.0) -> ExposureCurve:
    mean = 100 * strength * np.array([1.0, 0.6, 0.2, 0.02, 0.0])
    high = 1.2 * mean + strength * np.array([0.0, 0.0, 0.0, 0.0, 40.0])
    return ExposureCurve(
        precision=np.array([0.5, 0.9, 0.95, 0.99, 0.999]),
        correct=Band(mean, 0.8 * mean, high),
        at_most=1.1 * high,
        named=mean / 0.99,
        total=250.0,
        num_models=64,
        level=0.95,
        by_prior=np.zeros(5),
    )


@cache
def make_reliability(scale: float = 1.0) -> Reliability:
    return Reliability(
        edges=np.array([0.0, 0.01, 0.5, 0.99, 0.999, 1.0]),
        num_challenges=np.array([9000, 100, 50, 0, 9]),
        stated=np.array([0.004, 0.3, 0.8, math.nan, 0.9995]),
        observed=np.array([0.005 * scale, 0.31 * scale, 0.8 * scale, math.nan, 1.0]),
    )


def scatters(axes: Axes) -> list[PathCollection]:
    return [item for item in axes.collections if isinstance(item, PathCollection)]


def points(item: PathCollection) -> np.ndarray[Any, Any]:
    return np.asarray(item.get_offsets())


def assert_inside(axes: Axes, x: Any, y: Any) -> None:
    for values, ends in ((x, axes.get_xlim()), (y, axes.get_ylim())):
        assert min(ends) <= np.min(values)
        assert np.max(values) <= max(ends)
