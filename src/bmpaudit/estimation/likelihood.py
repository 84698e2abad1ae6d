"""The marginal likelihood of ε: latent error rates integrated out exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.arrays import Floats, Ints
from bmpaudit.checks import thread_count
from bmpaudit.errors import InputError
from bmpaudit.estimation.rows import Rows, distinct_rows
from bmpaudit.interfaces import Progress

STRONGEST = 1 - 1e-7  # the ring of a larger s is too thin for double precision
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

    @cached_property
    def _distinct(self) -> tuple[Rows, Ints]:
        return distinct_rows(self.counts, self.log_prior_odds)

    @property
    def rows(self) -> Rows:
        """The different rows: what costs time."""
        return self._distinct[0]

    @property
    def row_of_node(self) -> Ints:
        """The row of each node, shape (K,)."""
        return self._distinct[1]

    def __call__(
        self,
        epsilon_left: npt.ArrayLike,
        epsilon_right: npt.ArrayLike,
        strength: float = 0.0,
        cutoff: npt.ArrayLike = -np.inf,
        *,
        rows: Rows | None = None,
        progress: Progress | None = None,
    ) -> Floats:
        """Log L for each pair; arrays broadcast. -∞ where R is empty or has no area for some node.

        A value below `cutoff` may also be returned as -∞, which saves most of the time where L is negligible.

        Args:
            epsilon_left: ε_L.
            epsilon_right: ε_R.
            strength: Attack strength s.
            cutoff: What may come out as -∞.
            rows: Rows in the place of all, such as a sketch of them.
            progress: Called with the number of rows done.
        """
        _check_strength(strength)
        arguments = (epsilon_left, epsilon_right, cutoff)
        left, right, lowest = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in arguments))
        given = self.rows if rows is None else rows
        values = _native.log_likelihood(
            given.counts,
            given.log_prior_odds,
            given.times,
            np.ascontiguousarray(left.ravel()),
            np.ascontiguousarray(right.ravel()),
            np.ascontiguousarray(lowest.ravel()),
            strength,
            thread_count(self.num_threads),
            progress,
        )
        return values.reshape(left.shape)

    def of_rows(self, epsilon_left: Floats, epsilon_right: Floats, strength: float = 0.0) -> Floats:
        """Log L of each row alone, once, for each of P pairs, shape (R, P)."""
        _check_strength(strength)
        return _native.node_log_likelihood(
            self.rows.counts,
            self.rows.log_prior_odds,
            np.ascontiguousarray(epsilon_left),
            np.ascontiguousarray(epsilon_right),
            strength,
            thread_count(self.num_threads),
        )

    def on_grid(
        self,
        epsilon_left: Floats,
        epsilon_right: Floats,
        strength: float = 0.0,
        depth: float = GRID_DEPTH,
        *,
        rows: Rows | None = None,
        progress: Progress | None = None,
    ) -> Floats:
        """Log L of all pairs of two lists, shape (num_left, num_right); much faster than pair by pair.

        A value more than `depth` below the highest may be returned as -∞.
        """
        _check_strength(strength)
        given = self.rows if rows is None else rows
        return _native.grid_log_likelihood(
            given.counts,
            given.log_prior_odds,
            given.times,
            np.ascontiguousarray(epsilon_left, dtype=np.float64),
            np.ascontiguousarray(epsilon_right, dtype=np.float64),
            depth,
            strength,
            thread_count(self.num_threads),
            progress,
        )

    def on_rays(
        self,
        low: tuple[float, float],
        distances: Floats,
        directions: tuple[Floats, Floats],
        *,
        rows: Rows | None = None,
        progress: Progress | None = None,
    ) -> Floats:
        """Log L along rays from a point, shape (num_distances, num_directions); faster than pair by pair near a floor.

        Args:
            low: The point (ε_L, ε_R) that all rays start from.
            distances: How far to go along each.
            directions: What a distance of 1 adds to ε_L and to ε_R, each of shape (num_directions,).
            rows: Rows in the place of all, such as a sketch of them.
            progress: Called with the number of rows done.
        """
        given = self.rows if rows is None else rows
        return _native.ray_log_likelihood(
            given.counts,
            given.log_prior_odds,
            given.times,
            low[0],
            low[1],
            np.ascontiguousarray(distances, dtype=np.float64),
            np.ascontiguousarray(directions[0], dtype=np.float64),
            np.ascontiguousarray(directions[1], dtype=np.float64),
            thread_count(self.num_threads),
            progress,
        )


def _check_strength(strength: float) -> None:
    if not 0 <= strength < 1:
        raise InputError(f"strength must be in [0, 1), got strength={strength}")
    if strength > STRONGEST:
        raise InputError(f"strength must be at most 1 - 1e-7, or the ring has no width, got strength={strength!r}")
