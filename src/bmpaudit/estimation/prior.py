"""Priors of ε and of the attack's strength."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.estimation.density import NEGLIGIBLE

LogDensity = Callable[[Floats], Floats]
"""The logarithm of a density of ε, up to a constant."""

NEAREST, FURTHEST = 1e-3, 1e6  # distances from the floor between which a prior is scanned
SCAN_POINTS = 4_000
SMALLEST_VARIANCE, LARGEST_VARIANCE, LARGEST_MEAN = 1e-12, 1e12, 1e6
LEAST_LIKELY = -1e9  # nats: with more, sums of logarithms have no digits left for the likelihood


@dataclass(frozen=True)
class NormalPrior:
    """ε ~ N(mean, variance), restricted to where the likelihood is positive.

    The paper's N(0, 10) has *variance* 10: it reproduces the published upper percentiles, standard deviation 10 does
    not.

    Attributes:
        mean: Mean of the normal distribution.
        variance: Variance of the normal distribution.
    """

    mean: float = 0.0
    variance: float = 10.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.mean):
            raise InputError(f"the prior's mean must be finite, got mean={self.mean}")
        if not 0 < self.variance < np.inf:
            raise InputError(f"the prior's variance must be positive, got variance={self.variance}")
        if not SMALLEST_VARIANCE <= self.variance <= LARGEST_VARIANCE:
            raise InputError(
                f"the prior's variance must be in [{SMALLEST_VARIANCE:g}, {LARGEST_VARIANCE:g}], got "
                f"variance={self.variance}"
            )
        if abs(self.mean) > LARGEST_MEAN:
            raise InputError(f"the prior's mean must be in [{-LARGEST_MEAN:g}, {LARGEST_MEAN:g}], got mean={self.mean}")

    def describe(self) -> str:
        """The prior in words."""
        return f"normal, mean {self.mean:g}, variance {self.variance:g}"

    def __call__(self, epsilon: Floats) -> Floats:
        """The log-density."""
        return -0.5 * ((epsilon - self.mean) ** 2 / self.variance + np.log(2 * np.pi * self.variance))


@dataclass(frozen=True, eq=False)
class TabulatedPrior:
    """A log-density interpolated linearly between points; how a file stores a prior that is not normal.

    Attributes:
        points: Ascending points, shape (P,).
        log_density: Log-density at the points, shape (P,); -∞ beyond them.
    """

    points: Floats
    log_density: Floats

    def __call__(self, epsilon: Floats) -> Floats:
        """The log-density."""
        return np.interp(epsilon, self.points, self.log_density, left=-np.inf, right=-np.inf)


@dataclass(frozen=True)
class StrengthPrior:
    """An unknown attack strength: s ~ Beta(a, b) (remark of Appendix C).

    Attributes:
        a: First parameter of the Beta distribution.
        b: Second parameter of the Beta distribution.
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("a", self.a), ("b", self.b)):
            if not 0 < value < np.inf:
                raise InputError(f"the strength prior's {name} must be positive, got {name}={value}")

    def log_density(self, strength: Floats) -> Floats:
        """The log-density, up to a constant."""
        return (self.a - 1) * np.log(strength) + (self.b - 1) * np.log1p(-strength)


def upper_end(prior: LogDensity, low: float) -> float:
    """Where a prior, and so the posterior (the likelihood is flat up there), has become negligible for good.

    The prior may peak far above `low`, and be negligible before its peak as well.

    Raises:
        InputError: if it never becomes negligible, or is next to nothing everywhere above `low`.
    """
    distances = np.geomspace(NEAREST, FURTHEST, SCAN_POINTS)
    scan = prior(low + distances)
    likely = np.flatnonzero(scan > np.max(scan) - 2 * NEGLIGIBLE)
    if not likely.size:  # 0 wherever it was evaluated, as the posterior will be
        return low + 1.0
    if np.max(scan) < LEAST_LIKELY:
        raise InputError(
            f"the prior's log-density must be at least {LEAST_LIKELY:g} for some ε > {low:.4g}, the least that these "
            f"nodes allow, got {np.max(scan):.4g}: choose a larger variance or mean"
        )
    if likely[-1] == SCAN_POINTS - 1:
        raise InputError("the prior must vanish for large ε: the likelihood does not")
    return low + float(distances[likely[-1] + 1])
