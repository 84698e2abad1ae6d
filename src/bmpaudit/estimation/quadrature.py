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


def gauss_of_measure(points: Floats, mass: Floats, num_points: int) -> tuple[Floats, Floats]:
    """The Gauss rule of a measure that is given by points and their mass: right for polynomials of degree 2n - 1.

    By Lanczos' method: the rule's points are the eigenvalues of a tridiagonal matrix.

    >>> points, weights = gauss_of_measure(np.linspace(-1, 1, 101), np.full(101, 1.0), 2)
    >>> bool(abs(weights @ points**2 - (np.linspace(-1, 1, 101) ** 2).sum()) < 1e-12)
    True
    """
    centre, scale = float(points.mean()), float(np.ptp(points)) or 1.0
    x = (points - centre) / scale
    num_points = min(num_points, int(np.count_nonzero(mass)))
    basis = np.zeros((num_points, len(x)))
    diagonal, beside = np.zeros(num_points), np.zeros(num_points)
    vector = np.sqrt(mass / mass.sum())
    for n in range(num_points):
        basis[n] = vector
        vector = x * basis[n]
        diagonal[n] = vector @ basis[n]
        for _ in range(2):  # once is not enough to keep them orthogonal
            vector = vector - basis[: n + 1].T @ (basis[: n + 1] @ vector)
        beside[n] = float(np.linalg.norm(vector))
        vector = vector / max(beside[n], 1e-300)
    matrix = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    values, vectors = np.linalg.eigh(matrix)
    return centre + scale * values, vectors[0] ** 2 * mass.sum()
