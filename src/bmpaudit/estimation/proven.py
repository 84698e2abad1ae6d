"""What errors prove about one parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bmpaudit.arrays import Floats


@dataclass(frozen=True, eq=False)
class ProvenEpsilon:
    """The lower confidence bound on one parameter.

    Attributes:
        bound: Largest value that the errors prove, over all nodes; None if they prove nothing.
        floor: What holds without any attack, whatever the model (Prop. 1); a confidence bound if priors were sampled.
        node: Node that attains `bound`; None if nothing is proven.
        term: Ratio of error rates that attains it; None if nothing is proven.
        per_node: What each node's errors prove, shape (K,); -∞ where they prove nothing. All of them hold together.
    """

    bound: float | None
    floor: float
    node: Any
    term: str | None
    per_node: Floats

    @property
    def is_beyond_floor(self) -> bool:
        """Whether the errors prove more than the sampler alone implies."""
        return self.bound is not None and self.bound > self.floor

    def moved(self, bound: float, floor: float, per_node: Floats) -> ProvenEpsilon:
        """The same statement about another parameter, of which this one is a non-decreasing function."""
        if self.bound is None or bound == -np.inf:
            return ProvenEpsilon(None, floor, None, None, per_node)
        return replace(self, bound=bound, floor=floor, per_node=per_node)

    def __str__(self) -> str:
        return "nothing" if self.bound is None else f"≥ {self.bound:6.3f}"


def larger(first: ProvenEpsilon, second: ProvenEpsilon) -> ProvenEpsilon:
    """Both statements as one, about a parameter that each of them bounds."""
    is_second = second.bound is not None and (first.bound is None or second.bound > first.bound)
    return replace(
        second if is_second else first,
        floor=max(first.floor, second.floor),
        per_node=np.maximum(first.per_node, second.per_node),
    )
