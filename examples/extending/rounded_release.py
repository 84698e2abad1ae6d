"""A release of your own: a defence that gives out rounded probabilities instead of logits.

bmpaudit audit demo --release clean --release rounded_release:Rounded --out rounded-audit
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from bmpaudit.shadow import OutputRelease

SMALLEST = 1e-6  # what an adversary takes a probability of 0 for


@dataclass(frozen=True)
class Rounded(OutputRelease):
    """Class probabilities, rounded.

    Attributes:
        digits: Number of decimal digits that are given out.
    """

    digits: int = 1

    def outputs(self, logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG002 - nothing is random
        """Logarithms of the rounded probabilities."""
        return np.log(np.maximum(softmax(logits, axis=-1).round(self.digits), SMALLEST))
