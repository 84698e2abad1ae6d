"""Gaussian noise on the last layer."""

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats32
from bmpaudit.errors import InputError


@dataclass(frozen=True)
class NoisyLastLayer:
    """Adds Gaussian noise to all parameters of the last layer, once for each model: every query meets the same noise.

    Attributes:
        noise_std: Standard deviation of the noise.
    """

    noise_std: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.noise_std < float("inf"):
            raise InputError(f"noise_std must be at least 0, got noise_std={self.noise_std}")

    @property
    def last_layer_noise(self) -> float:
        """See `interfaces.Release`."""
        return float(self.noise_std)

    @property
    def changes_outputs(self) -> bool:
        """See `interfaces.Release`."""
        return False

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        return logits
