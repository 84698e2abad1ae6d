"""One guess per model: from scores to the most confident statement about each model, and when to keep silent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native, registry
from bmpaudit.attack.challenges import BlockJob, map_blocks
from bmpaudit.attack.evidence import Evidence, can_be_attacked
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof.bounds import (
    quick_mp_bounds,
)
from bmpaudit.samplers.priors import clopper_pearson
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.matrices import FlagMatrix
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import Flags, Floats, Ints, as_bytes, plain
from bmpaudit.util.words import SYMBOLS

SHARE_FOR_PRIORS = 0.1
"""Part of the failure probability of a bound on MP that is spent on estimated priors."""
WHOLE = 0.01  # of a draw: a frequency may be rounded by so much


@dataclass(frozen=True, eq=False)
class PriorOdds:
    """Log-odds of the prior memberships of N nodes.

    Formal guarantee: log η_i is in [`low`, `high`] for all nodes together, except with probability
    `SHARE_FOR_PRIORS` times 1 - level: Clopper-Pearson limits with Bonferroni's correction over nodes and sides. Exact
    priors are their own limits.

    Attributes:
        log_odds: log η, shape (N,); infinite where a prior is 0 or 1.
        low: Lower limits, shape (N,).
        high: Upper limits, shape (N,).
        num_draws: Number of draws behind each prior; 0 if they are exact.
    """

    log_odds: Floats
    low: Floats
    high: Floats
    num_draws: int

    @classmethod
    def of(cls, prior_prob: npt.ArrayLike, num_nodes: int, prior_draws: int, failure_prob: float) -> PriorOdds:
        """Checks priors and finds their limits.

        Args:
            prior_prob: γ(1), shape (N,).
            num_nodes: N.
            prior_draws: Number of draws that each prior is a frequency over; 0 if they are exact.
            failure_prob: 1 - level of the bound on MP.

        Raises:
            InputError: if they are no probabilities, all of them are 0 or 1, or they are no such frequencies.
        """
        prob = np.asarray(prior_prob, dtype=np.float64)
        if prob.shape != (num_nodes,):
            raise InputError(f"prior_prob must have shape ({num_nodes},), one for each node, got {prob.shape}")
        is_prob = (prob >= 0) & (prob <= 1)
        if not is_prob.all():
            node = int(is_prob.argmin())
            raise InputError(f"prior_prob must be in [0, 1], got prior_prob={prob[node]} for node {node}")
        if not ((prob > 0) & (prob < 1)).any():
            raise InputError("prior_prob must be in (0, 1) for at least one node, got only 0 and 1")
        if not isinstance(prior_draws, (int, np.integer)) or isinstance(prior_draws, bool) or prior_draws < 0:
            raise InputError(f"prior_draws must be a whole number of at least 0, got prior_draws={prior_draws}")
        log_odds = log_prior_odds(prob)
        if prior_draws == 0:
            return cls(log_odds, log_odds, log_odds, 0)
        counts = np.rint(prob * prior_draws)
        is_rounded = np.abs(prob * prior_draws - counts) > WHOLE
        if is_rounded.any():
            node = int(is_rounded.argmax())
            raise InputError(
                f"prior_prob must be a frequency over prior_draws={prior_draws} draws, got {prob[node]} for node {node}"
            )
        failure = SHARE_FOR_PRIORS * failure_prob / (2 * num_nodes)
        low, high = clopper_pearson(counts.astype(np.int64), int(prior_draws), failure)
        return cls(log_odds, log_prior_odds(low), log_prior_odds(high), int(prior_draws))

    @property
    def is_uncertain(self) -> Flags:
        """Which nodes are neither surely in nor surely out, as far as is known, shape (N,)."""
        return np.isfinite(self.log_odds)

    def at_level(self, level: float) -> PriorOdds:
        """The same priors with limits for a bound on MP at another level."""
        if self.num_draws == 0:
            return self
        prob = scipy.special.expit(self.log_odds)
        return PriorOdds.of(prob, len(prob), self.num_draws, 1 - level)

    @property
    def floor_right(self) -> tuple[float, float]:
        """What the sampler alone gives away of members (Prop. 1): a lower and an upper limit."""
        return float(self.low.max()) + 0.0, float(self.high.max()) + 0.0

    @property
    def floor_left(self) -> tuple[float, float]:
        """What the sampler alone gives away of non-members (Prop. 1): a lower and an upper limit."""
        return float((-self.high).max()) + 0.0, float((-self.low).max()) + 0.0

    def mp_level(self, level: float) -> float:
        """Level at which the guesses have to hold so that guesses and priors together hold at `level`."""
        return level if self.num_draws == 0 else 1 - (1 - SHARE_FOR_PRIORS) * (1 - level)

    def check_memberships(self, num_in: Ints, num_models: int, models: str) -> None:
        """Raises `InputError` if there is no member or no non-member, or a node contradicts its exact prior.

        Args:
            num_in: Number of models that hold each node, shape (N,).
            num_models: Number of models.
            models: Which models, for messages.
        """
        for counts, name in ((num_in, "member"), (num_models - num_in, "non-member")):
            if not counts[self.is_uncertain].any():
                raise InputError(f"memberships of the {models} models must hold both sides, got no {name}")
        if self.num_draws == 0:
            surely = np.where(self.log_odds > 0, 1, 0)
            is_wrong = ~self.is_uncertain & (num_in != surely * num_models)
            if is_wrong.any():
                node = int(is_wrong.argmax())
                raise InputError(f"prior_prob is {surely[node]} for node {node}, but memberships say otherwise")


# Scores of any attack, as plain arrays.


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


# From scores to guesses: the most confident statement about each model, and when to keep silent.


Parameter = Literal["epsilon_right", "epsilon_left", "mp"]
PARAMETERS: tuple[Parameter, ...] = ("epsilon_right", "epsilon_left", "mp")
Order = Literal["in by odds", "out by odds", "in by ratio", "out by ratio", "either by ratio"]
"""What is stated of a node, and by what the surest node is found: posterior odds or likelihood ratio."""
ORDERS: dict[Parameter, tuple[Order, ...]] = {
    "epsilon_right": ("in by odds",),
    "epsilon_left": ("out by odds",),
    # A correct guess is worth the more, the less likely it was before; what can be guessed depends on the mechanism.
    "mp": ("either by ratio", "in by ratio", "out by ratio", "in by odds", "out by odds"),
}
NUM_MP_THRESHOLDS = 64
ENOUGH_MODELS = 10
PSEUDO_MISSES = 1.0
"""Misses added when a threshold is judged: without them, a handful of lucky guesses looks as good as hundreds."""


@dataclass(frozen=True, eq=False)
class Claims:
    """The most confident statement about each of J models, made without looking at memberships.

    Attributes:
        node: Node that the statement is about, shape (J,).
        says_member: Whether it says that the node is in, shape (J,).
        confidence: The higher the surer, shape (J,); -∞ where no statement can be made.
    """

    node: Ints
    says_member: Flags
    confidence: Floats

    def merge(self, other: Claims) -> Claims:
        """The more confident of two statements about each model; of equally confident ones, the first."""
        is_other = other.confidence > self.confidence
        return Claims(
            np.where(is_other, other.node, self.node),
            np.where(is_other, other.says_member, self.says_member),
            np.where(is_other, other.confidence, self.confidence),
        )

    def are_hits(self, memberships: FlagMatrix) -> Flags:
        """Which statements are true, shape (J,); `memberships` has shape (J, N)."""
        return memberships[np.arange(len(self.node)), self.node] == self.says_member

    def log_odds(self, log_odds_low: Floats, log_odds_high: Floats) -> Floats:
        """Upper limits of the prior log-odds of the statements, from limits of log η for all nodes, shape (J,)."""
        return np.where(self.says_member, log_odds_high[self.node], -log_odds_low[self.node])


def can_be_named(num_in: Ints, num_models: int) -> Flags:
    """Nodes that enough fitting models hold, and enough do not, to make statements about them, shape (N,).

    Enough are ten, or an eighth of the fitting models if that is less. The surest statement is the likeliest to rest on
    a fit that went wrong, and a fit to two or three models often does: an attack may be wildly sure of nodes that are
    hardly ever in a sample.

    Args:
        num_in: Number of fitting models that hold each node, shape (N,).
        num_models: Number of fitting models.
    """
    needed = min(ENOUGH_MODELS, num_models // 8)
    return np.minimum(num_in, num_models - num_in) >= needed


def most_confident(
    log_likelihood_ratio: Floats,
    log_prior_odds: Floats,
    is_scored: Flags | None = None,
    node: Ints | None = None,
    *,
    num_threads: int | None = None,
) -> dict[Order, Claims]:
    """The statements about each model of which an attack is surest, by what "surest" means.

    Of equally likely ones, the node with the smallest id, and "in" before "out".

    Args:
        log_likelihood_ratio: Scores of shape (J, N).
        log_prior_odds: log η of the nodes, shape (N,).
        is_scored: Nodes that statements may be made about, shape (N,); all if None.
        node: Ids of the nodes, shape (N,); 0, 1, 2, … if None.
        num_threads: Number of threads; the result does not depend on it.
    """
    num_models, num_nodes = log_likelihood_ratio.shape
    ids = np.arange(num_nodes) if node is None else node
    column, confidence = np.empty((4, num_models), dtype=np.int64), np.empty((4, num_models))
    _native.find_surest(
        np.ascontiguousarray(log_likelihood_ratio),
        # A node of certain prior is not scored; its prior must not make a NaN of an infinite score.
        np.where(np.isfinite(log_prior_odds), log_prior_odds, 0.0),
        as_bytes(np.ones(num_nodes, dtype=np.bool_) if is_scored is None else is_scored),
        thread_count(num_threads),
        column,
        confidence,
    )
    orders: tuple[Order, ...] = ("in by odds", "out by odds", "in by ratio", "out by ratio")
    claims = {
        order: Claims(ids[column[k]], np.full(num_models, order.startswith("in")), confidence[k])
        for k, order in enumerate(orders)
    }
    claims["either by ratio"] = claims["in by ratio"].merge(claims["out by ratio"])
    return claims


@dataclass(frozen=True)
class Threshold:
    """When to keep silent.

    Attributes:
        value: A statement is made if its confidence is at least this.
        expected: Bound that the fitting models lead one to expect of the challenged ones; no proof.
    """

    value: float
    expected: float


def learn_threshold(
    confidence: Floats,
    is_hit: Flags,
    posterior_log_odds: Floats,
    num_challenged: int,
    failure_prob: float,
    log_odds: Floats | None = None,
) -> Threshold:
    """The confidence from which on statements are worth making: the one that maximises the bound to be expected.

    It is learnt on fitting models, each scored without being in its own fit. Each possible threshold is judged by the
    bound to be expected of the challenged models: with guesses as often as on the fitting models, and misses as often
    as were seen there or as the posterior odds foretell, whichever is more, and one miss on top. Foretold misses matter
    because a few hundred fitting models may show none where some are to come.

    Args:
        confidence: Confidence of the statements about the fitting models, shape (J,).
        is_hit: Whether they are true, shape (J,).
        posterior_log_odds: What the attack holds the odds of the statements to be, shape (J,).
        num_challenged: Number of models that will be challenged.
        failure_prob: 1 - level.
        log_odds: For MP, prior log-odds of the statements, shape (J,).
    """
    order = np.argsort(-confidence, kind="stable")
    ordered = confidence[order]
    is_cut = np.append(ordered[1:] < ordered[:-1], True) & (ordered > -np.inf)  # equals are not torn apart
    seen, foretold = np.cumsum(~is_hit[order]), np.cumsum(scipy.special.expit(-posterior_log_odds[order]))
    scale = num_challenged / len(ordered)
    guesses = scale * np.arange(1, len(ordered) + 1)
    hits = guesses - scale * np.maximum(seen, foretold)
    cuts = np.flatnonzero(is_cut & (hits > 0))
    if not cuts.size:
        return Threshold(-np.inf, -np.inf)
    if log_odds is not None:
        cuts = cuts[np.unique(np.linspace(0, len(cuts) - 1, NUM_MP_THRESHOLDS).astype(int))]
    rates = scipy.special.betaincinv(hits[cuts], guesses[cuts] - hits[cuts] + PSEUDO_MISSES + 1, failure_prob)
    if log_odds is None:
        with np.errstate(divide="ignore"):
            bounds = scipy.special.logit(rates)
    else:
        bounds = quick_mp_bounds(rates, log_odds[order], cuts + 1)
    best = len(cuts) - 1 - int(np.argmax(bounds[::-1]))  # of equals, the one that keeps silent least
    return Threshold(float(ordered[cuts[best]]), float(bounds[best]))


@dataclass(frozen=True)
class Choice:
    """What to guess by, chosen on fitting models.

    Attributes:
        source: Name of the scores.
        order: What is stated, and by what the surest node is found.
        threshold: When to keep silent.
    """

    source: str
    order: Order
    threshold: Threshold


def choose(
    parameter: Parameter,
    claims: Mapping[str, Mapping[Order, Claims]],
    memberships: FlagMatrix,
    log_prior_odds: Floats,
    num_challenged: int,
    failure_prob: float,
) -> Choice:
    """The source and order whose statements about the fitting models promise the highest bound; of equals, the first.

    Args:
        parameter: What is to be proven.
        claims: By source, statements about J fitting models, none of which is in its own fit.
        memberships: The truth, shape (J, N).
        log_prior_odds: log η of all nodes, shape (N,).
        num_challenged: Number of models that will be challenged.
        failure_prob: 1 - level.
    """
    choices = []
    for source, by_order in claims.items():
        for order in ORDERS[parameter]:
            made = by_order[order]
            prior = made.log_odds(log_prior_odds, log_prior_odds)
            threshold = learn_threshold(
                made.confidence,
                made.are_hits(memberships),
                made.confidence + prior if order.endswith("ratio") else made.confidence,
                num_challenged,
                failure_prob,
                prior if parameter == "mp" else None,
            )
            choices.append(Choice(source, order, threshold))
    return max(choices, key=lambda choice: choice.threshold.expected)


@dataclass(frozen=True, eq=False)
class Guesses:
    """Statements that were made about challenged models, at most one per model, and what came of them.

    Attributes:
        model: Number of the model in its plan, shape (G,).
        node: Node id, shape (G,).
        says_member: Whether the guess is that the node is in, shape (G,).
        is_hit: Whether it is right, shape (G,).
        log_odds: Upper limits of the prior log-odds of what is guessed, shape (G,).
    """

    model: Ints
    node: Ints
    says_member: Flags
    is_hit: Flags
    log_odds: Floats

    @property
    def num_guesses(self) -> int:
        """G."""
        return len(self.model)

    @property
    def num_hits(self) -> int:
        """C."""
        return int(np.count_nonzero(self.is_hit))

    def followed_by(self, other: Guesses) -> Guesses:
        """These guesses, then others about other models."""
        names = ("model", "node", "says_member", "is_hit", "log_odds")
        return Guesses(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))


def make_guesses(claims: Claims, threshold: float, memberships: FlagMatrix, indices: Ints, log_odds: Floats) -> Guesses:
    """The claims of sufficient confidence, compared with the truth.

    Args:
        claims: Statements about J challenged models.
        threshold: Smallest confidence of a guess.
        memberships: The truth, shape (J, N).
        indices: Numbers of the models, shape (J,).
        log_odds: Upper limits of the prior log-odds of the claims, shape (J,).
    """
    is_made = (claims.confidence >= threshold) & (claims.confidence > -np.inf)
    return Guesses(
        indices[is_made],
        claims.node[is_made],
        claims.says_member[is_made],
        claims.are_hits(memberships)[is_made],
        log_odds[is_made],
    )


# What was proven, and from what.


ONE_GUESS, PREQUENTIAL = "one guess per model", "prequential"
SURE = 0.99


@dataclass(frozen=True, eq=False)
class ProvenBound:
    """A lower confidence bound on one parameter, by one method.

    `epsilon_bound`, `mp_bound` and `AnytimeBound` have the formal guarantees and their proofs.

    Attributes:
        parameter: What is bounded: epsilon_right, epsilon_left or mp.
        proven: The bound; None if nothing is proven.
        floor: What the sampler alone gives away (Prop. 1), a lower confidence limit if priors were sampled.
        floor_high: The same, an upper confidence limit if priors were sampled.
        level: Confidence level.
        method: Method: one guess per model, or prequential.
        num_fitting: Number of models that the rule was fitted on; for the prequential method, at the end.
        num_challenged: Number of models that could be guessed about.
        choice: What was guessed by, and when not; for the prequential method, at the end.
        guesses: The guesses.
    """

    parameter: Parameter
    proven: float | None
    floor: float
    floor_high: float
    level: float
    method: str
    num_fitting: int
    num_challenged: int
    choice: Choice
    guesses: Guesses

    @property
    def num_guesses(self) -> int:
        """G, number of models about which something was guessed."""
        return self.guesses.num_guesses

    @property
    def num_hits(self) -> int:
        """C, number of correct guesses."""
        return self.guesses.num_hits

    @property
    def is_beyond_floor(self) -> bool:
        """Whether more is proven than the sampler alone implies."""
        return self.proven is not None and self.proven > self.floor_high

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        names = (
            *("proven", "floor", "is_beyond_floor", "level", "method"),
            *("num_fitting", "num_challenged", "num_guesses", "num_hits"),
        )
        values: dict[str, Any] = plain({name: getattr(self, name) for name in names} | {"source": self.choice.source})
        return values

    def __str__(self) -> str:
        return self.row()

    def row(self) -> str:
        """One line of a table."""
        proven = "nothing proven" if self.proven is None else f"≥ {self.proven:.2f}"
        return (
            f"{SYMBOLS[self.parameter]:<4}  {proven:<14}  {self.num_hits:,} of {self.num_guesses:,} guesses right, "
            f"{self.choice.source}; the sampler alone gives ≥ {self.floor:.2f}"
        )


@dataclass(frozen=True, eq=False)
class Proof:
    """What is proven about one release.

    Each of the three bounds holds with probability `level` by itself; all three hold together with probability at
    least 1 - 3 (1 - level).

    Attributes:
        epsilon_right: Bound on ε_R: how sure an adversary can become that a node is in.
        epsilon_left: Bound on ε_L: how sure they can become that a node is not in.
        mp: Bound on ε of MP: how far the odds move either way.
        is_leakage_proven: Whether the guesses show, with 99 % confidence (or `level`, if that is higher), that models
            give away more than the sampling does: MP's ε is above 0. No guess of a mechanism that gives away nothing is
            right more often than its prior says, however nodes depend on each other. Limits of sampled priors are
            allowed for.
    """

    epsilon_right: ProvenBound
    epsilon_left: ProvenBound
    mp: ProvenBound
    is_leakage_proven: bool

    @property
    def bounds(self) -> tuple[ProvenBound, ProvenBound, ProvenBound]:
        """All three."""
        return (self.epsilon_right, self.epsilon_left, self.mp)

    def to_plain(self) -> dict[str, Any]:
        """By parameter, values as JSON can hold them."""
        return {bound.parameter: bound.to_plain() for bound in self.bounds}

    def __str__(self) -> str:
        first = self.epsilon_right
        head = (
            f"proven with {100 * first.level:g} % confidence each, {first.method}, fitted on {first.num_fitting:,} "
            f"models, {first.num_challenged:,} challenged"
        )
        return "\n".join([head, *(f"  {bound.row()}" for bound in self.bounds)])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        head, *_ = str(self).splitlines()
        rows = [
            (
                SYMBOLS[bound.parameter],
                "nothing" if bound.proven is None else f"≥ {bound.proven:.2f}",
                f"{bound.num_hits:,} of {bound.num_guesses:,}",
                bound.choice.source,
                f"≥ {bound.floor:.2f}",
            )
            for bound in self.bounds
        ]
        return paragraphs([head]) + html_table(("", "proven", "guesses right", "by", "sampling alone"), rows)


# From an attack to its most confident statements, in bounded memory.


ClaimsByOrder: TypeAlias = Mapping[Order, Claims]
Share: TypeAlias = Callable[[float], None]
"""Is called with the share of some work that is done, from 0 to 1."""


class SaysNothingError(InputError):
    """An attack has no statement to make about any model: its scores are all the same, or there are none."""


@dataclass(frozen=True)
class Source:
    """What guesses are based on: an attack and the queries that it sees."""

    attack: Attack
    queries: tuple[str, ...]

    @property
    def name(self) -> str:
        """Attack and queries, such as `gaussian, none`."""
        return f"{registry.label(registry.ATTACK, self.attack)}, {' and '.join(self.queries)}"

    def seen(self, models: Evidence) -> Evidence:
        """What the attack sees of models."""
        return models.asked(*self.queries)


def sources_of(attacks: Sequence[Attack], queries: tuple[str, ...]) -> list[Source]:
    """One source for each attack that fuses queries, and one for each query of the others.

    Raises:
        InputError: if there is no attack, or something is not one.
    """
    if not attacks:
        raise InputError("there must be at least one attack, got none")
    sources = []
    for attack in attacks:
        if not isinstance(attack, Attack):
            raise InputError(f"attack must have fuses_queries and score(...), got {attack!r}")
        each = [queries] if attack.fuses_queries else [(query,) for query in queries]
        sources += [Source(attack, part) for part in each]
    return sources


class _BlockClaims(NamedTuple):
    """The most confident statements about the nodes of a block, and how many of these could be scored."""

    claims: ClaimsByOrder
    num_scored: int


@dataclass(frozen=True, eq=False)
class _MostConfident(BlockJob[_BlockClaims]):
    """Finds the most confident statements about each model.

    Attributes:
        log_prior_odds: log η of all nodes, shape (N,).
        is_allowed: Nodes that statements may be made about, shape (N,).
    """

    log_prior_odds: Floats
    is_allowed: Flags

    def run(self, block: slice, num_threads: int, progress: Progress) -> _BlockClaims:
        """Statements about the nodes of a block."""
        nodes = self.models.nodes_in(block)
        values = np.empty((self.models.num_models, len(nodes)))
        is_asked = self.is_allowed[nodes]
        is_scored = is_asked.copy()
        for rows, scores in self.scores(block, num_threads, progress, is_asked):
            values[rows] = scores.log_likelihood_ratio
            is_scored &= can_be_attacked(nodes, scores.not_auditable)
        if not is_scored.any():
            return _BlockClaims({}, 0)
        claims = most_confident(values, self.log_prior_odds[nodes], is_scored, nodes, num_threads=num_threads)
        return _BlockClaims(claims, int(is_scored.sum()))


def claims_of_attack(
    source: Source,
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    is_allowed: Flags,
    num_threads: int,
    executor: Executor | None = None,
    report: Share = lambda _: None,
) -> ClaimsByOrder:
    """The most confident statements about each model, by a fit on other models.

    Args:
        source: Attack and queries.
        models: Models to make statements about.
        fitting: Other models to fit on; if None, each model is left out of its own fit, or all are cross-fitted.
        log_prior_odds: log η of all nodes, shape (N,).
        is_allowed: Nodes that statements may be made about, shape (N,).
        num_threads: Number of threads.
        executor: Workers that score blocks of nodes, if any.
        report: Called with the share of the work that is done.

    Raises:
        InputError: if the attack fails, or scores are NaN or of the wrong shape.
        SaysNothingError: if no node can be attacked, or each model left out of its own fit has the same scores.
    """
    models, fitting = source.seen(models), None if fitting is None else source.seen(fitting)
    num_nodes = models.num_targets
    claims: dict[Order, Claims] = {}
    num_scored = 0
    job = _MostConfident(source.attack, models, fitting, log_prior_odds, is_allowed)
    for _, made in map_blocks(
        job, num_threads=num_threads, executor=executor, progress=lambda done: report(done / num_nodes)
    ):
        num_scored += made.num_scored
        for order, surest in made.claims.items():
            claims[order] = claims[order].merge(surest) if order in claims else surest
    if not num_scored:
        num_fitting = models.num_models if fitting is None else fitting.num_models
        raise SaysNothingError(f"attack {source.name}: no node can be attacked with {num_fitting} models to fit on")
    lowest, highest = -claims["out by ratio"].confidence.max(), claims["in by ratio"].confidence.max()
    if fitting is None and lowest == highest:
        raise SaysNothingError(f"attack {source.name}: scores must differ, got {lowest:g} for all models and nodes")
    return claims
