"""How much models could prove if every guess were right, and how many models it takes to prove more than some ε."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.special

from bmpaudit.proof.anytime import LOG_WEIGHTS, STAKES, WEIGHT_OF_ALL, AnytimeBound
from bmpaudit.proof.bounds import PRECISION, check_level, guesses_needed, most_provable
from bmpaudit.proof.guessed import MIN_MODELS
from bmpaudit.proof.prove import FIRST_FIT, Method, default_num_fitting


def provable(num_challenged: int, level: float = 0.95, method: Method = "one-guess") -> float:
    """The bound on ε_R that so many challenged models prove if every guess is right; -∞ without any.

    >>> round(provable(500), 3), round(provable(500, method="prequential"), 3)
    (5.114, 4.957)
    """
    if method == "one-guess":
        return most_provable(num_challenged, level)
    bound = AnytimeBound(level)
    bound.update_all(np.ones(num_challenged))
    return -math.inf if bound.value is None else bound.value


def models_to_prove_more(epsilon: float, level: float = 0.95, method: Method = "one-guess") -> int:
    """The smallest number of models that can prove a bound above ε on ε_R, those to fit on included.

    >>> models_to_prove_more(5.0), models_to_prove_more(5.0, method="prequential")
    (670, 586)
    """
    num_guesses = _guesses_to_prove_more(epsilon, level, method)
    if method == "prequential":
        return FIRST_FIT + num_guesses
    return _first(
        lambda number: number - default_num_fitting(number) >= num_guesses, MIN_MODELS, MIN_MODELS + 2 * num_guesses
    )


def _guesses_to_prove_more(epsilon: float, level: float, method: Method) -> int:
    above = epsilon + PRECISION  # to which bounds are found
    num_guesses = guesses_needed(above, level)
    if method == "one-guess":
        return num_guesses
    log_target = -math.log(check_level(level))
    # The wealth of `AnytimeBound` if every guess is right: a hit multiplies what is bet with stake c by 1 + c e^-ε.
    gains = np.log1p(STAKES * math.exp(-above))
    with_one_stake = (log_target - math.log(WEIGHT_OF_ALL)) / float(gains[-1])
    return _first(
        lambda number: bool(scipy.special.logsumexp(LOG_WEIGHTS + number * gains) >= log_target),
        num_guesses,
        math.ceil(with_one_stake),
    )


def _first(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from `low` to `high` that is enough; `high` is."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
