"""The model as it was trained."""

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats32


@dataclass(frozen=True)
class Clean:
    """Gives out the logits of the trained model."""

    @property
    def last_layer_noise(self) -> float:
        """See `interfaces.Release`."""
        return 0.0

    @property
    def changes_outputs(self) -> bool:
        """See `interfaces.Release`."""
        return False

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        return logits
