"""The likeliest classes only."""

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats32
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.shadow.releases.base import OutputRelease
from bmpaudit.shadow.releases.probabilities import probabilities

LEAST = 1e-12  # of a probability, whose logarithm is taken


@dataclass(frozen=True)
class TopClasses(OutputRelease):
    """Gives out the probabilities of the likeliest classes, and of the others only that they share the rest.

    Attributes:
        top: How many classes.
    """

    top: int = 3

    def __post_init__(self) -> None:
        check_at_least_one(top=self.top)

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`.

        Raises:
            InputError: if there are no other classes.
        """
        num_classes = logits.shape[-1]
        if self.top >= num_classes:
            raise InputError(f"top must be less than the number of classes, {num_classes}, got top={self.top}")
        shown = probabilities(logits)
        others = np.argsort(-shown, axis=-1, kind="stable")[..., self.top :]
        rest = np.take_along_axis(shown, others, axis=-1).mean(axis=-1, keepdims=True)
        np.put_along_axis(shown, others, np.broadcast_to(rest, others.shape), axis=-1)
        return np.log(np.maximum(shown, LEAST)).astype(np.float32)
