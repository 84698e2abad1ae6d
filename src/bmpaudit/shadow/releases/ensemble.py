"""The mean of several models."""

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats32
from bmpaudit.errors import InputError
from bmpaudit.shadow.releases.base import OutputRelease
from bmpaudit.shadow.releases.probabilities import probabilities

LEAST = 1e-12  # of a probability, whose logarithm is taken
MOST_MODELS = 1_000


@dataclass(frozen=True)
class Ensemble(OutputRelease):
    """Gives out the mean probabilities of several models, trained on the same sample from other initial weights.

    They are given as logarithms. The first of the models is the one that all other releases are about.

    Attributes:
        ensemble_size: How many models.
    """

    ensemble_size: int = 5

    def __post_init__(self) -> None:
        if not 2 <= self.ensemble_size <= MOST_MODELS:
            raise InputError(f"ensemble_size must be from 2 to {MOST_MODELS:,}, got {self.ensemble_size}")

    @property
    def num_models(self) -> int:
        """See `interfaces.Release`."""
        return int(self.ensemble_size)

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`; `logits` has shape (ensemble_size, num_nodes, num_classes)."""
        mean = np.mean([probabilities(each) for each in logits], axis=0)
        return np.log(np.maximum(mean, LEAST)).astype(np.float32)
