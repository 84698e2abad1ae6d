"""The likelihood of ε given error counts: rows that count several times, priors, and where a posterior can live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation.definitions import name_of, parameter_names, smallest_values
from bmpaudit.estimation.density import NEGLIGIBLE, gauss_of_measure
from bmpaudit.interfaces import Definition, Progress
from bmpaudit.privacy.epsilon import log_prior_odds
from bmpaudit.privacy.error_bounds import attained_cost_bound
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.values import Flags, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd


EXTREME_ROWS = 32  # kept by each of the criteria that can decide where a posterior lies
SKETCH_ROWS = 128  # that stand for all the others, at least
RULE_POINTS = 12  # of a Gauss rule that stands for many rows
WIDEST = 2.0  # the largest of their counts, against the smallest: then the rule is right to 1e-18
SKETCH_SHARE = 1 / 32  # of all rows: the more there are, the narrower the peak that is sought


@dataclass(frozen=True, eq=False)
class Rows:
    """Different rows of counts and prior odds.

    Attributes:
        counts: (n0, n1, A, B), shape (R, 4).
        log_prior_odds: log η, shape (R,).
        times: Number of nodes that each row stands for, shape (R,).
    """

    counts: Floats
    log_prior_odds: Floats
    times: Floats

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: npt.ArrayLike, times: npt.ArrayLike) -> Rows:
        """Some of the rows, each of which stands for so many nodes."""
        counts = np.ascontiguousarray(self.counts[np.asarray(rows)])
        return Rows(
            counts, self.log_prior_odds[np.asarray(rows)], np.broadcast_to(times, len(counts)).astype(np.float64)
        )

    def split(self, times: Ints) -> tuple[Rows, Rows]:
        """So many nodes of each row, and all others."""
        parts = (times.astype(np.float64), self.times - times)
        first, others = (self.take(np.flatnonzero(part > 0), part[part > 0]) for part in parts)
        return first, others

    def condensed(self) -> Rows:
        """Rows of the same likelihood, to more digits than doubles have, without many that differ in n0 and n1 alone.

        If the decision about many nodes never varies and they were in as many models, their log-likelihood is a smooth
        function of n0: its sum over them is that of a Gauss rule, whose nodes are rows of no whole numbers.
        """
        num_out, num_in, false_positives, false_negatives = self.counts.T
        is_never = (false_positives == 0) & (false_negatives == num_in)
        is_always = (false_positives == num_out) & (false_negatives == 0)
        kind = np.where(is_never, 1.0, np.where(is_always, 2.0, 0.0))
        groups, group = np.unique(
            np.column_stack([kind, num_out + num_in, self.log_prior_odds]), axis=0, return_inverse=True
        )
        group = group.ravel()
        is_kept = np.ones(len(self), dtype=bool)
        parts = []
        for number, ((of_kind, total, log_odds), size) in enumerate(zip(groups, np.bincount(group), strict=True)):
            if of_kind == 0 or size <= 2 * RULE_POINTS:
                continue
            rows = np.flatnonzero(group == number)
            if any(values[rows].max() > WIDEST * values[rows].min() for values in (num_out, num_in)):
                continue
            out, times = gauss_of_measure(num_out[rows], self.times[rows], RULE_POINTS)
            inside = total - out
            errors = (np.zeros_like(out), inside) if of_kind == 1 else (out, np.zeros_like(out))
            parts.append(Rows(np.column_stack([out, inside, *errors]), np.full_like(out, log_odds), times))
            is_kept[rows] = False
        if not parts:
            return self
        parts.insert(0, self.take(np.flatnonzero(is_kept), self.times[is_kept]))
        columns = zip(*((part.counts, part.log_prior_odds, part.times) for part in parts), strict=True)
        return Rows(*(np.concatenate(column) for column in columns))

    def sketch(self) -> Rows:
        """The extreme rows and a few of the others, each of which stands for many: good enough to search with."""
        num_chosen = max(SKETCH_ROWS, int(SKETCH_SHARE * len(self)))
        if len(self) <= 2 * (4 * EXTREME_ROWS + num_chosen):
            return self
        num_out, num_in, false_positives, false_negatives = self.counts.T
        alpha, detected = (false_positives + 1) / (num_out + 2), (num_in - false_negatives + 1) / (num_in + 2)
        up, down = np.log(detected / alpha), np.log((1 - detected) / (1 - alpha))
        right, left = np.maximum(up, down) + self.log_prior_odds, np.maximum(-up, -down) - self.log_prior_odds
        criteria = (right, left, self.log_prior_odds, -self.log_prior_odds)
        is_extreme = np.zeros(len(self), dtype=bool)
        for criterion in criteria:
            is_extreme[np.argpartition(-criterion, EXTREME_ROWS)[:EXTREME_ROWS]] = True
        others = np.flatnonzero(~is_extreme)
        others = others[np.argsort(right[others], kind="stable")]
        chosen = others[np.linspace(0, len(others) - 1, num_chosen).astype(np.int64)]
        scale = self.times[others].sum() / self.times[chosen].sum()
        rows = np.concatenate([np.flatnonzero(is_extreme), chosen])
        times = self.times[rows] * np.concatenate([np.ones(int(is_extreme.sum())), np.full(len(chosen), scale)])
        return self.take(rows, times)


def distinct_rows(counts: Floats, log_prior_odds: Floats) -> tuple[Rows, Ints]:
    """The different rows, ordered by counts, and the row of each node, shape (K,)."""
    table = np.column_stack([counts, log_prior_odds])
    order = np.lexsort(table.T[::-1])
    ordered = table[order]
    is_first = np.ones(len(table), dtype=bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    row = np.empty(len(table), dtype=np.int64)
    row[order] = np.cumsum(is_first) - 1
    distinct = ordered[is_first]
    times = np.bincount(row, minlength=len(distinct)).astype(np.float64)
    return Rows(np.ascontiguousarray(distinct[:, :4]), np.ascontiguousarray(distinct[:, 4]), times), row


# Priors of ε and of the attack's strength.


LogDensity = Callable[[Floats], Floats]
"""The logarithm of a density of ε, up to a constant."""

NEAREST, FURTHEST = 1e-3, 1e6  # distances from the floor between which a prior is scanned
SCAN_POINTS = 4_000
SMALLEST_VARIANCE, LARGEST_VARIANCE, LARGEST_MEAN = 1e-12, 1e12, 1e6
LEAST_LIKELY = -1e9  # nats: with more, sums of logarithms have no digits left for the likelihood


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
        if not np.isfinite(self.mean):
            raise InputError(f"the prior's mean must be finite, got mean={self.mean}")
        if not 0 < self.variance < np.inf:
            raise InputError(f"the prior's variance must be positive, got variance={self.variance}")
        if not SMALLEST_VARIANCE <= self.variance <= LARGEST_VARIANCE:
            raise InputError(
                f"the prior's variance must be in [{SMALLEST_VARIANCE:g}, {LARGEST_VARIANCE:g}], got "
                f"variance={self.variance}"
            )
        if abs(self.mean) > LARGEST_MEAN:
            raise InputError(f"the prior's mean must be in [{-LARGEST_MEAN:g}, {LARGEST_MEAN:g}], got mean={self.mean}")

    def describe(self) -> str:
        """The prior in words."""
        return f"normal, mean {self.mean:g}, variance {self.variance:g}"

    def __call__(self, epsilon: Floats) -> Floats:
        """The log-density."""
        return -0.5 * ((epsilon - self.mean) ** 2 / self.variance + np.log(2 * np.pi * self.variance))


@dataclass(frozen=True, eq=False)
class TabulatedPrior:
    """A log-density interpolated linearly between points; how a file stores a prior that is not normal.

    Attributes:
        points: Ascending points, shape (P,).
        log_density: Log-density at the points, shape (P,); -∞ beyond them.
    """

    points: Floats
    log_density: Floats

    def __call__(self, epsilon: Floats) -> Floats:
        """The log-density."""
        return np.interp(epsilon, self.points, self.log_density, left=-np.inf, right=-np.inf)


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
        for name, value in (("a", self.a), ("b", self.b)):
            if not 0 < value < np.inf:
                raise InputError(f"the strength prior's {name} must be positive, got {name}={value}")

    def log_density(self, strength: Floats) -> Floats:
        """The log-density, up to a constant."""
        return (self.a - 1) * np.log(strength) + (self.b - 1) * np.log1p(-strength)


def upper_end(prior: LogDensity, low: float) -> float:
    """Where a prior, and so the posterior (the likelihood is flat up there), has become negligible for good.

    The prior may peak far above `low`, and be negligible before its peak as well.

    Raises:
        InputError: if it never becomes negligible, or is next to nothing everywhere above `low`.
    """
    distances = np.geomspace(NEAREST, FURTHEST, SCAN_POINTS)
    scan = prior(low + distances)
    likely = np.flatnonzero(scan > np.max(scan) - 2 * NEGLIGIBLE)
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


# The marginal likelihood of ε: latent error rates integrated out exactly.


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


# Which nodes count, and where a posterior can live.


LARGEST_COUNT = 2**40  # beyond it, error rates are too close to 0 and 1 for double precision


def check_counts(counts: ErrorCounts) -> None:
    """Raises `InputError` if a node has more trials than the kernels can integrate over."""
    for name in ("num_out", "num_in"):
        values = getattr(counts, name)
        if values.max() > LARGEST_COUNT:
            node = int(values.argmax())
            raise InputError(f"{name} must be at most 2^40, got {name}={values[node]} for node {counts.node[node]}")


def used_nodes(counts: ErrorCounts, definition: Definition) -> Flags:
    """Which nodes count: all but those whose certain prior would rule out every finite ε, shape (K,).

    Raises:
        InputError: if none is left, or a count is too large.
    """
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
    return Likelihood(
        table[chosen].astype(np.float64),
        log_odds if definition.uses_prior else np.zeros_like(log_odds),
        num_threads,
    )


def support_lows(definition: Definition, log_odds: Floats, prior: LogDensity) -> dict[str, float]:
    """The lower end of each parameter's support: below it R is empty for some node (Prop. 1).

    R has a positive area for every node if and only if ε_L > -min log η and ε_R > max log η.

    Args:
        definition: What is estimated.
        log_odds: log η of the nodes that count, as the definition takes them; 0 for MP.
        prior: Log-density of each ε, which says where to start if the nodes leave it open.

    Raises:
        InputError: if no value is large enough.
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


def check_one_parameter(definition: Definition) -> None:
    """Raises `InputError` if the definition has two parameters, so that the strength cannot be estimated as well."""
    if len(definition.parameters) > 1:
        raise InputError(
            f"strength can be estimated for one-parameter definitions only, got definition={name_of(definition)!r}"
        )


# What a claimed (ε_L, ε_R) would mean for each node: the error that no adversary can avoid (Theorem 7).


@dataclass(frozen=True, eq=False)
class ErrorFloor:
    """*If* the mechanism is (ε_L, ε_R)-BMP, no adversary is wrong about these nodes with a smaller probability.

    This is a conditional statement: an audit does not show that the premise holds. The bound is the best possible, and
    at least that of Theorem 7: some (ε_L, ε_R)-BMP mechanism attains it. Where -ε_L ≤ log η ≤ ε_R fails there is no
    such mechanism (Prop. 1), and the premise is false whatever the model: these nodes are listed in `excluded`.

    Attributes:
        epsilon_left: Claimed ε_L.
        epsilon_right: Claimed ε_R.
        node: Nodes with a bound, shape (K',).
        prior_prob: γ(1) of these nodes, shape (K',).
        error_prob: Smallest probability of a wrong decision, shape (K',); never NaN.
        excluded: Nodes whose prior contradicts the premise.
    """

    epsilon_left: float
    epsilon_right: float
    node: npt.NDArray[Any]
    prior_prob: Floats
    error_prob: Floats
    excluded: npt.NDArray[Any]

    @property
    def guess_error_prob(self) -> Floats:
        """Error probability of a guess from the prior alone, shape (K',): min(γ(0), γ(1))."""
        return np.minimum(self.prior_prob, 1 - self.prior_prob)

    def to_frame(self) -> pd.DataFrame:
        """One row per node that has a bound."""
        import pandas as pd

        columns = {"node": self.node, "prior_prob": self.prior_prob}
        return pd.DataFrame(columns | {"error_prob": self.error_prob, "guess_error_prob": self.guess_error_prob})

    def __str__(self) -> str:
        lines = [f"if the mechanism is BMP with ε_L = {self.epsilon_left:g}, ε_R = {self.epsilon_right:g}:"]
        if len(self.node):
            k = int(np.argmin(self.error_prob))
            lines += [
                f"  every decision about {len(self.node):,} nodes is wrong with probability ≥ {self.error_prob[k]:.4f}",
                f"  (smallest for node {self.node[k]}; {self.guess_error_prob[k]:.4f} from the prior alone)",
            ]
        if len(self.excluded):
            number, example = len(self.excluded), self.excluded[0]
            lines.append(f"  but {number:,} of the priors rule this out, such as that of node {example}")
        return "\n".join(lines)


def error_floor(counts: ErrorCounts, epsilon_left: float = np.inf, epsilon_right: float = np.inf) -> ErrorFloor:
    """Applies Theorem 7, in the form that is attained; only the priors of the counts matter.

    Args:
        counts: Nodes and their priors.
        epsilon_left: ε_L; ∞ for BMP-R.
        epsilon_right: ε_R; ∞ for BMP-L.

    Raises:
        InputError: if a parameter is NaN.

    >>> counts = ErrorCounts.from_arrays(num_out=1, num_in=1, false_positives=0, false_negatives=0,
    ...                                  prior_prob=[0.25, 0.5, 0.9])
    >>> print(error_floor(counts, epsilon_left=2.0, epsilon_right=1.0))
    if the mechanism is BMP with ε_L = 2, ε_R = 1:
      every decision about 2 nodes is wrong with probability ≥ 0.1512
      (smallest for node 0; 0.2500 from the prior alone)
      but 1 of the priors rule this out, such as that of node 2
    """
    for name, value in (("epsilon_left", epsilon_left), ("epsilon_right", epsilon_right)):
        if np.isnan(value):
            raise InputError(f"{name} must be a number or infinite, got {name}={value}")
    log_odds = log_prior_odds(counts.prior_odds)
    is_possible = (log_odds >= -epsilon_left) & (log_odds <= epsilon_right)
    error_prob = attained_cost_bound(counts.prior_odds[is_possible], epsilon_left, epsilon_right)
    return ErrorFloor(
        epsilon_left=float(epsilon_left),
        epsilon_right=float(epsilon_right),
        node=counts.node[is_possible],
        prior_prob=counts.prior_prob[is_possible],
        error_prob=error_prob,
        excluded=counts.node[~is_possible],
    )
