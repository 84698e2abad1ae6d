"""BMP-R: how sure an adversary can become that a node was in (Definition 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats
from bmpaudit.estimation.definitions.base import EPSILON_RIGHT, DefinitionBase


@dataclass(frozen=True)
class BMPRight(DefinitionBase):
    """ε_R of BMP, ε_L being unbounded: the region R_η(∞, ε_R)."""

    parameters = (EPSILON_RIGHT,)

    def epsilons(self, epsilon_right: Floats) -> tuple[float, Floats]:
        """ε_L = ∞."""
        return np.inf, epsilon_right
