"""Rounded probabilities."""

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats32
from bmpaudit.errors import InputError
from bmpaudit.shadow.releases.base import OutputRelease
from bmpaudit.shadow.releases.probabilities import probabilities

MOST_DIGITS = 6  # float32 has no more


@dataclass(frozen=True)
class Rounded(OutputRelease):
    """Gives out probabilities rounded to some decimal places, as their logarithms.

    A probability that is rounded to 0 stands for one below half a unit, and has the logarithm of a quarter of a unit.

    Attributes:
        digits: Decimal places of the probabilities.
    """

    digits: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MOST_DIGITS:
            raise InputError(f"digits must be from 1 to {MOST_DIGITS}, got digits={self.digits}")

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        rounded = probabilities(logits).round(self.digits)
        return np.log(np.maximum(rounded, 0.25 * 10.0**-self.digits)).astype(np.float32)
