"""What is believed of ε before the attack."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import InputError

Floats = npt.NDArray[np.float64]

LogDensity = Callable[[Floats], Floats]
"""The logarithm of a density of ε, up to a constant."""


@dataclass(frozen=True)
class NormalPrior:
    """ε ~ N(mean, variance), restricted to where the likelihood is positive.

    The paper's N(0, 10) has *variance* 10: with it the published upper percentiles come out, with standard deviation
    10 they do not.
    """

    mean: float = 0.0
    variance: float = 10.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.mean):
            raise InputError(f"the prior's mean must be finite, got mean={self.mean}")
        if not 0 < self.variance < np.inf:
            raise InputError(f"the prior's variance must be positive, got variance={self.variance}")

    def describe(self) -> str:
        """In words."""
        return f"normal, mean {self.mean:g}, variance {self.variance:g}"

    def __call__(self, epsilon: Floats) -> Floats:
        """The log-density."""
        return -0.5 * ((epsilon - self.mean) ** 2 / self.variance + np.log(2 * np.pi * self.variance))
