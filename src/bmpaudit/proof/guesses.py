"""One guess per model: from an attack's scores to the most confident claim about each model, and when to keep silent.

A *score* is a log-likelihood ratio that an attack returns. A *claim* is the statement about a model of which the attack
is surest: a node, and whether it is in. A *guess* is a claim that is confident enough to be made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native, registry
from bmpaudit.attack.challenges import BlockJob, check_attack, map_blocks
from bmpaudit.attack.evidence import Evidence, can_be_attacked, check_priors
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof.bounds import quick_mp_bounds
from bmpaudit.samplers.priors import clopper_pearson
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.matrices import FlagMatrix, count_in
from bmpaudit.util.values import Flags, Floats, Ints, as_bytes

Parameter = Literal["epsilon_right", "epsilon_left", "mp"]
PARAMETERS: tuple[Parameter, ...] = ("epsilon_right", "epsilon_left", "mp")

SHARE_FOR_PRIORS = 0.1  # of the failure probability of a bound on MP, spent on estimated priors
WHOLE = 0.01  # of a draw: a frequency may be rounded by so much
ENOUGH_MODELS = 10
NUM_MP_THRESHOLDS = 64
PSEUDO_MISSES = 1.0  # when a threshold is judged: without them, a few lucky guesses look as good as hundreds


@dataclass(frozen=True, eq=False)
class PriorOdds:
    """Log-odds of the prior memberships of N nodes.

    Formal guarantee: log η_i is in [`low`, `high`] for all nodes together, except with probability
    `SHARE_FOR_PRIORS` times 1 - level: Clopper-Pearson limits with Bonferroni's correction over nodes and sides. Exact
    priors are their own limits.
    """

    log_odds: Floats  # log η, shape (N,); infinite where a prior is 0 or 1
    low: Floats  # lower limits, shape (N,)
    high: Floats  # upper limits, shape (N,)
    num_draws: int  # number of draws behind each prior; 0 if they are exact

    @classmethod
    def of(cls, prior_prob: npt.ArrayLike, num_nodes: int, prior_draws: int, failure_prob: float) -> PriorOdds:
        """Checks priors and finds their limits; 1 - `failure_prob` is the level of the bound on MP."""
        prob = check_priors(prior_prob, num_nodes)
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

    def mp_level(self, level: float) -> float:
        """Level at which the guesses have to hold so that guesses and priors together hold at `level`."""
        return level if self.num_draws == 0 else 1 - (1 - SHARE_FOR_PRIORS) * (1 - level)

    def floor(self, parameter: Parameter) -> tuple[float, float]:
        """What the sampler alone gives away (Prop. 1): a lower and an upper limit."""
        if parameter == "mp":
            return 0.0, 0.0
        low, high = (self.low, self.high) if parameter == "epsilon_right" else (-self.high, -self.low)
        return float(low.max()) + 0.0, float(high.max()) + 0.0

    def of_claims(self, claims: Claims | Guesses) -> Floats:
        """Upper limits of the prior log-odds of what is claimed, one for each claim."""
        return np.where(claims.says_member, self.high[claims.node], -self.low[claims.node])

    def check_memberships(self, models: Evidence, name: str) -> None:
        """Raises `InputError` if there is no member or no non-member, or a node contradicts its exact prior."""
        num_in, num_models = count_in(models.memberships), models.num_models
        for counts, side in ((num_in, "member"), (num_models - num_in, "non-member")):
            if not counts[self.is_uncertain].any():
                raise InputError(f"memberships of the {name} models must hold both sides, got no {side}")
        if self.num_draws == 0:
            surely = np.where(self.log_odds > 0, 1, 0)
            is_wrong = ~self.is_uncertain & (num_in != surely * num_models)
            if is_wrong.any():
                node = int(is_wrong.argmax())
                raise InputError(f"prior_prob is {surely[node]} for node {node}, but memberships say otherwise")


# Claims: the most confident statement about each model.


Order = Literal["in by odds", "out by odds", "in by ratio", "out by ratio", "either by ratio"]
"""What is claimed of a node, and by what the surest node is found: posterior odds or likelihood ratio."""
ORDERS: dict[Parameter, tuple[Order, ...]] = {
    "epsilon_right": ("in by odds",),
    "epsilon_left": ("out by odds",),
    # A correct guess is worth the more, the less likely it was before; what can be guessed depends on the mechanism.
    "mp": ("either by ratio", "in by ratio", "out by ratio", "in by odds", "out by odds"),
}


@dataclass(frozen=True, eq=False)
class Claims:
    """The most confident statement about each of J models, made without looking at memberships."""

    node: Ints  # that the statement is about, shape (J,)
    says_member: Flags  # whether it says that the node is in, shape (J,)
    confidence: Floats  # the higher the surer, shape (J,); -∞ where no statement can be made

    def merge(self, other: Claims) -> Claims:
        """The more confident of two statements about each model; of equally confident ones, the first."""
        is_other = other.confidence > self.confidence
        return Claims(
            *(np.where(is_other, theirs, mine) for mine, theirs in zip(_arrays(self), _arrays(other), strict=True))
        )

    def are_hits(self, memberships: FlagMatrix) -> Flags:
        """Which statements are true, shape (J,); `memberships` has shape (J, N)."""
        return memberships[np.arange(len(self.node)), self.node] == self.says_member


ClaimsByOrder: TypeAlias = Mapping[Order, Claims]


def allowed_nodes(fitting: Evidence, priors: PriorOdds) -> Flags:
    """Nodes that claims may be made about, shape (N,): uncertain ones that rest on enough models, or all of these.

    The surest claim is the likeliest to rest on a fit that went wrong, and a fit to two or three models often does: an
    attack may be wildly sure of nodes that are hardly ever in a sample.
    """
    is_allowed = priors.is_uncertain & can_be_named(count_in(fitting.memberships), fitting.num_models)
    return is_allowed if is_allowed.any() else priors.is_uncertain


def can_be_named(num_in: Ints, num_models: int) -> Flags:
    """Which nodes enough of the fitting models hold, and enough do not."""
    return np.minimum(num_in, num_models - num_in) >= fewest_to_be_named(num_models)


def fewest_to_be_named(num_models: int) -> int:
    """How many of the fitting models are enough: ten, or an eighth of them if that is less."""
    return max(min(ENOUGH_MODELS, num_models // 8), 1)


def most_confident(
    log_likelihood_ratio: Floats,
    log_prior_odds: Floats,
    is_scored: Flags | None = None,
    node: Ints | None = None,
    *,
    num_threads: int | None = None,
) -> dict[Order, Claims]:
    """The claims about each of J models of which an attack is surest, by what "surest" means.

    Of equally likely ones, the node with the smallest id, and "in" before "out". Scores have shape (J, N); claims
    may be made about the nodes that are scored (all if None), which are named by their ids (0, 1, 2, … if None).
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


# What to guess by, chosen on fitting models, none of which is in its own fit.


@dataclass(frozen=True)
class Threshold:
    """When to keep silent."""

    value: float  # a claim is made if its confidence is at least this
    expected: float  # bound that the fitting models lead one to expect of the challenged ones; no proof


@dataclass(frozen=True)
class Choice:
    """What to guess by, chosen on fitting models."""

    source: str  # name of the scores
    order: Order  # what is claimed, and by what the surest node is found
    threshold: Threshold


def learn_threshold(
    confidence: Floats,
    is_hit: Flags,
    posterior_log_odds: Floats,
    num_challenged: int,
    failure_prob: float,
    log_odds: Floats | None = None,
) -> Threshold:
    """The confidence from which on claims are worth making: the one that maximises the bound to be expected.

    Each possible threshold is judged by the bound to be expected of the challenged models: with guesses as often as on
    the fitting models, and misses as often as were seen there or as the posterior odds foretell, whichever is more, and
    one miss on top. Foretold misses matter because a few hundred fitting models may show none where some are to come.

    `confidence`, `is_hit`, what the attack holds the odds to be, and for MP the prior log-odds are those of the claims
    about J fitting models, each of shape (J,).
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


def choose(
    parameter: Parameter,
    claims: Mapping[str, ClaimsByOrder],
    memberships: FlagMatrix,
    log_prior_odds: Floats,
    num_challenged: int,
    failure_prob: float,
) -> Choice:
    """The source and order whose claims about J fitting models promise the highest bound; of equals, the first.

    `claims` are by source, `memberships` the truth, shape (J, N), and `log_prior_odds` those of all nodes, shape (N,).
    """
    choices = []
    for source, by_order in claims.items():
        for order in ORDERS[parameter]:
            made = by_order[order]
            prior = np.where(made.says_member, log_prior_odds[made.node], -log_prior_odds[made.node])
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
    """Claims that were made about challenged models, at most one per model, and what came of them."""

    model: Ints  # number of the model in its plan, shape (G,)
    node: Ints  # node id, shape (G,)
    says_member: Flags  # whether the guess is that the node is in, shape (G,)
    is_hit: Flags  # whether it is right, shape (G,)
    log_odds: Floats  # upper limits of the prior log-odds of what is guessed, shape (G,)

    @property
    def num_guesses(self) -> int:
        """G."""
        return len(self.model)

    @property
    def num_hits(self) -> int:
        """C."""
        return int(np.count_nonzero(self.is_hit))

    @classmethod
    def joined(cls, parts: Sequence[Guesses]) -> Guesses:
        """Guesses about several sets of models, one after the other."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*map(_arrays, parts), strict=True)))


def make_guesses(claims: Claims, threshold: float, memberships: FlagMatrix, indices: Ints, log_odds: Floats) -> Guesses:
    """The claims about J challenged models of sufficient confidence, compared with the truth, shape (J, N)."""
    is_made = (claims.confidence >= threshold) & (claims.confidence > -np.inf)
    arrays: list[Any] = [indices, claims.node, claims.says_member, claims.are_hits(memberships), log_odds]
    return Guesses(*(values[is_made] for values in arrays))


def _arrays(of: Claims | Guesses) -> list[Any]:
    return [getattr(of, field.name) for field in fields(of)]


# From an attack to its claims, in bounded memory.


ReportShare: TypeAlias = Callable[[float], None]
"""Called with the share of some work that is done, from 0 to 1."""


class SaysNothingError(InputError):
    """An attack has no claim to make about any model: its scores are all the same, or there are none."""


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


def sources_of(attack: Attack | Sequence[Attack], queries: tuple[str, ...]) -> list[Source]:
    """One source for each of one or more attacks that fuses queries, and one for each query of the others."""
    attacks, sources = [attack] if isinstance(attack, Attack) else list(attack), list[Source]()
    if not attacks:
        raise InputError("there must be at least one attack, got none")
    for each in attacks:
        check_attack(each)
        sources += [Source(each, seen) for seen in ([queries] if each.fuses_queries else [(q,) for q in queries])]
    return sources


@dataclass(frozen=True, eq=False)
class _ClaimJob(BlockJob[ClaimsByOrder]):
    """Finds the most confident claims about each model; none if no node of a block can be scored."""

    log_prior_odds: Floats
    is_allowed: Flags

    def run(self, block: slice, num_threads: int, progress: Progress) -> ClaimsByOrder:
        nodes = self.models.nodes_in(block)
        values = np.empty((self.models.num_models, len(nodes)))
        is_asked = self.is_allowed[nodes]
        is_scored = is_asked.copy()
        for rows, scores in self.scores(block, num_threads, progress, is_asked):
            values[rows] = scores.log_likelihood_ratio
            is_scored &= can_be_attacked(nodes, scores.not_auditable)
        if not is_scored.any():
            return {}
        return most_confident(values, self.log_prior_odds[nodes], is_scored, nodes, num_threads=num_threads)


def claims_of_attack(
    source: Source,
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    is_allowed: Flags,
    num_threads: int,
    executor: Executor | None = None,
    report: ReportShare = lambda _: None,
) -> ClaimsByOrder:
    """The most confident claims about each model, by a fit on other models.

    Without `fitting`, each model is left out of its own fit, or all are cross-fitted. Log prior odds, and whether a
    claim may be made, are those of all nodes, shape (N,). `SaysNothingError` if no node can be attacked, or each model
    left out of its own fit has the same scores.
    """
    models, fitting = source.seen(models), None if fitting is None else source.seen(fitting)
    num_nodes = models.num_targets
    claims: dict[Order, Claims] = {}
    job = _ClaimJob(source.attack, models, fitting, log_prior_odds, is_allowed)
    for _, made in map_blocks(
        job, num_threads=num_threads, executor=executor, progress=lambda done: report(done / num_nodes)
    ):
        for order, surest in made.items():
            claims[order] = claims[order].merge(surest) if order in claims else surest
    if not claims:
        num_fitting = models.num_models if fitting is None else fitting.num_models
        raise SaysNothingError(f"attack {source.name}: no node can be attacked with {num_fitting} models to fit on")
    lowest, highest = -claims["out by ratio"].confidence.max(), claims["in by ratio"].confidence.max()
    if fitting is None and lowest == highest:
        raise SaysNothingError(f"attack {source.name}: scores must differ, got {lowest:g} for all models and nodes")
    return claims
