"""By how much one ε exceeds another, of which two posteriors tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from bmpaudit.errors import InputError
from bmpaudit.estimation.density import FINE_DEGREE, PiecewiseDensity
from bmpaudit.estimation.draws import DrawsMarginal
from bmpaudit.estimation.posterior import Marginal

Floats = npt.NDArray[np.float64]

# A density is of degree 2 * FINE_DEGREE on a panel, its integral of one more: so many nodes are exact for the product.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(2 * FINE_DEGREE + 1)
FURTHEST = 1e-9  # probability beyond which no quantile is looked for


@dataclass(frozen=True, eq=False)
class DifferenceMarginal:
    """The distribution of ε₂ - ε₁ for independent ε₁ and ε₂.

    P(ε₂ - ε₁ ≤ t) = ∫ p₁(y) F₂(y + t) dy. Between the panels' ends of both densities this is the integral of a
    polynomial, which Gauss-Legendre does exactly; of Markov chains it is the mean over their draws.

    Attributes:
        first: What is subtracted.
        second: From what.
    """

    first: Marginal
    second: Marginal

    def cdf(self, t: npt.ArrayLike) -> Floats:
        """The distribution function."""
        return self._at(t, self._cdf)

    def pdf(self, t: npt.ArrayLike) -> Floats:
        """The density."""
        return self._at(t, self._pdf)

    def quantile(self, probability: npt.ArrayLike) -> Floats:
        """The inverse of `cdf`."""
        wanted = np.asarray(probability, dtype=np.float64)
        if not ((wanted > FURTHEST) & (wanted < 1 - FURTHEST)).all():
            raise InputError(f"a quantile's probability must be in (0, 1), got {probability!r}")
        (low_1, high_1), (low_2, high_2) = (
            marginal.quantile([FURTHEST / 4, 1 - FURTHEST / 4]) for marginal in (self.first, self.second)
        )
        low, high = float(low_2 - high_1) - 1e-9, float(high_2 - low_1) + 1e-9
        return self._at(wanted, lambda level: brentq(lambda t: self._cdf(t) - level, low, high, xtol=1e-10))

    def mean(self) -> float:
        """The expectation."""
        return self.second.mean() - self.first.mean()

    def probability_above(self, threshold: float = 0.0) -> float:
        """How probable it is that the second exceeds the first by more than this; without it, that it is larger."""
        return 1.0 - self._cdf(threshold)

    def _cdf(self, t: float) -> float:
        if isinstance(self.second, DrawsMarginal):
            return float(1 - self.first.cdf(self.second.draws - t).mean())
        points, weights = self._points(t)
        return float(np.clip(weights @ self.second.cdf(points + t), 0.0, 1.0))

    def _pdf(self, t: float) -> float:
        if isinstance(self.second, DrawsMarginal):
            return float(self.first.pdf(self.second.draws - t).mean())
        points, weights = self._points(t)
        return float(weights @ self.second.pdf(points + t))

    def _points(self, t: float) -> tuple[Floats, Floats]:
        """Values of the first and their weights, which sum to 1."""
        if isinstance(self.first, DrawsMarginal):
            return self.first.draws, np.full(len(self.first.draws), 1 / len(self.first.draws))
        if not isinstance(self.first, PiecewiseDensity) or not isinstance(self.second, PiecewiseDensity):
            raise InputError("the difference is known of exact posteriors and of Markov chains only")
        own = self.first.edges
        shifted = self.second.edges - t
        edges = np.unique(np.concatenate([own, shifted[(shifted > own[0]) & (shifted < own[-1])]]))
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        points = (middle[:, None] + half[:, None] * NODES).ravel()
        return points, (half[:, None] * WEIGHTS).ravel() * self.first.pdf(points)

    @staticmethod
    def _at(values: npt.ArrayLike, function: Callable[[float], float]) -> Floats:
        given = np.asarray(values, dtype=np.float64)
        found = [function(float(value)) for value in given.ravel()]
        return np.array(found, dtype=np.float64).reshape(given.shape)
