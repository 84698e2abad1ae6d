"""The distribution of a parameter, given by draws of Markov chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Floats

BINS = 60


@dataclass(frozen=True, eq=False)
class DrawsMarginal:
    """Draws of one parameter from all chains, with the methods of an exact density.

    Attributes:
        draws: Draws, shape (num_draws,).
    """

    draws: Floats

    def quantile(self, probability: npt.ArrayLike) -> Floats:
        """Quantiles of the draws."""
        return np.asarray(np.quantile(self.draws, np.asarray(probability, dtype=np.float64)))

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """Share of draws up to x."""
        return np.searchsorted(np.sort(self.draws), np.asarray(x), side="right") / len(self.draws)

    def pdf(self, x: npt.ArrayLike) -> Floats:
        """The density by a histogram of the draws."""
        heights, edges = np.histogram(self.draws, bins=BINS, density=True)
        points = np.asarray(x, dtype=np.float64)
        bins = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, BINS - 1)
        return np.where((points >= edges[0]) & (points <= edges[-1]), heights[bins], 0.0)

    def mean(self) -> float:
        """Mean of the draws."""
        return float(self.draws.mean())
