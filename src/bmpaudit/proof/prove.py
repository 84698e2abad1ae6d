"""From models, or scores of models, to lower bounds on ε that hold with a stated confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.attack.evidence import Evidence, check_fitting_models, check_samples, split_models
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof import bounds
from bmpaudit.proof.bounds import AnytimeBound, check_level, epsilon_bound
from bmpaudit.proof.guesses import (
    PARAMETERS,
    Choice,
    ClaimsByOrder,
    Guesses,
    Parameter,
    PriorOdds,
    ReportShare,
    SaysNothingError,
    allowed_nodes,
    can_be_named,
    choose,
    claims_of_attack,
    make_guesses,
    sources_of,
)
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.matrices import FlagMatrix, count_in, take_rows
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import Floats, Ints, plain
from bmpaudit.util.words import SYMBOLS

Method = Literal["one-guess", "prequential"]
METHODS: dict[Method, str] = {"one-guess": "one guess per model", "prequential": "prequential"}
LEAKAGE_LEVEL = 0.99  # confidence with which leakage is said to be proven, at least
MIN_REPORTABLE = 0.05  # nats beyond the floor from which on a bound is shown: ε ≥ 0.01 is a change of the odds by ×1
MIN_MODELS_TO_PROVE, FEW_MODELS, MANY_MODELS = 8, 128, 1_000
FIRST_FIT, GROWTH = 64, 1.5  # models that the prequential method first fits on, and by how much until it fits again


@dataclass(frozen=True, eq=False)
class ProvenBound:
    """A lower confidence bound on one parameter, by one method.

    `epsilon_bound`, `mp_bound` and `AnytimeBound` have the formal guarantees and their proofs.
    """

    parameter: Parameter  # what is bounded: epsilon_right, epsilon_left or mp
    proven: float | None  # the bound; None if nothing is proven
    floor: float  # what the sampler alone gives away (Prop. 1), a lower confidence limit if priors were sampled
    floor_high: float  # the same, an upper confidence limit if priors were sampled
    level: float
    method: str  # one guess per model, or prequential
    num_fitting: int  # number of models that the rule was fitted on; for the prequential method, at the end
    num_challenged: int  # number of models that could be guessed about
    choice: Choice  # what was guessed by, and when not; for the prequential method, at the end
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
    def possible(self) -> float:
        """What the guesses leave possible: an upper confidence limit by the same model; infinite if all were right.

        It is no bound on ε, of which nothing is known from above, but on what more guesses of this kind would show.
        """
        num_misses, level = self.num_guesses - self.num_hits, self.level
        if self.parameter != "mp":
            least = epsilon_bound(num_misses, self.num_guesses, level)
            return math.inf if least is None else -least
        if not num_misses:
            return math.inf
        odds = self.guesses.log_odds

        def is_possible(epsilon: float) -> bool:
            wrong = scipy.special.expit(-epsilon - odds)
            return bounds.poisson_binomial_tail(wrong, num_misses) > 1 - level

        return bounds.largest_rejected(is_possible) or 0.0

    def __str__(self) -> str:
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
    """

    epsilon_right: ProvenBound  # bound on ε_R: how sure an adversary can become that a node is in
    epsilon_left: ProvenBound  # bound on ε_L: how sure they can become that a node is not in
    mp: ProvenBound  # bound on ε of MP: how far the odds move either way
    # Whether the guesses show, with 99 % confidence or more, that models give away more than the sampling does: MP's ε
    # is above 0. No guess of a mechanism that gives away nothing is right more often than its prior says, however nodes
    # depend on each other. Limits of sampled priors are allowed for.
    is_leakage_proven: bool

    @property
    def bounds(self) -> tuple[ProvenBound, ProvenBound, ProvenBound]:
        """All three."""
        return (self.epsilon_right, self.epsilon_left, self.mp)

    def joined(self, other: Proof, found_on: str) -> Proof:
        """The larger of each two bounds, where what is proven of another release holds for this one too.

        The source of such a bound ends with the words that say what it was found on.
        """
        larger = {}
        for mine, theirs in zip(self.bounds, other.bounds, strict=True):
            is_theirs = theirs.proven is not None and (mine.proven is None or theirs.proven > mine.proven)
            choice = replace(theirs.choice, source=theirs.choice.source + found_on)
            larger[mine.parameter] = replace(theirs, choice=choice, floor=mine.floor) if is_theirs else mine
        return Proof(**larger, is_leakage_proven=self.is_leakage_proven or other.is_leakage_proven)

    @property
    def shown(self) -> dict[Parameter, ProvenBound]:
        """The bounds that are shown as proven, by parameter: the one rule for it.

        Leakage is proven, and the bound lies above the upper confidence limit of what the sampler alone gives away, by
        so much that a reader sees it (`MIN_REPORTABLE`).
        """
        beyond = [
            each for each in self.bounds if each.proven is not None and each.proven >= each.floor_high + MIN_REPORTABLE
        ]
        return {each.parameter: each for each in beyond if self.is_leakage_proven}

    def to_plain(self) -> dict[str, Any]:
        """By parameter, values as JSON can hold them."""
        names = ("level", "method", "num_fitting", "num_challenged", "num_guesses", "num_hits")
        return {
            bound.parameter: plain(
                {"proven": bound.proven, "is_shown": bound.parameter in self.shown, "floor": bound.floor}
                | {name: getattr(bound, name) for name in names}
                | {"source": bound.choice.source}
            )
            for bound in self.bounds
        }

    def _head(self) -> str:
        first = self.epsilon_right
        return (
            f"proven with {100 * first.level:g} % confidence each, {first.method}, fitted on {first.num_fitting:,} "
            f"models, {first.num_challenged:,} challenged"
        )

    def __str__(self) -> str:
        return "\n".join([self._head(), *(f"  {bound}" for bound in self.bounds)])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
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
        return paragraphs([self._head()]) + html_table(("", "proven", "guesses right", "by", "sampling alone"), rows)


def default_num_fitting(num_models: int) -> int:
    """Number of models to fit on: a third of them.

    Half of fewer than 128 models, of which a third is too few. Of more than 1,000 models, as many as of 1,000, or a
    tenth if that is more: the rule hardly improves any more, and each challenged model raises what can be proven.

    >>> [default_num_fitting(number) for number in (64, 300, 1_000, 2_000, 10_000)]
    [32, 100, 333, 333, 1000]
    """
    if num_models < FEW_MODELS:
        return num_models // 2
    return min(num_models // 3, max(MANY_MODELS // 3, num_models // 10))


def prove(
    attack: Attack | Sequence[Attack],
    models: Evidence,
    prior_prob: npt.ArrayLike,
    *,
    prior_draws: int = 0,
    level: float = 0.95,
    method: Method = "one-guess",
    num_fitting: int | None = None,
    fitting: Evidence | None = None,
    num_threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = lambda _: None,
) -> Proof:
    """Lower confidence bounds on ε_R, ε_L and ε of MP of one release.

    With `one-guess`, the first models are fitted on and all others challenged, one guess or none about each. On the
    fitting models, each scored without being in its own fit, the best of the sources (attack and query; an attack that
    fuses queries takes all of them) and the confidence from which on to guess are chosen, separately for each
    parameter. Nothing is chosen after looking at a challenged model. `epsilon_bound` and `mp_bound` have the
    guarantees.

    With `prequential`, each model is guessed about with what was fitted on the models before it, and bets are made on
    the guesses: the bound holds at any time, so models may be added until it is as high as wanted. The rule is fitted
    again whenever there are half as many models more, at numbers that do not depend on how many there will be: calling
    again with more models continues the same bets. `AnytimeBound` has the guarantee.

    Assumptions: models are independent draws of the mechanism, and `models` holds all that were drawn, in their order;
    the attack does not know the memberships of models it scores (they are withheld from it); priors, if sampled, come
    from draws that are independent of the models. ε_R and ε_L need no priors to be right: a wrong one only costs
    guesses.

    Several attacks may be given, to choose from on the fitting models. `fitting` are other models to fit on with
    `one-guess`, which then challenges all of `models`. If `prior_draws` is not 0, each prior is a frequency over so
    many independent draws. `level` is the confidence of each of the three bounds by itself. The result depends neither
    on the number of threads nor on the executor, whose workers score blocks of nodes; `progress` is called with how
    much of the work is done, from 0 to N.

    Raises:
        InputError: if the inputs do not fit together or are too few to prove anything.
    """
    priors = PriorOdds.of(prior_prob, models.num_nodes, prior_draws, check_level(level))
    check_samples(*([models] if fitting is None else [fitting, models]))
    sources = {source.name: source for source in sources_of(attack, models.queries)}
    claim = partial(claims_of_attack, num_threads=thread_count(num_threads), executor=executor)
    fits: list[_Fit] = []
    num_done = num_challenged = 0
    for fitted, challenged in _splits(models, method, num_fitting, fitting):
        if not fits:
            all_challenged = models if fitting is not None else models.take(slice(fitted.num_models, None))
            priors.check_memberships(fitted, "fitting")
            priors.check_memberships(all_challenged, "challenged")
            num_challenged = all_challenged.num_models
        start, size = num_done / num_challenged, challenged.num_models / num_challenged
        report = _part(lambda share: progress(int(share * models.num_nodes)), start, size)
        is_allowed = allowed_nodes(fitted, priors)
        on_fitting: dict[str, ClaimsByOrder] = {}
        silent: list[SaysNothingError] = []
        for k, (name, source) in enumerate(sources.items()):
            part = _part(report, 0.5 * k / len(sources), 0.5 / len(sources))
            try:
                on_fitting[name] = claim(source, fitted, None, priors.log_odds, is_allowed, report=part)
            except SaysNothingError as reason:
                silent.append(reason)
        if not on_fitting:
            raise silent[0]
        num_ahead = challenged.num_models if method == "one-guess" else fitted.num_models
        choices = {
            parameter: choose(parameter, on_fitting, fitted.memberships, priors.log_odds, num_ahead, 1 - level)
            for parameter in PARAMETERS
        }
        claims: dict[str, ClaimsByOrder] = {}
        for k, name in enumerate(sorted({choice.source for choice in choices.values()})):
            part = _part(report, 0.5 + k / 6, 1 / 6)  # a source for each of the three parameters, at most
            claims[name] = claim(sources[name], challenged, fitted, priors.log_odds, is_allowed, report=part)
        guesses: dict[Parameter, Guesses] = {}
        for parameter, choice in choices.items():
            made = claims[choice.source][choice.order]
            guesses[parameter] = make_guesses(
                made, choice.threshold.value, challenged.memberships, challenged.indices, priors.of_claims(made)
            )
        fits.append(_Fit(fitted.num_models, choices, guesses))
        num_done += challenged.num_models
    proven = {}
    for parameter in PARAMETERS:
        parts = [fit.guesses[parameter] for fit in fits]
        floor, floor_high = priors.floor(parameter)
        proven[parameter] = ProvenBound(
            parameter=parameter,
            proven=_bound(parameter, parts, priors, level, METHODS[method]),
            floor=floor,
            floor_high=floor_high,
            level=level,
            method=METHODS[method],
            num_fitting=fits[-1].num_fitting,
            num_challenged=num_challenged,
            choice=fits[-1].choices[parameter],
            guesses=Guesses.joined(parts),
        )
    # Leakage is proven by the same guesses, held to a higher level.
    sure_level = max(LEAKAGE_LEVEL, (1 + level) / 2)
    sure_priors, mp_guesses = priors.at_level(sure_level), proven["mp"].guesses
    mp_guesses = replace(mp_guesses, log_odds=sure_priors.of_claims(mp_guesses))
    sure_bound = _bound("mp", [mp_guesses], sure_priors, sure_level, METHODS[method])
    return Proof(**proven, is_leakage_proven=sure_bound is not None and sure_bound > 0)


class _Fit(NamedTuple):
    """What was chosen on some models to fit on, and what was guessed by it about the models challenged next."""

    num_fitting: int
    choices: Mapping[Parameter, Choice]
    guesses: Mapping[Parameter, Guesses]


def _splits(
    models: Evidence, method: str, num_fitting: int | None, fitting: Evidence | None
) -> Iterator[tuple[Evidence, Evidence]]:
    """Models to fit on and models to challenge, once or, for the prequential method, again and again."""
    if method == "prequential":
        if fitting is not None or num_fitting is not None:
            raise InputError("the prequential method fits on the models before each one, and takes no fitting models")
        if models.num_models <= FIRST_FIT:
            raise InputError(f"the prequential method needs more than {FIRST_FIT} models, got {models.num_models}")
        for first, last in pairwise(refits(models.num_models)):
            yield models.take(slice(first)), models.take(slice(first, last))
    elif method != "one-guess":
        raise InputError(f"method must be one-guess or prequential, got method={method!r}")
    elif fitting is None:
        if models.num_models < MIN_MODELS_TO_PROVE:
            raise InputError(
                f"there must be at least {MIN_MODELS_TO_PROVE} models to fit on some and challenge others, got "
                f"{models.num_models}"
            )
        yield split_models(models, default_num_fitting(models.num_models) if num_fitting is None else num_fitting)
    elif num_fitting is not None:
        raise InputError("only one of fitting and num_fitting can be given, got both")
    else:
        check_fitting_models(fitting, models)
        yield fitting, models


def refits(num_models: int) -> Iterator[int]:
    """Numbers of models at which the prequential method fits again, and the end.

    >>> list(refits(200))
    [64, 96, 144, 200]
    """
    number = FIRST_FIT
    while number < num_models:
        yield number
        number = int(number * GROWTH)
    yield num_models


def _part(report: ReportShare, start: float, size: float) -> ReportShare:
    """Reports what is done of a part of the work, of which `start` comes before it and `size` is its own."""
    return lambda done: report(start + size * done)


def _bound(
    parameter: Parameter, parts: Sequence[Guesses], priors: PriorOdds, level: float, method: str
) -> float | None:
    """What guesses by one or more fits, in their order, prove about a parameter."""
    is_mp = parameter == "mp"
    guess_level = priors.mp_level(level) if is_mp else level
    if method == METHODS["one-guess"]:
        (guesses,) = parts
        if is_mp:
            return bounds.mp_bound(guesses.num_hits, guesses.log_odds, guess_level)
        return epsilon_bound(guesses.num_hits, guesses.num_guesses, guess_level)
    running = AnytimeBound(guess_level, lowest=0.0 if is_mp else -math.inf)
    proven = None
    for guesses in parts:
        running.update(guesses.is_hit, guesses.log_odds if is_mp else 0.0)
        proven = running.value  # the largest bound so far
    return proven


# How much models could prove if every guess were right, and how many models it takes to prove more than some ε.


def provable(num_challenged: int, level: float = 0.95, method: Method = "one-guess") -> float:
    """The bound on ε_R that so many challenged models prove if every guess is right; -∞ without any.

    >>> round(provable(500), 3), round(provable(500, method="prequential"), 3)
    (5.114, 4.957)
    """
    if method == "one-guess":
        bound = epsilon_bound(num_challenged, num_challenged, level)
    else:
        running = AnytimeBound(level)
        running.update(np.ones(num_challenged))
        bound = running.value
    return -math.inf if bound is None else bound


def models_to_prove_more(epsilon: float, level: float = 0.95, method: Method = "one-guess") -> int:
    """The smallest number of models that can prove a bound above ε on ε_R, those to fit on included.

    >>> models_to_prove_more(5.0), models_to_prove_more(5.0, method="prequential")
    (670, 586)
    """
    num_guesses = guesses_to_prove_more(epsilon, level, method)
    if method == "prequential":
        return FIRST_FIT + num_guesses
    return _first(
        lambda number: number - default_num_fitting(number) >= num_guesses,
        MIN_MODELS_TO_PROVE,
        MIN_MODELS_TO_PROVE + 2 * num_guesses,
    )


def guesses_to_prove_more(epsilon: float, level: float = 0.95, method: Method = "one-guess") -> int:
    """The smallest number of guesses that prove a bound above ε on ε_R if all of them are right.

    >>> guesses_to_prove_more(5.0), guesses_to_prove_more(8.0), epsilon_bound(447, 447) > 5.0
    (447, 8932, True)
    """
    above = epsilon + bounds.PRECISION  # to which bounds are found
    # One guess per model, all right: κ^G ≤ a, with κ = σ(ε).
    num_guesses = math.ceil(math.log(check_level(level)) / -math.log1p(math.exp(-above)))
    if method == "one-guess":
        return num_guesses
    # The wealth of `AnytimeBound` if every guess is right: a hit multiplies what is bet with stake c by 1 + c e^-ε.
    log_target, gains = -math.log(check_level(level)), np.log1p(bounds.STAKES * math.exp(-above))
    with_one_stake = (log_target - math.log(bounds.WEIGHT_OF_ALL)) / float(gains[-1])
    return _first(
        lambda number: bool(scipy.special.logsumexp(bounds.LOG_WEIGHTS + number * gains) >= log_target),
        num_guesses,
        math.ceil(with_one_stake),
    )


def provable_about_each(
    memberships: FlagMatrix, priors: PriorOdds, level: float = 0.95, method: Method = "one-guess"
) -> dict[Parameter, Floats]:
    """What J models prove at most by guesses about one node, for each of the N nodes, shape (N,).

    That is the bound on a mechanism that gives away this node in every model, and no other: there are as many guesses,
    all right, as challenged models that hold the node, or for ε_L do not, once enough of the fitting models do for it
    to be named; -∞ without any. For MP it is the better of both sides: a guess of prior log-odds o proves -o more.
    """
    num_models = len(memberships)
    ends = list(refits(num_models)) if method == "prequential" else [default_num_fitting(num_models), num_models]
    num_before = count_in(take_rows(memberships, slice(ends[0])))
    num_in, num_out = np.zeros((2, len(num_before)), dtype=np.int64)
    for first, last in pairwise(ends):
        num_here = count_in(take_rows(memberships, slice(first, last)))
        is_named = can_be_named(num_before, first)
        num_in += num_here * is_named
        num_out += (last - first - num_here) * is_named
        num_before += num_here

    def largest(numbers: Ints, level: float) -> Floats:
        different, place = np.unique(numbers, return_inverse=True)
        return np.array([provable(int(number), level, method) for number in different])[place]

    low, high = (np.where(priors.is_uncertain, limits, 0.0) for limits in (priors.low, priors.high))
    mp_level = priors.mp_level(level)
    mp = np.maximum(largest(num_in, mp_level) - high, largest(num_out, mp_level) + low)
    return {"epsilon_right": largest(num_in, level), "epsilon_left": largest(num_out, level), "mp": mp}


def _first(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from `low` to `high` that is enough; `high` is, and may be too large for `bisect`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
