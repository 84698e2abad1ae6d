"""Scores of any attack, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.errors import InputError


@dataclass(frozen=True, eq=False)
class ScoredModels:
    """Scores of J models about N nodes, with the truth.

    Attributes:
        log_likelihood_ratio: Scores, higher means more likely a member, shape (J, N); ±∞ is allowed.
        memberships: Whether each node was in each model's training sample, shape (J, N).
        indices: Number of each model, shape (J,).

    Raises:
        InputError: if shapes do not fit, or a score is NaN.
    """

    log_likelihood_ratio: Floats
    memberships: Flags
    indices: Ints

    def __post_init__(self) -> None:
        scores = np.asarray(self.log_likelihood_ratio, dtype=np.float64)
        memberships = np.asarray(self.memberships)
        indices = np.asarray(self.indices, dtype=np.int64)
        if memberships.ndim != 2 or scores.shape != memberships.shape or indices.shape != memberships.shape[:1]:
            raise InputError(
                f"scores and memberships must have one shape (num_models, num_nodes) and indices (num_models,), got "
                f"{scores.shape}, {memberships.shape} and {indices.shape}"
            )
        if memberships.dtype != np.bool_ and not np.isin(memberships, (0, 1)).all():
            raise InputError(f"memberships must be booleans, got {memberships.dtype}")
        is_nan = np.isnan(scores)
        if is_nan.any():
            model, node = np.unravel_index(int(is_nan.argmax()), scores.shape)
            raise InputError(f"scores must not be NaN, got one for model {indices[model]}, node {node}")
        object.__setattr__(self, "log_likelihood_ratio", scores)
        object.__setattr__(self, "memberships", memberships.astype(np.bool_, copy=False))
        object.__setattr__(self, "indices", indices)

    @classmethod
    def of_log_odds(cls, log_odds: Floats, prior_prob: Floats, memberships: Flags, indices: Ints) -> ScoredModels:
        """From posterior log-odds of membership, shape (J, N), and the priors that went into them, shape (N,)."""
        odds = log_prior_odds(np.asarray(prior_prob, dtype=np.float64))
        # Nothing is guessed about nodes whose prior is 0 or 1, so their scores do not matter.
        ratios = np.asarray(log_odds, dtype=np.float64) - np.where(np.isfinite(odds), odds, 0.0)
        return cls(ratios, memberships, indices)

    @property
    def num_models(self) -> int:
        """J."""
        return len(self.indices)
