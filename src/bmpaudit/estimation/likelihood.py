"""The marginal likelihood of ε: latent error rates integrated out exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.arrays import Floats
from bmpaudit.checks import thread_count
from bmpaudit.errors import InputError

GRID_DEPTH = 400.0  # nats: more than two priors, each followed for 2 x 42 nats down, make up for


@dataclass(frozen=True, eq=False)
class Likelihood:
    """L(ε_L, ε_R) = Π_k Pr((α_k, β_k) ∈ R_k)/|R_k| under the flat Beta posteriors of the error rates.

    This is the joint density (7) of the paper with the uniform (α_k, β_k) integrated out, for binomial counts and up to
    the factor Π_k C(n0, A) C(n1, B) / ((n0+1)(n1+1)), which does not depend on ε. With attack strength s > 0 (remark of
    Appendix C) R_k is replaced by R_k minus R_{η^s}(sε_L, sε_R).

    Attributes:
        counts: Rows (n0, n1, A, B), shape (K, 4).
        log_prior_odds: log η, shape (K,); 0 for MP.
        num_threads: Number of threads; all processors if None. It changes nothing but the time.
    """

    counts: Floats
    log_prior_odds: Floats
    num_threads: int | None = None

    def __call__(
        self,
        epsilon_left: npt.ArrayLike,
        epsilon_right: npt.ArrayLike,
        strength: float = 0.0,
        cutoff: npt.ArrayLike = -np.inf,
    ) -> Floats:
        """Log L for each pair; arrays broadcast. -∞ where R is empty or has no area for some node.

        A value below `cutoff` may also be returned as -∞, which saves most of the time where L is negligible.
        """
        _check_strength(strength)
        arguments = (epsilon_left, epsilon_right, cutoff)
        left, right, lowest = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in arguments))
        values = _native.log_likelihood(
            np.ascontiguousarray(self.counts),
            np.ascontiguousarray(self.log_prior_odds),
            np.ascontiguousarray(left.ravel()),
            np.ascontiguousarray(right.ravel()),
            np.ascontiguousarray(lowest.ravel()),
            strength,
            thread_count(self.num_threads),
        )
        return values.reshape(left.shape)

    def on_grid(
        self, epsilon_left: Floats, epsilon_right: Floats, strength: float = 0.0, depth: float = GRID_DEPTH
    ) -> Floats:
        """Log L of all pairs of two lists, shape (num_left, num_right); much faster than pair by pair.

        A value more than `depth` below the highest may be returned as -∞.
        """
        _check_strength(strength)
        return _native.grid_log_likelihood(
            np.ascontiguousarray(self.counts),
            np.ascontiguousarray(self.log_prior_odds),
            np.ascontiguousarray(epsilon_left, dtype=np.float64),
            np.ascontiguousarray(epsilon_right, dtype=np.float64),
            depth,
            strength,
            thread_count(self.num_threads),
        )


def _check_strength(strength: float) -> None:
    if not 0 <= strength < 1:
        raise InputError(f"strength must be in [0, 1), got strength={strength}")
