"""Certified exposure: how many nodes of a released model can be named, and which share of the names is right, proven.

Posterior log-odds only order the nodes here: nothing is calibrated, and nothing is assumed of the attack or of how
memberships depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native
from bmpaudit.attack.evidence import Evidence, check_samples, prior_probs, split_models
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof.bounds import LOG_WEIGHTS, STAKES, check_level
from bmpaudit.proof.exposure import LeftOut
from bmpaudit.proof.guesses import Source, can_be_named, sources_of
from bmpaudit.proof.prove import default_num_fitting
from bmpaudit.util.errors import thread_count
from bmpaudit.util.matrices import new_matrix
from bmpaudit.util.values import Floats, Floats32, Ints, as_bytes
from bmpaudit.util.words import confidence

Side = Literal["members", "non_members"]
SIDES: tuple[Side, ...] = ("members", "non_members")
CERTAINTIES = (0.75, 0.9, 0.95, 0.99, 0.999)
SHARE_FOR_NUMBERS = 0.1  # of the failure probability, spent on how many names there are
NUM_THRESHOLDS, NUM_TRIED = 400, 48
NUM_LIMITS, NUM_NEAR, NEAR = 16, 9, 1.6  # numbers of names that are tried at first, and then around the best of them
FEWEST_NAMES = 0.02  # per model, that thresholds are made for
FEW_STAKES = slice(0, None, 50)  # enough to choose by
WEIGHT_OF_STAKE = 0.9  # of the stake that was chosen, against all others
WANTED, NOT_WANTED = 0.98, 0.1  # probability of a certificate that a rule should have; names of another count less


@dataclass(frozen=True)
class Certificate:
    """So many names per model, of which at least such a share is right."""

    certainty: float  # share of the names that is right, at least
    names: float  # number of names per model, at least; 0 if nothing is certified
    mean_names: float  # number of names per challenged model
    share_correct: float  # share of them that were right; NaN without any
    most_names: int  # number of names about one model, at most


@dataclass(frozen=True)
class CertifiedExposure:
    """What one released model provably gives away, on average over models."""

    members: tuple[Certificate, ...]  # names of members, by certainty
    non_members: tuple[Certificate, ...]  # names of non-members, by certainty
    level: float  # confidence of each side, for all certainties together
    num_fitting: int  # number of models that rules were learnt on
    num_challenged: int  # number of models about which nodes were named
    source: str  # attack and queries that nodes were named by

    def joined(self, other: CertifiedExposure) -> CertifiedExposure:
        """For each certainty the certificate of more names, where what is certified of another release holds here too.

        All hold together if those of both releases do.
        """
        pairs = {side: list(zip(getattr(self, side), getattr(other, side), strict=True)) for side in SIDES}
        if not any(theirs.names > mine.names for each in pairs.values() for mine, theirs in each):
            return self
        sides: dict[str, Any] = {
            side: tuple(max(pair, key=lambda each: each.names) for pair in each) for side, each in pairs.items()
        }
        return replace(self, source=f"{self.source}; {other.source}", **sides)

    def __str__(self) -> str:
        shown = [
            f"{math.floor(10 * each.names) / 10:,} names of members, at least {100 * each.certainty:g} % of them right"
            for each in self.members
            if each.names > 0
        ]
        return f"certified per model with {confidence(self.level)} confidence: {'; '.join(shown) or 'no names'}"


def certify(
    attack: Attack | Sequence[Attack],
    models: Evidence,
    prior_prob: npt.ArrayLike,
    *,
    level: float = 0.95,
    num_threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = lambda _: None,
) -> CertifiedExposure:
    """Certifies how many nodes can be named, by naming nodes of models that nothing was learnt from.

    A rule names the nodes whose posterior log-odds exceed a threshold, the surest ones if they are too many. It is
    chosen on the first models (a third of them), each scored by a fit on the others, and then used on all later models,
    scored by a fit on the first. So is the attack, if there are several, and the query, if it takes one at a time.

    Formal guarantee: with probability at least `level`, for all certainties p of a side together, the expected number
    of right names about a new model is at least p times the expected number of names, and that is at least `names`.

    Proof. Given the fitting models, let N_j ≤ m be the number of names about challenged model j and R_j that of right
    ones, independent and identically distributed over j, and X_j = R_j - p N_j ≥ -p m. If E[X_j] ≤ 0, a stake c in [0,
    1] turns 1 into ∏(1 + c X_j/(p m)), a non-negative supermartingale, and so does a mixture of stakes: it reaches 1/a
    with probability at most a (Ville). The certainties are tested in ascending order, by bets that do not depend on how
    the others come out. Each that is within reach of so many models has an equal share of the failure probability for
    its own, and what the one before it had, if that was certified: whichever are false, the first of them has its own
    share and at most those of the true ones before it, and each later one only shares that no earlier one has spent
    (the fallback procedure of Wiens 2003). A tenth of a share goes to E[N_j], which the same bets on N_j/m bound from
    below. ∎

    What it does not prove: that each name is right with that probability; the share is an average over names and
    models. Nor that no more can be named: a better attack may.

    The models are independent draws of one release, in their order. A wrong prior costs names, and no validity. The
    result depends neither on the number of threads nor on the executor, whose workers score blocks of nodes; `progress`
    is called with how much of the work is done, from 0 to N.

    Raises:
        InputError: if the inputs do not fit together, or there are too few models.
    """
    failure_prob = check_level(level)
    check_samples(models)
    fitting, challenged = split_models(models, default_num_fitting(models.num_models))
    log_odds = log_prior_odds(prior_probs(np.asarray(prior_prob, dtype=np.float64), models))
    is_allowed = np.isfinite(log_odds[models.nodes]) & can_be_named(fitting.num_in, fitting.num_models)
    nodes = models.nodes[is_allowed]
    sources = sources_of(attack, models.queries)
    total = len(sources) * fitting.num_models + challenged.num_models
    num_done = 0

    def score(source: Source, part: Evidence, fitted: Evidence | None) -> LeftOut:
        nonlocal num_done
        before, size = num_done / total, part.num_models / total
        num_done += part.num_models
        return LeftOut.score(
            source.attack,
            source.seen(part).about(nodes),
            log_odds,
            new_matrix(part.num_models, len(nodes)),
            thread_count(num_threads),
            executor,
            lambda done: progress(int(models.num_nodes * (before + size * done / len(nodes)))),
            None if fitted is None else source.seen(fitted).about(nodes),
        )

    learnt: dict[Source, list[_Rules]] = {}
    for source in sources if len(nodes) else ():
        fitted = score(source, fitting, None)
        if len(fitted.nodes):
            learnt[source] = [_learn(fitted, side, challenged.num_models, failure_prob) for side in SIDES]
    best = max(learnt, key=lambda source: sum(rules.promise for rules in learnt[source]), default=sources[0])
    made = dict.fromkeys(SIDES, tuple(Certificate(certainty, 0.0, 0.0, math.nan, 0) for certainty in CERTAINTIES))
    if best in learnt:
        scored = score(best, challenged, fitting)
        made |= {rules.side: _certify(rules, scored, failure_prob) for rules in learnt[best]}
    return CertifiedExposure(
        **made, level=level, num_fitting=fitting.num_models, num_challenged=challenged.num_models, source=best.name
    )


class _Counts(NamedTuple):
    """How many nodes are named with each threshold, from the highest on, and how many rightly; shape (J, T)."""

    named: Ints
    right: Ints

    @classmethod
    def of(cls, scored: LeftOut, thresholds: Floats32, *, are_members: bool) -> _Counts:
        """Counts the nodes whose log-odds, or their negatives, have reached thresholds, which ascend."""
        num_models, num_thresholds = scored.models.num_models, len(thresholds)
        reached, members = np.zeros((2, num_models, num_thresholds + 1), dtype=np.int64)
        for _, values, truth in scored.blocks():
            signed = values if are_members else -values
            flags = as_bytes(truth if are_members else ~truth)
            counts = (reached, members, None)
            _native.count_by_threshold(signed, flags, thresholds.astype(signed.dtype), scored.num_threads, *counts)
        # Values at place p have reached the first p thresholds.
        return cls(*(each[:, :0:-1].cumsum(axis=1) for each in (reached, members)))

    def limited(self, most_names: int) -> _Counts:
        """With fewer names, the surest, where they would be more than `most_names`."""
        last = np.array([np.searchsorted(row, most_names, side="right") - 1 for row in self.named])
        place = np.minimum(np.arange(self.named.shape[1]), np.maximum(last, 0)[:, None])
        is_any = (last >= 0)[:, None]
        return _Counts(*(np.where(is_any, np.take_along_axis(each, place, axis=1), 0) for each in self))


class NamingRule(NamedTuple):
    """Whom to name: nodes beyond a threshold, the surest if they are more than `most_names`; and what to bet on it."""

    most_names: int
    place: int  # of the threshold, from the highest on
    stake: float
    promise: float  # names per model, or fewer if a certificate is unlikely


class _Rules(NamedTuple):
    """A rule for each certainty that may be certified; thresholds ascend."""

    side: Side
    thresholds: Floats32
    rules: Mapping[float, NamingRule]

    @property
    def promise(self) -> float:
        return sum(rule.promise for rule in self.rules.values())


def _shares(failure_prob: float, number: int) -> tuple[float, float]:
    """Shares of the failure probability for each certainty: that there are many names, and that they are right."""
    share = failure_prob / max(number, 1)
    return SHARE_FOR_NUMBERS * share, (1 - SHARE_FOR_NUMBERS) * share


def _learn(fitted: LeftOut, side: Side, num_ahead: int, failure_prob: float) -> _Rules:
    """Rules for challenging `num_ahead` models, each made for the case that all certainties before are certified."""
    are_members = side == "members"
    some, _ = fitted.some()
    signed = np.sort((some if are_members else -some).ravel())
    # Thresholds that name from a few nodes in all models to most nodes in each.
    per_model = np.geomspace(FEWEST_NAMES, 0.9 * some.shape[1], NUM_THRESHOLDS)
    places = len(signed) - 1 - (per_model * len(some)).astype(np.int64)
    thresholds = np.unique(signed[np.clip(places, 0, len(signed) - 1)])
    seen = _Counts.of(fitted, thresholds, are_members=are_members)
    tried = np.unique(np.linspace(0, len(thresholds) - 1, NUM_TRIED).astype(np.int64))

    def counts_of(limits: Floats) -> dict[int, _Counts]:
        numbers = np.unique(np.maximum(limits, 1).astype(np.int64)).tolist()
        return {limit: _Counts(*(each[:, tried] for each in seen.limited(limit))) for limit in numbers}

    coarse = counts_of(np.geomspace(1, max(seen.named.max(), 1), NUM_LIMITS))
    _, most = _shares(failure_prob, 1)
    possible = [each for each in CERTAINTIES if _choose(coarse, each, num_ahead, most) is not None]
    _, to_be_right = _shares(failure_prob, len(possible))
    rules = dict[float, NamingRule]()
    for number, certainty in enumerate(possible, 1):
        rule = _choose(coarse, certainty, num_ahead, number * to_be_right)
        if rule is not None:
            near = counts_of(rule.most_names * np.geomspace(1 / NEAR, NEAR, NUM_NEAR))
            rule = _choose(near, certainty, num_ahead, number * to_be_right) or rule
            rules[certainty] = rule._replace(place=int(tried[rule.place]))
    return _Rules(side, thresholds, rules)


def _certify(learnt: _Rules, challenged: LeftOut, failure_prob: float) -> tuple[Certificate, ...]:
    counts = _Counts.of(challenged, learnt.thresholds, are_members=learnt.side == "members")
    to_be_many, to_be_right = _shares(failure_prob, len(learnt.rules))
    carried = 0.0  # what the certainty before had to spend, passed on if it was certified
    certificates: list[Certificate] = []
    for certainty in CERTAINTIES:
        rule = learnt.rules.get(certainty)
        if rule is None:  # where none can be expected to be certified, nobody is named
            certificates.append(Certificate(certainty, 0.0, 0.0, math.nan, 0))
            continue
        allowed = carried + to_be_right
        most = rule.most_names
        named, right = (each[:, rule.place].astype(np.float64) for each in counts.limited(most))
        gains = (right - certainty * named) / (certainty * most)
        is_certified = log_wealth(gains, rule.stake) >= -np.log(allowed)
        carried = allowed if is_certified else 0.0
        names = most * mean_limit(named / most, to_be_many) if is_certified else 0.0
        correct = float(right.sum() / named.sum()) if named.any() else math.nan
        certificates.append(Certificate(certainty, names, float(named.mean()), correct, most))
    return tuple(certificates)


def _choose(
    of_limits: Mapping[int, _Counts], certainty: float, num_ahead: int, failure_prob: float
) -> NamingRule | None:
    """The rule that names most and will be certified with a probability of 98 %; or the best to be had, if any.

    How the wealth will have grown after `num_ahead` models is foretold from the fitting models and one more, in which
    one name is wrong: a few hundred models may show none where some are to come.
    """
    best, choice = 0.0, None
    for limit, (named, right) in of_limits.items():
        typical = named.mean(axis=0)  # names per model with each threshold
        gains = np.vstack([right - certainty * named, np.maximum(typical - 1, 0) - certainty * typical])
        logs = np.log1p(STAKES[FEW_STAKES, None, None] * (gains / (certainty * limit) * (1 - 1e-9)))
        mean, spread = num_ahead * logs.mean(axis=1), logs.std(axis=1)
        deviation = spread * np.sqrt(num_ahead * (1 + num_ahead / len(named)))
        needed = -np.log(WEIGHT_OF_STAKE * failure_prob)
        # By how many standard deviations the log wealth to be expected exceeds what is needed, by stake and threshold.
        distance = (mean - needed) / np.maximum(deviation, 1e-9)
        distance[num_ahead * logs.max(axis=1) < needed] = -np.inf  # as well as this went with any fitting model
        stake = distance.argmax(axis=0)
        prob = scipy.special.ndtr(distance[stake, np.arange(len(stake))])
        value = typical * np.where(prob >= WANTED, 1.0, prob * NOT_WANTED)
        k = int(value.argmax())
        if value[k] > best:
            best, choice = float(value[k]), NamingRule(limit, k, float(STAKES[FEW_STAKES][stake[k]]), float(value[k]))
    return choice


def log_wealth(gains: Floats, stake: float = 1.0) -> float:
    """Logarithm of what 1 becomes by bets on gains of at least -1, shape (G,): one stake, and some of all others."""
    values, counts = np.unique(gains, return_counts=True)
    stakes = np.append(STAKES, stake)
    log_weights = np.append(LOG_WEIGHTS + np.log1p(-WEIGHT_OF_STAKE), np.log(WEIGHT_OF_STAKE))
    with np.errstate(divide="ignore"):
        factors = np.log(np.maximum(1 + stakes * values[:, None], 0.0))
    return float(scipy.special.logsumexp(log_weights + counts @ factors))


def mean_limit(shares: Floats, failure_prob: float) -> float:
    """A lower confidence limit of the mean of shares in [0, 1], shape (G,), by betting."""
    low, high = 0.0, float(shares.mean())
    if high == 0:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        is_refuted = log_wealth(shares / middle - 1) >= -np.log(failure_prob)
        low, high = (middle, high) if is_refuted else (low, middle)
    return low
