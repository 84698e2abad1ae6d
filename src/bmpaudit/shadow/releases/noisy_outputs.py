"""Gaussian noise on what is given out."""

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats32
from bmpaudit.errors import InputError
from bmpaudit.shadow.releases.base import OutputRelease


@dataclass(frozen=True)
class NoisyOutputs(OutputRelease):
    """Adds Gaussian noise to the logits, anew for each answer.

    Attributes:
        output_noise: Standard deviation of the noise on each logit.
    """

    output_noise: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.output_noise < float("inf"):
            raise InputError(f"output_noise must be at least 0, got output_noise={self.output_noise}")

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:
        """See `interfaces.Release`."""
        return logits + np.float32(self.output_noise) * rng.standard_normal(logits.shape, dtype=np.float32)
