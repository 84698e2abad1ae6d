"""What every definition has, with defaults that make your own a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags, Floats
from bmpaudit.estimation.definitions.curve import Side, curve_of
from bmpaudit.interfaces import Definition


@dataclass(frozen=True)
class Parameter:
    """One ε of a definition.

    Attributes:
        name: Name in code, files and tables, such as `epsilon_right`.
        symbol: Symbol in text, such as `ε_R`.
        latex: Symbol in LaTeX's math mode, without dollar signs.
        meaning: Meaning in a few words.
    """

    name: str
    symbol: str
    latex: str
    meaning: str


EPSILON = Parameter("epsilon", "ε", r"\varepsilon", "how sure an adversary can become, either way")
EPSILON_LEFT = Parameter(
    "epsilon_left", "ε_L", r"\varepsilon_L", "how sure an adversary can become that a node was not in"
)
EPSILON_RIGHT = Parameter(
    "epsilon_right", "ε_R", r"\varepsilon_R", "how sure an adversary can become that a node was in"
)


class DefinitionBase:
    """A definition with one parameter ε that takes the prior odds into account; subclasses add `epsilons`.

    Your own definition is any continuous curve (ε_L(t), ε_R(t)), neither side of which falls as t grows:

    >>> class BMPRatio(DefinitionBase):
    ...     def epsilons(self, epsilon):
    ...         return 2 * epsilon, epsilon
    >>> BMPRatio().name
    'bmpratio'
    """

    parameters: ClassVar[Sequence[Parameter]] = (EPSILON,)
    uses_prior: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """Short name for titles, file names and legends."""
        return registry.label(registry.DEFINITION, self)

    def empties_support(self, log_prior_odds: Floats) -> Flags:
        """Nodes whose certain prior rules out every finite value: η = 0 where ε_L is bounded, η = ∞ where ε_R is."""
        curve = curve_of(cast(Definition, self))
        is_never_in = (log_prior_odds == -np.inf) & (curve.left is not Side.UNBOUNDED)
        is_always_in = (log_prior_odds == np.inf) & (curve.right is not Side.UNBOUNDED)
        return self.uses_prior & (is_never_in | is_always_in)
