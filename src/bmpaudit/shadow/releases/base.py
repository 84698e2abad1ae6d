"""A base for releases that only change what is given out."""

from abc import ABC, abstractmethod

import numpy as np

from bmpaudit.arrays import Floats32
from bmpaudit.registry import UntrustedPart


def models_of(release: object) -> int:
    """How many models, trained on the same sample, a release takes."""
    return 1 if isinstance(release, UntrustedPart) else int(getattr(release, "num_models", 1))


def gives_embeddings(release: object) -> bool:
    """Whether a release gives out activations of the last hidden layer in place of logits."""
    return not isinstance(release, UntrustedPart) and bool(getattr(release, "gives_embeddings", False))


def gives_labels_only(release: object) -> bool:
    """Whether a release gives out labels, and no scores."""
    return not isinstance(release, UntrustedPart) and bool(getattr(release, "gives_labels_only", False))


class OutputRelease(ABC):
    """A release that leaves the model as it was trained and changes its outputs: subclass it and write `outputs`.

    >>> class Rounded(OutputRelease):
    ...     def outputs(self, logits, rng):
    ...         return logits.round(1)
    >>> Rounded().outputs(np.array([[0.123, -0.456]], dtype=np.float32), np.random.default_rng(0))
    array([[ 0.1, -0.5]], dtype=float32)
    """

    @property
    def last_layer_noise(self) -> float:
        """See `interfaces.Release`."""
        return 0.0

    @property
    def changes_outputs(self) -> bool:
        """See `interfaces.Release`."""
        return True

    @abstractmethod
    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:
        """What is given out in place of one model's logits, both of shape (num_nodes, num_classes)."""
