"""What changes the decisions that follow from an attack's scores."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from bmpaudit.errors import InputError

Unfittable = Literal["leave-out", "non-member"]


@dataclass(frozen=True)
class DecisionSettings:
    """Costs of errors, and what happens to nodes that cannot be attacked.

    Attributes:
        cost_false_positive: Cost of taking a non-member for a member, c_0 of Theorem 7.
        cost_false_negative: Cost of taking a member for a non-member, c_1 of Theorem 7.
        unfittable: Treatment of nodes that cannot be attacked (too few models, or a prior of 0 or 1): `leave-out`; or
            `non-member`, every decision is "non-member", which seems to be what the paper does.
    """

    cost_false_positive: float = 1.0
    cost_false_negative: float = 1.0
    unfittable: Unfittable = "leave-out"

    def __post_init__(self) -> None:
        for name in ("cost_false_positive", "cost_false_negative"):
            cost = getattr(self, name)
            if not 0 < cost < np.inf:
                raise InputError(f"{name} must be positive and finite, got {name}={cost}")
        if self.unfittable not in get_args(Unfittable):
            choices = " or ".join(get_args(Unfittable))
            raise InputError(f"unfittable must be {choices}, got unfittable={self.unfittable!r}")

    @property
    def threshold(self) -> float:
        """log(c_0/c_1): a decision score above it means "member"."""
        return float(np.log(self.cost_false_positive) - np.log(self.cost_false_negative))


DEFAULT_SETTINGS = DecisionSettings()
