"""From guesses about challenged models to what they prove."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import pairwise
from typing import Literal

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
    most_provable,
    mp_bound,
)
from bmpaudit.proof.guesses import (
    ONE_GUESS,
    PARAMETERS,
    PREQUENTIAL,
    SURE,
    Choice,
    ClaimsByOrder,
    Guesses,
    Parameter,
    PriorOdds,
    Proof,
    ProvenBound,
    SaysNothingError,
    ScoredModels,
    Share,
    Source,
    can_be_named,
    choose,
    claims_of_attack,
    make_guesses,
    most_confident,
    sources_of,
)
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.matrices import count_in
from bmpaudit.util.values import Flags

# From guesses about challenged models to what they prove.


Guessed = dict[Parameter, tuple[Choice, Guesses]]
"""For each parameter what to guess by, chosen on the fitting models, and the guesses about the challenged ones."""

MIN_MODELS = 8


def choose_and_guess(
    on_fitting: Mapping[str, ClaimsByOrder],
    on_challenged: Callable[[str], ClaimsByOrder],
    fitting: Evidence | ScoredModels,
    challenged: Evidence | ScoredModels,
    num_ahead: int,
    priors: PriorOdds,
    level: float,
) -> Guessed:
    """Chooses on the fitting models, then guesses about the challenged ones."""
    choices = {
        parameter: choose(
            parameter,
            on_fitting,
            fitting.memberships,
            priors.log_odds,
            num_ahead,
            1 - level,
        )
        for parameter in PARAMETERS
    }
    claims = {name: on_challenged(name) for name in sorted({choice.source for choice in choices.values()})}
    guessed: Guessed = {}
    for parameter, choice in choices.items():
        made = claims[choice.source][choice.order]
        log_odds = made.log_odds(priors.low, priors.high)
        guesses = make_guesses(made, choice.threshold.value, challenged.memberships, challenged.indices, log_odds)
        guessed[parameter] = (choice, guesses)
    return guessed


def prove_once(
    guessed: Guessed,
    fitting: Evidence | ScoredModels,
    challenged: Evidence | ScoredModels,
    priors: PriorOdds,
    level: float,
) -> Proof:
    """What guesses prove, at most one about each challenged model."""
    bounds = {}
    for parameter, (choice, guesses) in guessed.items():
        if parameter == "mp":
            proven = mp_bound(guesses.num_hits, guesses.log_odds, priors.mp_level(level))
        else:
            proven = epsilon_bound(guesses.num_hits, guesses.num_guesses, level)
        bounds[parameter] = ProvenBound(
            parameter=parameter,
            proven=proven,
            **floor_of(parameter, priors),
            level=level,
            method=ONE_GUESS,
            num_fitting=fitting.num_models,
            num_challenged=challenged.num_models,
            choice=choice,
            guesses=guesses,
        )
    return Proof(**bounds, is_leakage_proven=proves_leakage(bounds["mp"], priors))


def proves_leakage(bound: ProvenBound, priors: PriorOdds) -> bool:
    """Whether MP's ε is above 0, at 99 % or the bound's own level if that is higher; see `Proof`."""
    level = max(SURE, bound.level)
    sure, guesses = priors.at_level(level), bound.guesses
    log_odds = np.where(guesses.says_member, sure.high[guesses.node], -sure.low[guesses.node])
    if bound.method == ONE_GUESS:
        proven = mp_bound(guesses.num_hits, log_odds, sure.mp_level(level))
    else:
        running = AnytimeBound(sure.mp_level(level), lowest=0.0)
        running.update_all(guesses.is_hit, log_odds)
        proven = running.value
    return proven is not None and proven > 0


def floor_of(parameter: Parameter, priors: PriorOdds) -> dict[str, float]:
    """What the sampler alone gives away, as a bound has it."""
    limits = {"epsilon_right": priors.floor_right, "epsilon_left": priors.floor_left, "mp": (0.0, 0.0)}[parameter]
    return dict(zip(("floor", "floor_high"), limits, strict=True))


def allowed_nodes(fitting: Evidence | ScoredModels, priors: PriorOdds) -> Flags:
    """Nodes that may be guessed about, shape (N,): those that rest on enough models, or all if there are none."""
    is_allowed = priors.is_uncertain & can_be_named(count_in(fitting.memberships), fitting.num_models)
    return is_allowed if is_allowed.any() else priors.is_uncertain


def check_enough(num_models: int) -> None:
    """Raises `InputError` if there are too few models to fit on some and challenge others."""
    if num_models < MIN_MODELS:
        raise InputError(
            f"there must be at least {MIN_MODELS} models to fit on some and challenge others, got {num_models}"
        )


def check_sides(fitting: Evidence | ScoredModels, challenged: Evidence | ScoredModels, priors: PriorOdds) -> None:
    """Raises `InputError` if memberships have one side only, or contradict exact priors."""
    priors.check_memberships(count_in(fitting.memberships), fitting.num_models, "fitting")
    priors.check_memberships(count_in(challenged.memberships), challenged.num_models, "challenged")


# From models to what they prove.


Method = Literal["one-guess", "prequential"]

FEW_MODELS = 128
MANY_MODELS = 1_000
FIRST_FIT = 64
GROWTH = 1.5


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
    attacks = [attack] if isinstance(attack, Attack) else list(attack)
    priors = PriorOdds.of(prior_prob, models.num_nodes, prior_draws, check_level(level))
    sources = {source.name: source for source in sources_of(attacks, models.queries)}
    claim = partial(claims_of_attack, num_threads=thread_count(num_threads), executor=executor)

    def report(share: float) -> None:
        progress(int(share * models.num_nodes))

    def guess(fitted: Evidence, challenged: Evidence, report: Share) -> Guessed:
        is_allowed, num_chosen = allowed_nodes(fitted, priors), iter(range(len(PARAMETERS)))

        def claims(name: str) -> ClaimsByOrder:
            part = partial(_of_part, report, 0.5 + next(num_chosen) / (2 * len(PARAMETERS)), 1 / (2 * len(PARAMETERS)))
            return claim(sources[name], challenged, fitted, priors.log_odds, is_allowed, report=part)

        return choose_and_guess(
            _claims_on_fitting(claim, sources, fitted, priors, is_allowed, partial(_of_part, report, 0.0, 0.5)),
            claims,
            fitted,
            challenged,
            challenged.num_models if method == "one-guess" else fitted.num_models,
            priors,
            level,
        )

    if method == "prequential":
        if fitting is not None or num_fitting is not None:
            raise InputError("the prequential method fits on the models before each one, and takes no fitting models")
        return _prove_prequentially(guess, models, priors, level, report)
    if method != "one-guess":
        raise InputError(f"method must be one-guess or prequential, got method={method!r}")
    if fitting is not None and num_fitting is not None:
        raise InputError("only one of fitting and num_fitting can be given, got both")
    if fitting is not None:
        check_fitting_models(fitting, models)
        challenged = models
    else:
        check_enough(models.num_models)
        split = split_models(models, default_num_fitting(models.num_models) if num_fitting is None else num_fitting)
        fitting, challenged = split.fitting, split.challenged
    check_sides(fitting, challenged, priors)
    return prove_once(guess(fitting, challenged, report), fitting, challenged, priors, level)


def _of_part(report: Share, start: float, size: float, done: float) -> None:
    """Reports what is done of a part of the work."""
    report(start + size * done)


def _claims_on_fitting(
    claim: Callable[..., ClaimsByOrder],
    sources: Mapping[str, Source],
    fitted: Evidence,
    priors: PriorOdds,
    is_allowed: Flags,
    report: Share,
) -> dict[str, ClaimsByOrder]:
    """Statements about the fitting models, by those of the sources that have any to make.

    Raises:
        SaysNothingError: if none has.
    """
    claims, reasons = {}, []
    for number, (name, source) in enumerate(sources.items()):
        part = partial(_of_part, report, number / len(sources), 1 / len(sources))
        try:
            claims[name] = claim(source, fitted, None, priors.log_odds, is_allowed, report=part)
        except SaysNothingError as reason:
            reasons.append(reason)
    if not claims:
        raise reasons[0]
    return claims


def _prove_prequentially(
    guess: Callable[[Evidence, Evidence, Share], Guessed],
    models: Evidence,
    priors: PriorOdds,
    level: float,
    report: Share,
) -> Proof:
    if models.num_models <= FIRST_FIT:
        raise InputError(f"the prequential method needs more than {FIRST_FIT} models, got {models.num_models}")
    check_sides(models.take(slice(FIRST_FIT)), models.take(slice(FIRST_FIT, None)), priors)
    running: dict[Parameter, AnytimeBound] = {
        "epsilon_right": AnytimeBound(level),
        "epsilon_left": AnytimeBound(level),
        "mp": AnytimeBound(priors.mp_level(level), lowest=0.0),
    }
    total: Guessed = {}
    first = FIRST_FIT
    for first, last in pairwise(refits(models.num_models)):
        # The work of a round is about that of all models up to its end.
        part = partial(_of_part, report, first / models.num_models, (last - first) / models.num_models)
        guessed = guess(models.take(slice(first)), models.take(slice(first, last)), part)
        for parameter, (choice, guesses) in guessed.items():
            log_odds = guesses.log_odds if parameter == "mp" else np.zeros(guesses.num_guesses)
            running[parameter].update_all(guesses.is_hit, log_odds)
            running[parameter].value  # noqa: B018  keeps the largest bound so far
            before = total.get(parameter)
            total[parameter] = (choice, guesses if before is None else before[1].followed_by(guesses))
    bounds = {
        parameter: ProvenBound(
            parameter=parameter,
            proven=running[parameter].value,
            **floor_of(parameter, priors),
            level=level,
            method=PREQUENTIAL,
            num_fitting=first,
            num_challenged=models.num_models - FIRST_FIT,
            choice=choice,
            guesses=guesses,
        )
        for parameter, (choice, guesses) in total.items()
    }
    return Proof(**bounds, is_leakage_proven=proves_leakage(bounds["mp"], priors))


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


# How much models could prove if every guess were right, and how many models it takes to prove more than some ε.


def provable(num_challenged: int, level: float = 0.95, method: Method = "one-guess") -> float:
    """The bound on ε_R that so many challenged models prove if every guess is right; -∞ without any.

    >>> round(provable(500), 3), round(provable(500, method="prequential"), 3)
    (5.114, 4.957)
    """
    if method == "one-guess":
        return most_provable(num_challenged, level)
    bound = AnytimeBound(level)
    bound.update_all(np.ones(num_challenged))
    return -math.inf if bound.value is None else bound.value


def models_to_prove_more(epsilon: float, level: float = 0.95, method: Method = "one-guess") -> int:
    """The smallest number of models that can prove a bound above ε on ε_R, those to fit on included.

    >>> models_to_prove_more(5.0), models_to_prove_more(5.0, method="prequential")
    (670, 586)
    """
    num_guesses = _guesses_to_prove_more(epsilon, level, method)
    if method == "prequential":
        return FIRST_FIT + num_guesses
    return _first(
        lambda number: number - default_num_fitting(number) >= num_guesses, MIN_MODELS, MIN_MODELS + 2 * num_guesses
    )


def _guesses_to_prove_more(epsilon: float, level: float, method: Method) -> int:
    above = epsilon + PRECISION  # to which bounds are found
    num_guesses = guesses_needed(above, level)
    if method == "one-guess":
        return num_guesses
    log_target = -math.log(check_level(level))
    # The wealth of `AnytimeBound` if every guess is right: a hit multiplies what is bet with stake c by 1 + c e^-ε.
    gains = np.log1p(STAKES * math.exp(-above))
    with_one_stake = (log_target - math.log(WEIGHT_OF_ALL)) / float(gains[-1])
    return _first(
        lambda number: bool(scipy.special.logsumexp(LOG_WEIGHTS + number * gains) >= log_target),
        num_guesses,
        math.ceil(with_one_stake),
    )


def _first(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from `low` to `high` that is enough; `high` is."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low


# From the scores of any attack to what they prove.


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
    fitted, others = (_same_models(part) for part in (on_fitting, on_challenged))
    priors = PriorOdds.of(prior_prob, fitted.memberships.shape[1], prior_draws, check_level(level))
    check_enough(fitted.num_models + others.num_models)
    _check_apart(fitted, others)
    check_sides(fitted, others, priors)
    is_allowed = allowed_nodes(fitted, priors)
    for name, scored in on_fitting.items():
        values = scored.log_likelihood_ratio[:, is_allowed]
        if (values == values.flat[0]).all():
            raise InputError(f"{name} must differ, got {values.flat[0]:g} for all fitting models and nodes")
    guessed = choose_and_guess(
        {
            name: most_confident(scored.log_likelihood_ratio, priors.log_odds, is_allowed)
            for name, scored in on_fitting.items()
        },
        lambda name: most_confident(on_challenged[name].log_likelihood_ratio, priors.log_odds, is_allowed),
        fitted,
        others,
        others.num_models,
        priors,
        level,
    )
    return prove_once(guessed, fitted, others, priors, level)


def _same_models(scored: Mapping[str, ScoredModels]) -> ScoredModels:
    first = next(iter(scored.values()))
    for name, other in scored.items():
        if not np.array_equal(other.memberships, first.memberships):
            raise InputError(f"all scores must be of the same models, got other memberships for {name}")
    return first


def _check_apart(fitting: ScoredModels, challenged: ScoredModels) -> None:
    if fitting.memberships.shape[1] != challenged.memberships.shape[1]:
        raise InputError(
            f"challenged models must have {fitting.memberships.shape[1]} nodes as the fitting models, got "
            f"{challenged.memberships.shape[1]}"
        )
    both = np.intersect1d(fitting.indices, challenged.indices)
    if len(both):
        raise InputError(f"model {both[0]} is among both the fitting and the challenged models")
