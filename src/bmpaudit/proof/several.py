"""Several guesses about each model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.proof.anytime import mean_bound
from bmpaudit.proof.bounds import epsilon_bound


@dataclass(frozen=True, eq=False)
class SeveralGuesses:
    """The k surest guesses about each of G challenged models, and how many of them are right.

    Attributes:
        num_hits: Number of correct guesses about each model, shape (G,).
        guesses_per_model: Number of guesses about each model, k.
        level: Confidence level of each bound.
    """

    num_hits: Ints
    guesses_per_model: int
    level: float

    @property
    def bmdp(self) -> float | None:
        """Bound on ε_R of BMDP (ε_L for guesses of non-members): all guesses count (see `epsilon_bound`)."""
        return epsilon_bound(int(self.num_hits.sum()), len(self.num_hits) * self.guesses_per_model, self.level)

    @property
    def bmp(self) -> float | None:
        """Bound on ε_R of BMP (ε_L): the guesses about a model count as one (see `mean_bound`)."""
        return mean_bound(self.num_hits / self.guesses_per_model, self.level)


def several_guesses(
    log_odds: Floats, memberships: Flags, guesses_per_model: int, *, says_member: bool = True, level: float = 0.95
) -> SeveralGuesses:
    """Guesses that the k nodes with the highest posterior log-odds are in, or those with the lowest are not.

    Args:
        log_odds: Posterior log-odds of challenged models, by a rule fitted on other models, shape (G, N).
        memberships: The truth, shape (G, N).
        guesses_per_model: k, chosen without looking at these models.
        says_member: Whether to guess members, for ε_R, or non-members, for ε_L.
        level: Confidence level.

    Raises:
        InputError: if shapes differ, log-odds are NaN, or there are fewer than k nodes.
    """
    values, truth = np.asarray(log_odds, dtype=np.float64), np.asarray(memberships, dtype=np.bool_)
    check_at_least_one(guesses_per_model=guesses_per_model)
    if values.ndim != 2 or values.shape != truth.shape:
        raise InputError(
            f"log-odds and memberships must have one shape (num_models, num_nodes), got {values.shape} and "
            f"{truth.shape}"
        )
    if guesses_per_model > values.shape[1]:
        raise InputError(
            f"guesses_per_model must be at most {values.shape[1]}, the number of nodes, got {guesses_per_model}"
        )
    if np.isnan(values).any():
        raise InputError("log-odds must not be NaN")
    surest = np.argsort(-values if says_member else values, axis=1, kind="stable")[:, :guesses_per_model]
    is_hit = np.take_along_axis(truth, surest, axis=1) == says_member
    return SeveralGuesses(is_hit.sum(axis=1, dtype=np.int64), int(guesses_per_model), level)
