"""Probabilities made less sure of themselves."""

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats32
from bmpaudit.errors import InputError
from bmpaudit.shadow.releases.base import OutputRelease


@dataclass(frozen=True)
class Temperature(OutputRelease):
    """Divides the logits by a temperature.

    An adversary who knows it multiplies again, so it hides nothing by itself: beside rounding or noise it may.

    Attributes:
        temperature: Above 1 for outputs that are less sure.
    """

    temperature: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise InputError(f"temperature must be positive, got temperature={self.temperature}")

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        return np.asarray(logits / np.float32(self.temperature), dtype=np.float32)
