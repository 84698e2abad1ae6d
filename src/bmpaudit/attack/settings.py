"""What changes the answer of an attack."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError

Unfittable = Literal["leave-out", "non-member"]


@dataclass(frozen=True)
class AttackSettings:
    """How Algorithm 2 decides, and on which nodes.

    Attributes:
        min_models: Models that each hypothesis is fitted on, at least; counted after the challenged model is removed.
        unfittable: What becomes of nodes with fewer, and of those with a prior of 0 or 1. `leave-out`; or
            `non-member`, every decision is "non-member", which seems to be what the paper does.
        pooled_variance: Whether the two sides share one σ; steadier with few models.
        min_sigma: σ is at least this.
        cost_false_positive: c_0 of Theorem 7.
        cost_false_negative: c_1 of Theorem 7.
    """

    min_models: int = 2
    unfittable: Unfittable = "leave-out"
    pooled_variance: bool = False
    min_sigma: float = 0.0
    cost_false_positive: float = 1.0
    cost_false_negative: float = 1.0

    def __post_init__(self) -> None:
        check_at_least_one(min_models=self.min_models)
        if self.unfittable not in get_args(Unfittable):
            choices = " or ".join(get_args(Unfittable))
            raise InputError(f"unfittable must be {choices}, got unfittable={self.unfittable!r}")
        if not 0 <= self.min_sigma < np.inf:
            raise InputError(f"min_sigma must be at least 0 and finite, got min_sigma={self.min_sigma}")
        for name in ("cost_false_positive", "cost_false_negative"):
            cost = getattr(self, name)
            if not 0 < cost < np.inf:
                raise InputError(f"{name} must be positive and finite, got {name}={cost}")

    @property
    def threshold(self) -> float:
        """log(c_0/c_1): a score above it means "member"."""
        return float(np.log(self.cost_false_positive) - np.log(self.cost_false_negative))


DEFAULT_SETTINGS = AttackSettings()
