"""From scores to guesses: the most confident statement about each model, and when to keep silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.special

from bmpaudit import _native
from bmpaudit.arrays import Flags, Floats, Ints, as_bytes
from bmpaudit.checks import thread_count
from bmpaudit.proof.bounds import quick_mp_bounds
from bmpaudit.tables import FlagTable

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

    def are_hits(self, memberships: FlagTable) -> Flags:
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
    memberships: FlagTable,
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


def make_guesses(claims: Claims, threshold: float, memberships: FlagTable, indices: Ints, log_odds: Floats) -> Guesses:
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
