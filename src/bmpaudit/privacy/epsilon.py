"""A pair (ε_L, ε_R), and the checks that privacy parameters and prior odds have in common."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""Float arrays; as with any NumPy function, scalars in give NumPy scalars out."""

Value = TypeVar("Value", float, Floats)


@dataclass(frozen=True)
class EpsilonPair(Generic[Value]):
    """The two parameters of (ε_L, ε_R)-BMP or -BMDP.

    Attributes:
        left: ε_L, the bound on the posterior log-odds of *non*-membership.
        right: ε_R, the bound on the posterior log-odds of membership.
    """

    left: Value
    right: Value


def check_epsilon(**parameters: npt.ArrayLike) -> list[Floats]:
    """Privacy parameters as float arrays: any real number or ±∞.

    Raises:
        ValueError: if one is NaN.
    """
    arrays = []
    for name, given in parameters.items():
        array = np.asarray(given, dtype=np.float64)
        if np.isnan(array).any():
            raise ValueError(f"{name} must be a number or infinite, got {name}={given!r}")
        arrays.append(array)
    return arrays


def check_probability(**parameters: npt.ArrayLike) -> list[Floats]:
    """Probabilities as float arrays.

    Raises:
        ValueError: if one is not in [0, 1].
    """
    arrays = []
    for name, given in parameters.items():
        array = np.asarray(given, dtype=np.float64)
        if not ((array >= 0) & (array <= 1)).all():
            wrong = array[~((array >= 0) & (array <= 1))][0]
            raise ValueError(f"{name} must be in [0, 1], got {name}={wrong}")
        arrays.append(array)
    return arrays


def log_prior_odds(prior_odds: npt.ArrayLike) -> Floats:
    """Log η, which is -∞ for a node that is never and ∞ for one that is always in the sample.

    Raises:
        ValueError: if η is negative or NaN.
    """
    odds = np.asarray(prior_odds, dtype=np.float64)
    if not (odds >= 0).all():
        raise ValueError(f"prior_odds must be in [0, ∞], got prior_odds={odds[~(odds >= 0)][0]}")
    with np.errstate(divide="ignore"):
        return np.log(odds)


def log_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """log(numerator/denominator) for values ≥ 0; NaN for 0/0, which constrains nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(numerator) - np.log(denominator)
