"""Which ε is estimated: the definitions of the paper as parameters of the region R_η(ε_L, ε_R)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import InputError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a definition: its name in data and files, and how it is written."""

    name: str
    symbol: str
    latex: str


PARAMETERS = {
    "epsilon_left": Parameter("epsilon_left", "ε_L", r"\varepsilon_L"),
    "epsilon_right": Parameter("epsilon_right", "ε_R", r"\varepsilon_R"),
    "epsilon": Parameter("epsilon", "ε", r"\varepsilon"),
}


@dataclass(frozen=True)
class Definition:
    """A privacy definition with its parameters.

    Attributes:
        name: `mp`, `bmp-r`, `bmp-l`, `bmp-s` (ε_L = ε_R) or `bmp` (ε_L and ε_R).
        bounds_left: Whether ε_L is bounded; else it is ∞.
        bounds_right: Whether ε_R is bounded; else it is ∞.
        uses_prior: Whether the nodes' prior odds count; MP takes η = 1 for all.
    """

    name: str
    bounds_left: bool
    bounds_right: bool
    uses_prior: bool

    @property
    def is_joint(self) -> bool:
        """Whether there are two parameters."""
        return self.name == "bmp"

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """`epsilon_left`, `epsilon_right`, both, or `epsilon` where the two are one."""
        if self.is_joint:
            return ("epsilon_left", "epsilon_right")
        if self.bounds_left and self.bounds_right:
            return ("epsilon",)
        return ("epsilon_left",) if self.bounds_left else ("epsilon_right",)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """One parameter, or two for (ε_L, ε_R) itself."""
        return tuple(PARAMETERS[name] for name in self.parameter_names)

    def log_odds(self, log_prior_odds: Floats) -> Floats:
        """Log η as this definition takes it."""
        return log_prior_odds if self.uses_prior else np.zeros_like(log_prior_odds)

    def empties_support(self, log_prior_odds: Floats) -> npt.NDArray[np.bool_]:
        """Which nodes, by a certain prior, rule out every finite ε."""
        never, always = log_prior_odds == -np.inf, log_prior_odds == np.inf
        return self.uses_prior & ((self.bounds_left & never) | (self.bounds_right & always))

    def support_low(self, log_prior_odds: Floats) -> tuple[float, float]:
        """The lower ends (of ε_L, of ε_R): below them R is empty for some node (Prop. 1)."""
        log_odds = self.log_odds(log_prior_odds)
        return -float(log_odds.min()) + 0.0, float(log_odds.max()) + 0.0


DEFINITIONS = {
    definition.name: definition
    for definition in (
        Definition("mp", bounds_left=True, bounds_right=True, uses_prior=False),
        Definition("bmp-r", bounds_left=False, bounds_right=True, uses_prior=True),
        Definition("bmp-l", bounds_left=True, bounds_right=False, uses_prior=True),
        Definition("bmp-s", bounds_left=True, bounds_right=True, uses_prior=True),
        Definition("bmp", bounds_left=True, bounds_right=True, uses_prior=True),
    )
}


def definition_named(name: str) -> Definition:
    """Raises `InputError` if there is no such definition."""
    if name not in DEFINITIONS:
        raise InputError(f"definition must be one of {', '.join(DEFINITIONS)}, got definition={name!r}")
    return DEFINITIONS[name]
