"""A definition of your own: learning that somebody was not in is half as bad as learning that they were.

bmpaudit audit demo --definition ratio_definition:RatioBMP --out ratio-audit
"""

from dataclasses import dataclass

from bmpaudit.estimation.definitions import DefinitionBase
from bmpaudit.util.values import Floats


@dataclass(frozen=True)
class RatioBMP(DefinitionBase):
    """(ratio · ε, ε)-BMP with one ε.

    Attributes:
        ratio: How many times ε_R the other side, ε_L, may be.
    """

    ratio: float = 2.0

    def epsilons(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """(ε_L, ε_R)."""
        return self.ratio * epsilon, epsilon
