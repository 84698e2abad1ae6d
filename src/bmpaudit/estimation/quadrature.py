"""Composite Gauss-Legendre quadrature."""

from functools import cache

import numpy as np

from bmpaudit.arrays import Floats


@cache
def legendre_rule(num_points: int) -> tuple[Floats, Floats]:
    """Points and weights on [-1, 1]."""
    points, weights = np.polynomial.legendre.leggauss(num_points)
    points.setflags(write=False)
    weights.setflags(write=False)
    return points, weights


def gauss_legendre(edges: Floats, num_points: int) -> tuple[Floats, Floats]:
    """Points and weights with `num_points` in each of the panels between neighbouring edges.

    >>> points, weights = gauss_legendre(np.array([0.0, 1.0, 3.0]), 2)
    >>> round(float(weights @ points**3), 9)
    20.25
    """
    points, weights = legendre_rule(num_points)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * points).ravel(), (half[:, None] * weights).ravel()
