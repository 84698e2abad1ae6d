"""MP: how far the odds of membership move, whatever the prior (Definition 1)."""

from __future__ import annotations

from dataclasses import dataclass

from bmpaudit.arrays import Floats
from bmpaudit.estimation.definitions.base import DefinitionBase, Parameter


@dataclass(frozen=True)
class MP(DefinitionBase):
    """ε-membership privacy: the region R_1(ε, ε)."""

    parameters = (Parameter("epsilon", "ε", r"\varepsilon", "how far the odds move, whatever the prior"),)
    uses_prior = False

    def epsilons(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """ε_L = ε_R = ε."""
        return epsilon, epsilon
