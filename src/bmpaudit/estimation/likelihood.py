"""The marginal likelihood of ε: latent error rates integrated out exactly."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.errors import InputError

Floats = npt.NDArray[np.float64]

GRID_DEPTH = 400.0  # nats: more than two priors, each followed for 2 x 42 nats down, make up for


@dataclass(frozen=True, eq=False)
class Likelihood:
    """L(ε_L, ε_R) = Π_k Pr((α_k, β_k) ∈ R_k)/|R_k| under the flat Beta posteriors of the error rates.

    This is the joint density (7) of the paper with the uniform (α_k, β_k) integrated out, for binomial counts and up to
    the factor Π_k C(n0, A) C(n1, B) / ((n0+1)(n1+1)), which ε does not change. With attack strength s > 0 (remark of
    Appendix C) R_k is replaced by R_k minus R_{η^s}(sε_L, sε_R).

    Attributes:
        counts: Rows (n0, n1, A, B), shape (K, 4).
        log_prior_odds: log η, shape (K,); 0 for MP.
    """

    counts: Floats
    log_prior_odds: Floats

    def __call__(
        self,
        epsilon_left: npt.ArrayLike,
        epsilon_right: npt.ArrayLike,
        strength: float = 0.0,
        cutoff: npt.ArrayLike = -np.inf,
    ) -> Floats:
        """Log L for each pair; arrays broadcast. -∞ where R is empty or flat for some node.

        A value below `cutoff` may come out as -∞ too, which saves most of the time where L is out of the question.
        """
        _check_strength(strength)
        given = (epsilon_left, epsilon_right, cutoff)
        left, right, lowest = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in given))
        values = _native.log_likelihood(
            np.ascontiguousarray(self.counts),
            np.ascontiguousarray(self.log_prior_odds),
            np.ascontiguousarray(left.ravel()),
            np.ascontiguousarray(right.ravel()),
            np.ascontiguousarray(lowest.ravel()),
            strength,
            os.cpu_count() or 1,
        )
        return values.reshape(left.shape)

    def on_grid(
        self, epsilon_left: Floats, epsilon_right: Floats, strength: float = 0.0, depth: float = GRID_DEPTH
    ) -> Floats:
        """Log L of all pairs of two lists, shape (num_left, num_right); far faster than one by one.

        A value more than `depth` below the highest may come out as -∞.
        """
        _check_strength(strength)
        return _native.grid_log_likelihood(
            np.ascontiguousarray(self.counts),
            np.ascontiguousarray(self.log_prior_odds),
            np.ascontiguousarray(epsilon_left, dtype=np.float64),
            np.ascontiguousarray(epsilon_right, dtype=np.float64),
            depth,
            strength,
            os.cpu_count() or 1,
        )


def _check_strength(strength: float) -> None:
    if not 0 <= strength < 1:
        raise InputError(f"strength must be in [0, 1), got strength={strength}")
