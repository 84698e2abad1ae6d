"""What the errors about single nodes prove and suggest about ε, and what a claimed ε would mean (Theorem 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation.definitions import ProvenEpsilon, StoredDefinition, parameter_names, smallest_values
from bmpaudit.estimation.likelihood import check_counts
from bmpaudit.interfaces import Definition
from bmpaudit.privacy.epsilon import log_prior_odds
from bmpaudit.privacy.region import attained_cost_bound
from bmpaudit.samplers.priors import clopper_pearson
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.values import Flags, Floats, Ints
from bmpaudit.util.words import count

if TYPE_CHECKING:
    import pandas as pd

ROWS_PRINTED = 10  # nodes of a leakage
ERROR_LIMITS = 4  # per node: upper and lower limits of α and β
PRIOR_LIMITS = 2  # per node: an upper and a lower limit of γ
WHOLE = 0.01  # of a draw: a frequency may be rounded by so much
TERMS_RIGHT = ("(1-β)/α", "β/(1-α)")
TERMS_LEFT = ("(1-α)/β", "α/(1-β)")


@dataclass(frozen=True, eq=False)
class LowerBound:
    """Lower confidence bounds on ε_R and ε_L of BMP and on ε of MP.

    Formal guarantee: with probability at least `level` over the challenged models, and over the draws behind the
    priors if these were sampled, every (ε_L, ε_R) for which the mechanism is BMP has ε_R ≥ `right.bound` and ε_L ≥
    `left.bound`, both sides together. With probability at least `level`, every ε for which it is MP has ε ≥ `mp.bound`.
    The same holds with all nodes' `per_node` in place of the bound. If no node's error rates satisfy α + β ≠ 1 (the
    model tells nothing), each bound is None with probability at least `level`, whatever the priors are.

    Proof. By Theorem 6 a BMP mechanism has (α_k, β_k) ∈ R for any rule and every node, so ε_R ≥ log η_k +
    log((1-β_k)/α_k) and ε_R ≥ log η_k + log(β_k/(1-α_k)); likewise for ε_L, and for MP with η = 1. The ratios (1-β)/α
    and (1-α)/β fall in both rates, so upper limits of the two rates bound them from below; β/(1-α) and α/(1-β) rise in
    both, so lower limits do. All of it follows from four one-sided Clopper-Pearson limits per node, and from two more
    for γ_k where η_k = γ_k/(1-γ_k) is a frequency. Each fails with probability at most (1-level)/(4K), or
    (1-level)/(6K) with sampled priors, hence any of them with at most 1-level, however the nodes depend on each other.
    MP involves no prior, so its limits are always those of (1-level)/(4K).

    Errors prove something about a node only if the rectangle of its limits excludes the line α + β = 1, on which a
    decision says nothing: then one of the ratios above exceeds 1. Other nodes count for nothing, however large their
    η: their log η is the sampler's doing, and is given apart (`floor`). If all α_k + β_k = 1, a rectangle excludes the
    line only if it misses (α_k, β_k). ∎

    This requires counts that are binomial given the rule: those of Algorithm 4, whose rule was fitted on other models,
    with independent challenged models. Counts of Algorithm 1 are over-dispersed and prove nothing. K counts all nodes
    attacked, chosen without looking at the challenged models: selecting nodes with few errors first is not covered. A
    low bound does not show privacy: a better attack may prove more.
    """

    counts: ErrorCounts  # it was computed from
    level: float  # of confidence
    prior_draws: int  # behind each prior; 0 if the priors are exact
    right: ProvenEpsilon  # on ε_R
    left: ProvenEpsilon  # on ε_L
    mp_right: ProvenEpsilon  # on how far the odds of membership rise, whatever the prior
    mp_left: ProvenEpsilon  # on how far they fall

    @cached_property
    def mp(self) -> ProvenEpsilon:
        """Bound on ε of MP, which bounds how far the odds move either way."""
        return self.mp_right | self.mp_left

    def on(self, definition: Definition, parameter: str) -> ProvenEpsilon:
        """The bound on a parameter of a definition: the smallest value at which ε_L and ε_R are as large as proven."""
        names = parameter_names(definition)
        if parameter not in names:
            raise InputError(f"parameter must be one of {', '.join(names)}, got {parameter!r}")
        if isinstance(definition, StoredDefinition):
            return definition.proven[parameter]
        left, right = (self.left, self.right) if definition.uses_prior else (self.mp_left, self.mp_right)
        if len(names) == 2:
            return (left, right)[names.index(parameter)]
        wanted = (
            np.concatenate([[-np.inf if side.bound is None else side.bound, side.floor], side.per_node])
            for side in (left, right)
        )
        on_left, on_right = (
            ProvenEpsilon(None, float(values[1]), None, None, values[2:])
            if side.bound is None or values[0] == -np.inf
            else replace(side, bound=float(values[0]), floor=float(values[1]), per_node=values[2:])
            for side, values in zip((left, right), smallest_values(definition, *wanted), strict=True)
        )
        return on_right | on_left

    def __str__(self) -> str:
        text = f"proven with {100 * self.level:g} % confidence, {count(self.counts.num_nodes, 'node')}"
        for name, side in (("ε_R", self.right), ("ε_L", self.left), ("MP ε", self.mp)):
            is_proven = side.bound is not None
            what = f"≥ {side.bound:6.2f}  by {side.term} of node {side.node}" if is_proven else "nothing proven"
            text += f"\n  {name:<4} {what}; the sampler alone gives ≥ {side.floor:.2f}"
        return text


def lower_bound(counts: ErrorCounts, level: float = 0.95, *, prior_draws: int = 0) -> LowerBound:
    """The largest ε that an attack's errors prove; see `LowerBound` for what exactly is claimed.

    Args:
        counts: Errors of Algorithm 4.
        level: Confidence level.
        prior_draws: 0 if `counts.prior_prob` is exact; otherwise each is a frequency over this many independent draws.

    >>> counts = ErrorCounts.from_arrays(num_out=[500, 500], num_in=500, false_positives=[10, 250],
    ...                                  false_negatives=[200, 250], prior_prob=[0.5, 0.9])
    >>> print(lower_bound(counts))
    proven with 95 % confidence, 2 nodes
      ε_R  ≥   2.57  by (1-β)/α of node 0; the sampler alone gives ≥ 2.20
      ε_L  ≥   0.74  by (1-α)/β of node 0; the sampler alone gives ≥ 0.00
      MP ε ≥   2.57  by (1-β)/α of node 0; the sampler alone gives ≥ 0.00
    """
    if not 0 < level < 1:
        raise InputError(f"level must be in (0, 1), got level={level}")
    check_prior_draws(counts, prior_draws)
    mp_right, mp_left = _log_ratios(counts, (1 - level) / (ERROR_LIMITS * counts.num_nodes))
    right, left = mp_right, mp_left
    log_odds_low = log_odds_high = log_prior_odds(counts.prior_odds)
    if prior_draws:
        failure = (1 - level) / ((ERROR_LIMITS + PRIOR_LIMITS) * counts.num_nodes)
        right, left = _log_ratios(counts, failure)
        taken = np.rint(counts.prior_prob * prior_draws).astype(np.int64)
        in_sample, left_out = (
            clopper_pearson(count, int(prior_draws), failure)[1] for count in (taken, int(prior_draws) - taken)
        )
        with np.errstate(divide="ignore"):
            log_odds_low = np.log1p(-left_out) - np.log(left_out)
            log_odds_high = np.log(in_sample) - np.log1p(-in_sample)
    even = np.zeros(counts.num_nodes)
    return LowerBound(
        counts,
        level,
        int(prior_draws),
        right=_largest(right, log_odds_low, counts, TERMS_RIGHT),
        left=_largest(left, -log_odds_high, counts, TERMS_LEFT),
        mp_right=_largest(mp_right, even, counts, TERMS_RIGHT),
        mp_left=_largest(mp_left, even, counts, TERMS_LEFT),
    )


def check_prior_draws(counts: ErrorCounts, prior_draws: int) -> None:
    """Raises `InputError` unless every prior is a frequency over that many draws; any is if there are 0."""
    if not isinstance(prior_draws, (int, np.integer)) or isinstance(prior_draws, bool) or prior_draws < 0:
        raise InputError(f"prior_draws must be a whole number of at least 0, got prior_draws={prior_draws}")
    hits = counts.prior_prob * prior_draws
    is_rounded = np.abs(hits - np.rint(hits)) > WHOLE
    if is_rounded.any():
        k = int(np.flatnonzero(is_rounded)[0])
        raise InputError(
            f"prior_prob must be a frequency over prior_draws={prior_draws} draws, got {counts.prior_prob[k]} for node "
            f"{counts.node[k]}"
        )


def _log_ratios(counts: ErrorCounts, failure: float) -> tuple[Floats, Floats]:
    """Lower limits of the logarithms of `TERMS_RIGHT` and of `TERMS_LEFT`, each of shape (2, K)."""
    # Upper limits of the rates and, so that small ones keep their digits, of their complements.
    (alpha, specificity), (beta, sensitivity) = (
        (clopper_pearson(errors, trials, failure)[1], clopper_pearson(trials - errors, trials, failure)[1])
        for errors, trials in ((counts.false_positives, counts.num_out), (counts.false_negatives, counts.num_in))
    )
    with np.errstate(divide="ignore"):
        right = [np.log1p(-beta) - np.log(alpha), np.log1p(-sensitivity) - np.log(specificity)]
        left = [np.log1p(-alpha) - np.log(beta), np.log1p(-specificity) - np.log(sensitivity)]
    return np.stack(right), np.stack(left)


def _largest(log_ratios: Floats, log_floor: Floats, counts: ErrorCounts, terms: tuple[str, str]) -> ProvenEpsilon:
    excess = log_ratios.max(axis=0)
    # A certain membership is the sampler's doing: there is nothing left for errors to prove.
    is_proven = (excess > 0) & np.isfinite(log_floor)
    per_node = np.where(is_proven, excess, 0.0) + np.where(is_proven, log_floor, -np.inf)
    k = int(np.argmax(per_node))
    return ProvenEpsilon(
        bound=float(per_node[k]) if is_proven.any() else None,
        floor=float(log_floor.max()) + 0.0,
        node=counts.node[k].item() if is_proven.any() else None,
        term=terms[int(np.argmax(log_ratios[:, k]))] if is_proven.any() else None,
        per_node=per_node,
    )


@dataclass(frozen=True, eq=False)
class ErrorFloor:
    """*If* the mechanism is (ε_L, ε_R)-BMP, no adversary is wrong about these nodes with a smaller probability.

    This is a conditional statement: an audit does not show that the premise holds. The bound is the best possible, and
    at least that of Theorem 7: some (ε_L, ε_R)-BMP mechanism attains it. Where -ε_L ≤ log η ≤ ε_R fails there is no
    such mechanism (Prop. 1), and the premise is false whatever the model: these nodes are listed in `excluded`.
    """

    epsilon_left: float  # as claimed
    epsilon_right: float
    node: npt.NDArray[Any]  # nodes with a bound, shape (K',)
    prior_prob: Floats  # γ(1) of these nodes, shape (K',)
    error_prob: Floats  # smallest probability of a wrong decision, shape (K',); never NaN
    excluded: npt.NDArray[Any]  # nodes whose prior contradicts the premise

    @property
    def guess_error_prob(self) -> Floats:
        """Error probability of a guess from the prior alone, shape (K',): min(γ(0), γ(1))."""
        return np.minimum(self.prior_prob, 1 - self.prior_prob)

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


# Which nodes leak most, and how certainly: the posterior of the ε that each node's error rates imply


@dataclass(frozen=True, eq=False)
class LeakageInterval:
    """Median and equal-tailed credible interval of one quantity for each node; arrays of shape (K,)."""

    low: Floats
    median: Floats
    high: Floats

    def __add__(self, shift: Floats) -> LeakageInterval:
        return LeakageInterval(self.low + shift, self.median + shift, self.high + shift)


@dataclass(frozen=True, eq=False)
class NodeLeakage:
    """Posterior of the implied e_R and e_L of every node, each node on its own.

    e_R = log η + max{log((1-β)/α), log(β/(1-α))} and e_L = -log η + max{log((1-α)/β), log(α/(1-β))} (Theorem 6), where
    α ~ Beta(A+1, n0-A+1) and β ~ Beta(B+1, n1-B+1) are the posteriors of the error rates under flat priors.

    Formal guarantee: if a node's error rates are drawn uniformly from the unit square and its counts are binomial, each
    interval contains the implied ε with probability `level`. It is about the attack that was run, not about the best
    one. It lies above the floor (log η and -log η) whatever the counts, as no pair of error rates implies less. An
    attack that decides the same for every model (`is_constant`) can have a high interval without knowing anything.
    """

    counts: ErrorCounts  # it was computed from
    level: float  # posterior probability of the intervals
    excess_right: LeakageInterval  # e_R - log η, what the model adds to the sampler's floor
    excess_left: LeakageInterval  # e_L + log η, the same for e_L

    @property
    def floor_right(self) -> Floats:
        """Log η, shape (K,): e_R of a model that reveals nothing (Prop. 1)."""
        return log_prior_odds(self.counts.prior_odds)

    @property
    def floor_left(self) -> Floats:
        """-log η, shape (K,)."""
        return -self.floor_right

    @property
    def right(self) -> LeakageInterval:
        """e_R."""
        return self.excess_right + self.floor_right

    @property
    def left(self) -> LeakageInterval:
        """e_L."""
        return self.excess_left + self.floor_left

    @property
    def is_constant(self) -> Flags:
        """Whether the decision about a node was the same for every model, shape (K,)."""
        return self.counts.is_constant

    def ranked(self) -> Ints:
        """Rows by the lower end of their interval of e_R, highest first, shape (K,).

        Ranked by the lower end, because wide intervals come from few trials and not from leakage.
        """
        return np.argsort(-self.right.low, kind="stable")

    def to_frame(self) -> pd.DataFrame:
        """One row per node, in the order of the counts."""
        import pandas as pd

        columns: dict[str, npt.NDArray[np.generic]] = {"node": self.counts.node}
        for name in ("right", "left", "excess_right", "excess_left"):
            columns |= {f"{name}_{end}": values for end, values in vars(getattr(self, name)).items()}
        return pd.DataFrame(columns | {key: getattr(self, key) for key in ("floor_right", "floor_left", "is_constant")})

    def __str__(self) -> str:
        right, left, nodes = self.right, self.left, count(self.counts.num_nodes, "node")
        text = f"{nodes}, {100 * self.level:g} % credible intervals, ranked by the lower end of e_R"
        text += f"\n  {'node':>12} {'floor':>7} {'e_R':>7} {'interval':>15} {'e_L':>7} {'interval':>15}"
        for k in self.ranked()[:ROWS_PRINTED]:
            text += f"\n  {self.counts.node[k]!s:>12} {self.floor_right[k]:7.2f}"
            for e in (right, left):
                text += f" {e.median[k]:7.2f} {f'{e.low[k]:.2f} to {e.high[k]:.2f}':>15}"
            text += "  constant decision" if self.is_constant[k] else ""
        return text


def node_leakage(counts: ErrorCounts, level: float = 0.9, *, num_threads: int | None = None) -> NodeLeakage:
    """The posterior of e_R and e_L of every node, with equal-tailed intervals.

    The quantiles are accurate to about 1e-6 and depend on nothing but the counts, which may be of any numbers of
    trials, also 0. All processors are used unless `num_threads` is given.

    >>> counts = ErrorCounts.from_arrays(num_out=[75, 75], num_in=25, false_positives=[2, 5], false_negatives=[3, 20],
    ...                                  prior_prob=0.25, node=["a", "b"])
    >>> print(node_leakage(counts))
    2 nodes, 90 % credible intervals, ranked by the lower end of e_R
              node   floor     e_R        interval     e_L        interval
                 a   -1.10    2.09    1.25 to 3.27    3.03    2.36 to 3.97
                 b   -1.10    -0.04   -0.95 to 0.88    1.27    1.13 to 1.48
    """
    if not 0 < level < 1:
        raise InputError(f"level must be in (0, 1), got level={level}")
    check_counts(counts)
    table = np.stack([counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives], axis=1)
    # Many nodes have the same counts if an attack learns nothing.
    distinct, row = np.unique(table.astype(np.float64), axis=0, return_inverse=True)
    probabilities = np.array([(1 - level) / 2, 0.5, (1 + level) / 2])
    quantiles = _native.leakage_quantiles(np.ascontiguousarray(distinct), probabilities, thread_count(num_threads))
    right, left = (LeakageInterval(*np.ascontiguousarray(side[row.ravel()].T)) for side in quantiles)
    return NodeLeakage(counts, level, excess_right=right, excess_left=left)
