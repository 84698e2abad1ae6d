"""BMP with one ε for both sides."""

from __future__ import annotations

from dataclasses import dataclass

from bmpaudit.arrays import Floats
from bmpaudit.estimation.definitions.base import DefinitionBase


@dataclass(frozen=True)
class BMPSymmetric(DefinitionBase):
    """BMP with ε_L = ε_R: the region R_η(ε, ε)."""

    def epsilons(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """ε_L = ε_R = ε."""
        return epsilon, epsilon
