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
    """The two parameters of (ε_L, ε_R)-BMP or -BMDP."""

    left: Value  # ε_L, the bound on the posterior log-odds of *non*-membership
    right: Value  # ε_R, the bound on the posterior log-odds of membership


def check_epsilon(**parameters: npt.ArrayLike) -> list[Floats]:
    """Privacy parameters as float arrays: any real number or ±∞, but no NaN."""
    arrays = []
    for name, given in parameters.items():
        array = np.asarray(given, dtype=np.float64)
        if np.isnan(array).any():
            raise ValueError(f"{name} must be a number or infinite, got {name}={given!r}")
        arrays.append(array)
    return arrays


def check_non_negative(**parameters: npt.ArrayLike) -> list[Floats]:
    """Parameters of MP and MDP as float arrays, which are at least 0."""
    arrays = check_epsilon(**parameters)
    for array in arrays:
        if (array < 0).any():
            raise ValueError(f"the ε of MP and MDP must be ≥ 0, got {array.min()}")
    return arrays


def check_probability(**parameters: npt.ArrayLike) -> list[Floats]:
    """Probabilities, which must be in [0, 1], as float arrays."""
    arrays = []
    for name, given in parameters.items():
        array = np.asarray(given, dtype=np.float64)
        if not ((array >= 0) & (array <= 1)).all():
            wrong = array[~((array >= 0) & (array <= 1))][0]
            raise ValueError(f"{name} must be in [0, 1], got {name}={wrong}")
        arrays.append(array)
    return arrays


def log_prior_odds(prior_odds: npt.ArrayLike) -> Floats:
    """Log η for η in [0, ∞]: -∞ for a node that is never and ∞ for one that is always in the sample."""
    odds = np.asarray(prior_odds, dtype=np.float64)
    if not (odds >= 0).all():
        raise ValueError(f"prior_odds must be in [0, ∞], got prior_odds={odds[~(odds >= 0)][0]}")
    with np.errstate(divide="ignore"):
        return np.log(odds)


def sum_where_certain_wins(term: npt.ArrayLike, decisive: npt.ArrayLike) -> Floats:
    """Term + decisive, where an infinite `decisive` wins over an opposite infinity."""
    with np.errstate(invalid="ignore"):
        total: Floats = np.where(np.isinf(decisive), decisive, np.add(term, decisive))[()]
    return total


def log_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """log(numerator/denominator) for values ≥ 0; NaN for 0/0, which constrains nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(numerator) - np.log(denominator)
