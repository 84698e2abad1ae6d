"""A release of your own: a defence that hides how sure the model is beyond some probability.

bmpaudit audit demo --release clean --release capped_release:Capped --out capped-audit
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from bmpaudit.releases import OutputRelease


@dataclass(frozen=True)
class Capped(OutputRelease):
    """Class probabilities, none of them above a limit.

    Attributes:
        highest: Largest probability that is given out, above 1/2.
    """

    highest: float = 0.9

    def outputs(self, logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG002 - nothing is random
        """Logarithms; where a probability was above the limit, all other classes share the rest equally."""
        log_prob = log_softmax(logits.astype(np.float64), axis=-1)
        is_above = log_prob > np.log(self.highest)
        shared = (1.0 - self.highest) / (logits.shape[-1] - 1)
        capped = np.where(is_above, np.log(self.highest), np.log(shared))
        return np.where(is_above.any(axis=-1, keepdims=True), capped, log_prob)
