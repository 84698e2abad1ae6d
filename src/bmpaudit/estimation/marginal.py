"""The distribution of one parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy.typing as npt

from bmpaudit.arrays import Floats


class Marginal(Protocol):
    """The distribution of one parameter, from quadrature or from Markov chains."""

    def quantile(self, probability: npt.ArrayLike) -> Floats: ...  # noqa: D102
    def cdf(self, x: npt.ArrayLike) -> Floats: ...  # noqa: D102
    def pdf(self, x: npt.ArrayLike) -> Floats: ...  # noqa: D102
    def mean(self) -> float: ...  # noqa: D102


@dataclass(frozen=True)
class CredibleInterval:
    """An interval that contains a parameter with a given probability, with equal tails on both sides."""

    low: float
    high: float
    level: float

    @property
    def width(self) -> float:
        """Distance between the ends."""
        return self.high - self.low
