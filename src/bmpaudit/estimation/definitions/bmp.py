"""BMP with both parameters (Definition 3)."""

from __future__ import annotations

from dataclasses import dataclass

from bmpaudit.arrays import Floats
from bmpaudit.estimation.definitions.base import EPSILON_LEFT, EPSILON_RIGHT, DefinitionBase


@dataclass(frozen=True)
class BMP(DefinitionBase):
    """(ε_L, ε_R)-Bayesian membership privacy: the region R_η(ε_L, ε_R)."""

    parameters = (EPSILON_LEFT, EPSILON_RIGHT)

    def epsilons(self, epsilon_left: Floats, epsilon_right: Floats) -> tuple[Floats, Floats]:
        """The parameters themselves."""
        return epsilon_left, epsilon_right
