"""The activations of the last hidden layer."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmpaudit.arrays import Floats32


@dataclass(frozen=True)
class Embeddings:
    """Gives out what goes into the last layer, for every node: the activations of the last hidden layer.

    The adversary reads scores of the classes off them by a linear probe of its own (`probe_scores`), and the attack's
    statistic is that of these scores.
    """

    gives_embeddings: ClassVar[bool] = True

    @property
    def last_layer_noise(self) -> float:
        """See `interfaces.Release`."""
        return 0.0

    @property
    def changes_outputs(self) -> bool:
        """See `interfaces.Release`."""
        return False

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`; the activations, of shape (num_nodes, units), in place of logits."""
        return logits
