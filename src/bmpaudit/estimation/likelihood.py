"""The likelihood of ε given error counts, its priors, and where a posterior can live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation.definitions import name_of, parameter_names, smallest_values
from bmpaudit.estimation.density import NOTHING
from bmpaudit.interfaces import Definition, Progress
from bmpaudit.privacy.epsilon import log_prior_odds
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.values import Flags, Floats, Ints

LogDensity = Callable[[Floats], Floats]
"""The logarithm of a density of ε, up to a constant."""

NEAREST, FURTHEST = 1e-3, 1e6  # distances from the floor between which a prior is scanned
SCAN_POINTS = 4_000
MEANS, VARIANCES = (-1e6, 1e6), (1e-12, 1e12)  # from … to
LEAST_LIKELY = -1e9  # nats: with more, sums of logarithms have no digits left for the likelihood
STRONGEST = 1 - 1e-7  # the ring of a larger s is too thin for double precision
GRID_DEPTH = 400.0  # nats: more than two priors, each followed for 2 x 42 nats down, make up for
LARGEST_COUNT = 2**40  # beyond it, error rates are too close to 0 and 1 for double precision


@dataclass(frozen=True)
class NormalPrior:
    """ε ~ N(mean, variance), restricted to where the likelihood is positive.

    The paper's N(0, 10) has *variance* 10: it reproduces the published upper percentiles, standard deviation 10 does
    not.

    Attributes:
        mean: Mean of the normal distribution.
        variance: Variance of the normal distribution.
    """

    mean: float = 0.0
    variance: float = 10.0

    def __post_init__(self) -> None:
        if not self.variance > 0:
            raise InputError(f"the prior's variance must be positive, got variance={self.variance}")
        for name, (least, most) in (("mean", MEANS), ("variance", VARIANCES)):
            if not least <= getattr(self, name) <= most:
                got = f"{name}={getattr(self, name)}"
                raise InputError(f"the prior's {name} must be in [{least:g}, {most:g}], got {got}")

    def __call__(self, epsilon: Floats) -> Floats:
        """The log-density."""
        return -0.5 * ((epsilon - self.mean) ** 2 / self.variance + np.log(2 * np.pi * self.variance))


@dataclass(frozen=True)
class StrengthPrior:
    """An unknown attack strength: s ~ Beta(a, b) (remark of Appendix C).

    Attributes:
        a: First parameter of the Beta distribution.
        b: Second parameter of the Beta distribution.
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < np.inf:
                raise InputError(f"the strength prior's {name} must be positive, got {name}={value}")

    def log_density(self, strength: Floats) -> Floats:
        """The log-density, up to a constant."""
        return (self.a - 1) * np.log(strength) + (self.b - 1) * np.log1p(-strength)


def upper_end(prior: LogDensity, low: float) -> float:
    """Where a prior, and so the posterior (the likelihood is flat up there), has become negligible for good.

    The prior may peak far above `low`, and be negligible before its peak as well. An `InputError` if it never becomes
    negligible, or is next to nothing everywhere above `low`.
    """
    distances = np.geomspace(NEAREST, FURTHEST, SCAN_POINTS)
    scan = prior(low + distances)
    likely = np.flatnonzero(scan > np.max(scan) - NOTHING)
    if not likely.size:  # 0 wherever it was evaluated, as the posterior will be
        return low + 1.0
    if np.max(scan) < LEAST_LIKELY:
        raise InputError(
            f"the prior's log-density must be at least {LEAST_LIKELY:g} for some ε > {low:.4g}, the least that these "
            f"nodes allow, got {np.max(scan):.4g}: choose a larger variance or mean"
        )
    if likely[-1] == SCAN_POINTS - 1:
        raise InputError("the prior must vanish for large ε: the likelihood does not")
    return low + float(distances[likely[-1] + 1])


def check_strength(strength: float | StrengthPrior, definition: Definition) -> None:
    """Raises `InputError` if a strength has no ring, or is to be estimated beside two other parameters."""
    if isinstance(strength, StrengthPrior):
        if len(definition.parameters) > 1:
            raise InputError(
                f"strength can be estimated for one-parameter definitions only, got definition={name_of(definition)!r}"
            )
    elif not 0 <= strength < 1:
        raise InputError(f"strength must be in [0, 1), got strength={strength}")
    elif strength > STRONGEST:
        raise InputError(f"strength must be at most 1 - 1e-7, or the ring has no width, got strength={strength!r}")


@dataclass(frozen=True, eq=False)
class Rows:
    """Different rows of counts and prior odds."""

    counts: Floats  # (n0, n1, A, B), shape (R, 4)
    log_prior_odds: Floats  # log η, shape (R,)
    times: Floats  # number of nodes that each row stands for, shape (R,)
    of_node: Ints  # the row of each node, shape (K,)

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """L(ε_L, ε_R) = Π_k Pr((α_k, β_k) ∈ R_k)/|R_k| under the flat Beta posteriors of the error rates.

    This is the joint density (7) of the paper with the uniform (α_k, β_k) integrated out, for binomial counts and up to
    the factor Π_k C(n0, A) C(n1, B) / ((n0+1)(n1+1)), which does not depend on ε. With attack strength s > 0 (remark of
    Appendix C) R_k is replaced by R_k minus R_{η^s}(sε_L, sε_R).
    """

    counts: Floats  # rows (n0, n1, A, B), shape (K, 4)
    log_prior_odds: Floats  # log η, shape (K,); 0 for MP
    num_threads: int | None = None  # all processors if None; it changes nothing but the time

    @cached_property
    def rows(self) -> Rows:
        """The different rows: what costs time."""
        table = np.column_stack([self.counts, self.log_prior_odds])
        distinct, row, times = np.unique(table, axis=0, return_inverse=True, return_counts=True)
        counts, log_odds = np.ascontiguousarray(distinct[:, :4]), np.ascontiguousarray(distinct[:, 4])
        return Rows(counts, log_odds, times.astype(np.float64), row.ravel())

    def __call__(
        self,
        epsilon_left: npt.ArrayLike,
        epsilon_right: npt.ArrayLike,
        strength: float = 0.0,
        cutoff: npt.ArrayLike = -np.inf,
        *,
        times: Floats | None = None,
        progress: Progress | None = None,
    ) -> Floats:
        """Log L for each pair; arrays broadcast. -∞ where R is empty or has no area for some node.

        A value below `cutoff` may also be returned as -∞, which saves most of the time where L is negligible. With
        `times`, each row stands for so many nodes; `progress` is called with the number of rows done.
        """
        pairs = np.broadcast_arrays(epsilon_left, epsilon_right, cutoff)
        left, right, lowest = (np.ascontiguousarray(each, dtype=np.float64).ravel() for each in pairs)
        times = self.rows.times if times is None else times
        counts, log_odds = self.rows.counts[times > 0], self.rows.log_prior_odds[times > 0]
        threads = thread_count(self.num_threads)
        return _native.log_likelihood(
            counts, log_odds, times[times > 0], left, right, lowest, strength, threads, progress
        ).reshape(pairs[0].shape)

    def of_rows(self, epsilon_left: Floats, epsilon_right: Floats, strength: float = 0.0) -> Floats:
        """Log L of each row alone, once, for each of P pairs, shape (R, P)."""
        left, right = np.ascontiguousarray(epsilon_left), np.ascontiguousarray(epsilon_right)
        threads = thread_count(self.num_threads)
        return _native.node_log_likelihood(self.rows.counts, self.rows.log_prior_odds, left, right, strength, threads)

    def on_grid(
        self,
        epsilon_left: Floats,
        epsilon_right: Floats,
        strength: float = 0.0,
        depth: float = GRID_DEPTH,
        *,
        progress: Progress | None = None,
    ) -> Floats:
        """Log L of all pairs of two lists, shape (num_left, num_right); much faster than pair by pair.

        A value more than `depth` below the highest may be returned as -∞.
        """
        rows, threads = self.rows, thread_count(self.num_threads)
        left, right = np.ascontiguousarray(epsilon_left), np.ascontiguousarray(epsilon_right)
        return _native.grid_log_likelihood(
            rows.counts, rows.log_prior_odds, rows.times, left, right, depth, strength, threads, progress
        )


def check_counts(counts: ErrorCounts) -> None:
    """Raises `InputError` if a node has more trials than the kernels can integrate over."""
    for name in ("num_out", "num_in"):
        values = getattr(counts, name)
        if values.max() > LARGEST_COUNT:
            node = int(values.argmax())
            raise InputError(f"{name} must be at most 2^40, got {name}={values[node]} for node {counts.node[node]}")


def used_nodes(counts: ErrorCounts, definition: Definition) -> Flags:
    """Which nodes count, shape (K,): all but those whose certain prior would rule out every finite ε; one is left."""
    check_counts(counts)
    is_empty = definition.empties_support(log_prior_odds(counts.prior_odds))
    if is_empty.all():
        raise InputError(f"{name_of(definition)} has no finite ε for these priors: every node's membership is certain")
    return ~is_empty


def likelihood_of(
    counts: ErrorCounts, definition: Definition, is_used: Flags | None = None, *, num_threads: int | None = None
) -> Likelihood:
    """The likelihood of the nodes that count, which `used_nodes` finds unless they are given."""
    chosen = used_nodes(counts, definition) if is_used is None else is_used
    table = np.column_stack([counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives])
    log_odds = log_prior_odds(counts.prior_odds[chosen])
    log_odds = log_odds if definition.uses_prior else np.zeros_like(log_odds)
    return Likelihood(table[chosen].astype(np.float64), log_odds, num_threads)


def support_lows(definition: Definition, log_odds: Floats, prior: LogDensity) -> dict[str, float]:
    """The lower end of each parameter's support: below it R is empty for some node (Prop. 1).

    R has a positive area for every node if and only if ε_L > -min log η and ε_R > max log η. `log_odds` are those of a
    `Likelihood`; the prior says where to start if they leave it open. An `InputError` if no value is large enough.
    """
    left, right = -float(log_odds.min()) + 0.0, float(log_odds.max()) + 0.0
    names, lows = parameter_names(definition), [left, right]
    if len(names) == 1:
        smallest = smallest_values(definition, np.array([left]), np.array([right]), strictly=True)
        lows = [max(float(value[0]) for value in smallest)]
    if np.inf in lows:
        raise InputError(
            f"{name_of(definition)} allows no finite {names[0]} for these priors: they need ε_L > {left:.3g} and "
            f"ε_R > {right:.3g}"
        )
    # Where no node sets a lower end (all of them are certainly out), the prior alone says where to start.
    start = -upper_end(lambda epsilon: prior(-epsilon), 0.0) if -np.inf in lows else 0.0
    return {name: start if low == -np.inf else low for name, low in zip(names, lows, strict=True)}
