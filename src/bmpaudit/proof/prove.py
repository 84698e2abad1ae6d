"""From models, or scores of models, to lower bounds on ε that hold with a stated confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.attack.evidence import Evidence, check_fitting_models, split_models
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof.bounds import (
    LOG_WEIGHTS,
    PRECISION,
    STAKES,
    WEIGHT_OF_ALL,
    AnytimeBound,
    check_level,
    epsilon_bound,
    guesses_needed,
    mp_bound,
)
from bmpaudit.proof.guesses import (
    PARAMETERS,
    AnyModels,
    Choice,
    ClaimsByOrder,
    Guesses,
    Parameter,
    PriorOdds,
    SaysNothingError,
    ScoredModels,
    Share,
    allowed_nodes,
    choose,
    claims_of_attack,
    make_guesses,
    most_confident,
    sources_of,
)
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import plain
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

    Args:
        attack: An attack, or several to choose from on the fitting models.
        models: All models under one release, with one or more queries.
        prior_prob: γ(1) of all nodes, shape (N,).
        prior_draws: 0 if priors are exact; otherwise each is a frequency over this many independent draws.
        level: Confidence level of each of the three bounds.
        method: one-guess or prequential.
        num_fitting: Number of models to fit on, for one-guess; `default_num_fitting` if None.
        fitting: Other models to fit on, for one-guess; all of `models` are then challenged.
        num_threads: Number of threads; the result does not depend on it.
        executor: Workers that score blocks of nodes, if there is more than one block; the result does not depend on it.
        progress: Called with how much of the work is done, from 0 to N.

    Raises:
        InputError: if the inputs do not fit together or are too few to prove anything.
    """
    priors = PriorOdds.of(prior_prob, models.num_nodes, prior_draws, check_level(level))
    attacks = [attack] if isinstance(attack, Attack) else list(attack)
    sources = {source.name: source for source in sources_of(attacks, models.queries)}
    claim = partial(claims_of_attack, num_threads=thread_count(num_threads), executor=executor)

    def guess(fitted: Evidence, challenged: Evidence, report: Share) -> GuessesOf:
        is_allowed, claims, silent = allowed_nodes(fitted, priors), {}, []
        for k, (name, source) in enumerate(sources.items()):
            part = _part(report, 0.5 * k / len(sources), 0.5 / len(sources))
            try:
                claims[name] = claim(source, fitted, None, priors.log_odds, is_allowed, report=part)
            except SaysNothingError as reason:
                silent.append(reason)
        if not claims:
            raise silent[0]
        parts = (_part(report, 0.5 + k / 6, 1 / 6) for k in range(len(PARAMETERS)))
        return _guess(
            claims,
            lambda name: claim(sources[name], challenged, fitted, priors.log_odds, is_allowed, report=next(parts)),
            fitted,
            challenged,
            challenged.num_models if method == "one-guess" else fitted.num_models,
            priors,
            level,
        )

    rounds: list[GuessesOf] = []
    num_last = num_done = num_challenged = 0
    for fitted, challenged in _splits(models, method, num_fitting, fitting):
        if not rounds:
            all_challenged = models if fitting is not None else models.take(slice(fitted.num_models, None))
            priors.check_memberships(fitted, "fitting")
            priors.check_memberships(all_challenged, "challenged")
            num_challenged = all_challenged.num_models
        start, size = num_done / num_challenged, challenged.num_models / num_challenged
        part = _part(lambda share: progress(int(share * models.num_nodes)), start, size)
        rounds.append(guess(fitted, challenged, part))
        num_last, num_done = fitted.num_models, num_done + challenged.num_models
    return _proof(rounds, num_last, num_challenged, priors, level, METHODS[method])


def prove_scores(
    fitting: ScoredModels | Mapping[str, ScoredModels],
    challenged: ScoredModels | Mapping[str, ScoredModels],
    prior_prob: npt.ArrayLike,
    *,
    prior_draws: int = 0,
    level: float = 0.95,
) -> Proof:
    """As `prove` with one guess per model, from the scores of any attack, or of several to choose from.

    Args:
        fitting: Scores of the models that rules are fitted on, none of which may be in its own fit; by name if there
            are several candidates.
        challenged: Scores of other models, by rules that were fitted on the fitting ones alone; the same names.
        prior_prob: γ(1) of all nodes, shape (N,).
        prior_draws: 0 if priors are exact; otherwise each is a frequency over this many independent draws.
        level: Confidence level of each of the three bounds.

    Raises:
        InputError: if the inputs do not fit together or are too few to prove anything.
    """
    on_fitting, on_challenged = (
        {"scores": part} if isinstance(part, ScoredModels) else dict(part) for part in (fitting, challenged)
    )
    if not on_fitting or on_fitting.keys() != on_challenged.keys():
        raise InputError(
            f"fitting and challenged models must have scores of the same names, got {', '.join(on_fitting) or 'none'} "
            f"and {', '.join(on_challenged) or 'none'}"
        )
    fitted, others = (next(iter(part.values())) for part in (on_fitting, on_challenged))
    for part, first in ((on_fitting, fitted), (on_challenged, others)):
        for name, scored in part.items():
            if not np.array_equal(scored.memberships, first.memberships):
                raise InputError(f"all scores must be of the same models, got other memberships for {name}")
    num_nodes, other_nodes = fitted.memberships.shape[1], others.memberships.shape[1]
    priors = PriorOdds.of(prior_prob, num_nodes, prior_draws, check_level(level))
    _check_enough(fitted.num_models + others.num_models)
    if num_nodes != other_nodes:
        raise InputError(f"challenged models must have {num_nodes} nodes as the fitting models, got {other_nodes}")
    in_both = np.intersect1d(fitted.indices, others.indices)
    if len(in_both):
        raise InputError(f"model {in_both[0]} is among both the fitting and the challenged models")
    priors.check_memberships(fitted, "fitting")
    priors.check_memberships(others, "challenged")
    is_allowed = allowed_nodes(fitted, priors)
    for name, scored in on_fitting.items():
        values = scored.log_likelihood_ratio[:, is_allowed]
        if (values == values.flat[0]).all():
            raise InputError(f"{name} must differ, got {values.flat[0]:g} for all fitting models and nodes")

    def claims(scored: ScoredModels) -> ClaimsByOrder:
        return most_confident(scored.log_likelihood_ratio, priors.log_odds, is_allowed)

    made = _guess(
        {name: claims(scored) for name, scored in on_fitting.items()},
        lambda name: claims(on_challenged[name]),
        fitted,
        others,
        others.num_models,
        priors,
        level,
    )
    return _proof([made], fitted.num_models, others.num_models, priors, level, METHODS["one-guess"])


def _splits(
    models: Evidence, method: str, num_fitting: int | None, fitting: Evidence | None
) -> Iterator[tuple[Evidence, Evidence]]:
    """Models to fit on and models to challenge, once or, for the prequential method, ever again."""
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
        _check_enough(models.num_models)
        yield split_models(models, default_num_fitting(models.num_models) if num_fitting is None else num_fitting)
    elif num_fitting is not None:
        raise InputError("only one of fitting and num_fitting can be given, got both")
    else:
        check_fitting_models(fitting, models)
        yield fitting, models


def _check_enough(num_models: int) -> None:
    if num_models < MIN_MODELS_TO_PROVE:
        raise InputError(
            f"there must be at least {MIN_MODELS_TO_PROVE} models to fit on some and challenge others, got {num_models}"
        )


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


def _part(report: Share, start: float, size: float) -> Share:
    """Reports what is done of a part of the work."""
    return lambda done: report(start + size * done)


GuessesOf: TypeAlias = dict[Parameter, tuple[Choice, Guesses]]
"""For each parameter what to guess by, chosen on the fitting models, and the guesses about the challenged ones."""


def _guess(
    on_fitting: Mapping[str, ClaimsByOrder],
    on_challenged: Callable[[str], ClaimsByOrder],
    fitting: AnyModels,
    challenged: AnyModels,
    num_ahead: int,
    priors: PriorOdds,
    level: float,
) -> GuessesOf:
    """Chooses on the fitting models, to guess about `num_ahead` others, then guesses about the challenged ones."""
    choices = {
        parameter: choose(parameter, on_fitting, fitting.memberships, priors.log_odds, num_ahead, 1 - level)
        for parameter in PARAMETERS
    }
    claims = {name: on_challenged(name) for name in sorted({choice.source for choice in choices.values()})}
    guesses: GuessesOf = {}
    for parameter, choice in choices.items():
        made, silence = claims[choice.source][choice.order], choice.threshold.value
        limits = priors.of_claims(made)
        guesses[parameter] = choice, make_guesses(made, silence, challenged.memberships, challenged.indices, limits)
    return guesses


def _proof(
    rounds: Sequence[GuessesOf], num_fitting: int, num_challenged: int, priors: PriorOdds, level: float, method: str
) -> Proof:
    """What the guesses of one or more rounds prove, at most one about each challenged model."""
    bounds = {}
    for parameter in PARAMETERS:
        choice, parts = rounds[-1][parameter][0], [each[parameter][1] for each in rounds]
        bounds[parameter] = ProvenBound(
            parameter,
            _bound(parameter, parts, priors, level, method),
            *priors.floor(parameter),
            level,
            method,
            num_fitting,
            num_challenged,
            choice,
            Guesses.joined(parts),
        )
    sure_level, guesses = max(LEAKAGE_LEVEL, level), bounds["mp"].guesses
    sure = priors.at_level(sure_level)
    surely = _bound("mp", [replace(guesses, log_odds=sure.of_claims(guesses))], sure, sure_level, method)
    return Proof(**bounds, is_leakage_proven=surely is not None and surely > 0)


def _bound(
    parameter: Parameter, rounds: Sequence[Guesses], priors: PriorOdds, level: float, method: str
) -> float | None:
    """What the guesses of one or more rounds prove about a parameter."""
    is_mp = parameter == "mp"
    guess_level = priors.mp_level(level) if is_mp else level
    if method == METHODS["one-guess"]:
        (guesses,) = rounds
        if is_mp:
            return mp_bound(guesses.num_hits, guesses.log_odds, guess_level)
        return epsilon_bound(guesses.num_hits, guesses.num_guesses, guess_level)
    running = AnytimeBound(guess_level, lowest=0.0 if is_mp else -math.inf)
    proven = None
    for guesses in rounds:
        running.update_all(guesses.is_hit, guesses.log_odds if is_mp else None)
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
        running.update_all(np.ones(num_challenged))
        bound = running.value
    return -math.inf if bound is None else bound


def models_to_prove_more(epsilon: float, level: float = 0.95, method: Method = "one-guess") -> int:
    """The smallest number of models that can prove a bound above ε on ε_R, those to fit on included.

    >>> models_to_prove_more(5.0), models_to_prove_more(5.0, method="prequential")
    (670, 586)
    """
    above = epsilon + PRECISION  # to which bounds are found
    num_guesses = guesses_needed(above, level)
    if method == "one-guess":
        return _first(
            lambda number: number - default_num_fitting(number) >= num_guesses,
            MIN_MODELS_TO_PROVE,
            MIN_MODELS_TO_PROVE + 2 * num_guesses,
        )
    # The wealth of `AnytimeBound` if every guess is right: a hit multiplies what is bet with stake c by 1 + c e^-ε.
    log_target, gains = -math.log(check_level(level)), np.log1p(STAKES * math.exp(-above))
    with_one_stake = (log_target - math.log(WEIGHT_OF_ALL)) / float(gains[-1])
    return FIRST_FIT + _first(
        lambda number: bool(scipy.special.logsumexp(LOG_WEIGHTS + number * gains) >= log_target),
        num_guesses,
        math.ceil(with_one_stake),
    )


def _first(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from `low` to `high` that is enough; `high` is, and may be too large for `bisect`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
