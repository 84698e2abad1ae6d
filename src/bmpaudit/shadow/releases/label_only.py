"""The predicted class and nothing else."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmpaudit.arrays import Floats32
from bmpaudit.shadow.releases.base import OutputRelease

NOT_PREDICTED = -20.0


@dataclass(frozen=True)
class LabelOnly(OutputRelease):
    """Gives out the predicted class, as logits of 0 for it and -20 for all others.

    The label margin is then positive where the class is the true one, and negative elsewhere. An audit
    attacks it with `right-or-wrong`, which is made for that.
    """

    gives_labels_only: ClassVar[bool] = True

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        shown = np.full_like(logits, NOT_PREDICTED)
        np.put_along_axis(shown, logits.argmax(axis=-1)[..., None], 0.0, axis=-1)
        return shown
