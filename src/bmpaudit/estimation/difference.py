"""By how much one ε exceeds another, given the posteriors of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.estimation.density import FINE_DEGREE, PiecewiseDensity
from bmpaudit.estimation.draws import DrawsMarginal
from bmpaudit.estimation.marginal import Marginal
from bmpaudit.estimation.quadrature import gauss_legendre

# On a panel a density has degree 2 * FINE_DEGREE, its integral one more: so many points are exact for the product.
POINTS_PER_PANEL = 2 * FINE_DEGREE + 1
FURTHEST = 1e-9  # probability beyond which no quantile is computed


@dataclass(frozen=True, eq=False)
class DifferenceMarginal:
    """The distribution of ε₂ - ε₁ for independent ε₁ and ε₂.

    P(ε₂ - ε₁ ≤ t) = ∫ p₁(y) F₂(y + t) dy. Between the ends of both densities' panels the integrand is a polynomial, for
    which Gauss-Legendre quadrature is exact; for Markov chains it is the mean over the draws.

    Attributes:
        first: Distribution of ε₁, which is subtracted.
        second: Distribution of ε₂.
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
        from scipy.optimize import brentq  # takes long to import, and only comparisons need it

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
        """Probability that the second exceeds the first by more than a threshold."""
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
        """Values of the first parameter and their weights, which sum to 1."""
        if isinstance(self.first, DrawsMarginal):
            return self.first.draws, np.full(len(self.first.draws), 1 / len(self.first.draws))
        if not isinstance(self.first, PiecewiseDensity) or not isinstance(self.second, PiecewiseDensity):
            raise InputError("a difference needs marginals of exact posteriors or of Markov chains")
        own = self.first.edges
        shifted = self.second.edges - t
        edges = np.unique(np.concatenate([own, shifted[(shifted > own[0]) & (shifted < own[-1])]]))
        points, weights = gauss_legendre(edges, POINTS_PER_PANEL)
        return points, weights * self.first.pdf(points)

    @staticmethod
    def _at(values: npt.ArrayLike, function: Callable[[float], float]) -> Floats:
        points = np.asarray(values, dtype=np.float64)
        results = [function(float(point)) for point in points.ravel()]
        return np.array(results, dtype=np.float64).reshape(points.shape)
