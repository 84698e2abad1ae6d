"""BMP-L: how sure an adversary can become that a node was not in (Definition 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Floats
from bmpaudit.estimation.definitions.base import EPSILON_LEFT, DefinitionBase


@dataclass(frozen=True)
class BMPLeft(DefinitionBase):
    """ε_L of BMP, ε_R being unbounded: the region R_η(ε_L, ∞)."""

    parameters = (EPSILON_LEFT,)

    def epsilons(self, epsilon_left: Floats) -> tuple[Floats, float]:
        """ε_R = ∞."""
        return epsilon_left, np.inf
