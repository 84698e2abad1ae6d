"""From models to what they prove."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.inputs import check_fitting_models
from bmpaudit.attack.split import split_models
from bmpaudit.checks import thread_count
from bmpaudit.errors import InputError
from bmpaudit.interfaces import Attack
from bmpaudit.proof.anytime import AnytimeBound
from bmpaudit.proof.bounds import check_level, epsilon_bound, mp_bound
from bmpaudit.proof.guesses import (
    PARAMETERS,
    Choice,
    Guesses,
    Parameter,
    can_be_named,
    choose,
    make_guesses,
    most_confident,
)
from bmpaudit.proof.priors import PriorOdds
from bmpaudit.proof.result import ONE_GUESS, PREQUENTIAL, SURE, Proof, ProvenBound
from bmpaudit.proof.scored_models import ScoredModels
from bmpaudit.proof.scoring import ClaimsByOrder, SaysNothingError, Source, claims_of_attack, sources_of

Method = Literal["one-guess", "prequential"]
Guessed = dict[Parameter, tuple[Choice, Guesses]]

MIN_MODELS = 8
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

    Raises:
        InputError: if the inputs do not fit together or are too few to prove anything.
    """
    attacks = [attack] if isinstance(attack, Attack) else list(attack)
    priors = PriorOdds.of(prior_prob, models.num_nodes, prior_draws, check_level(level))
    sources = {source.name: source for source in sources_of(attacks, models.queries)}
    threads = thread_count(num_threads)

    def guess(fitted: Evidence, challenged: Evidence) -> Guessed:
        is_allowed = _allowed(fitted, priors)
        return _guess(
            _claims_on_fitting(sources, fitted, priors, is_allowed, threads),
            lambda name: claims_of_attack(sources[name], challenged, fitted, priors.log_odds, is_allowed, threads),
            fitted,
            challenged,
            challenged.num_models if method == "one-guess" else fitted.num_models,
            priors,
            level,
        )

    if method == "prequential":
        if fitting is not None or num_fitting is not None:
            raise InputError("the prequential method fits on the models before each one, and takes no fitting models")
        return _prove_prequentially(guess, models, priors, level)
    if method != "one-guess":
        raise InputError(f"method must be one-guess or prequential, got method={method!r}")
    if fitting is not None and num_fitting is not None:
        raise InputError("only one of fitting and num_fitting can be given, got both")
    if fitting is not None:
        check_fitting_models(fitting, models)
        challenged = models
    else:
        _check_enough(models.num_models)
        split = split_models(models, default_num_fitting(models.num_models) if num_fitting is None else num_fitting)
        fitting, challenged = split.fitting, split.challenged
    _check_sides(fitting, challenged, priors)
    return _prove_once(guess(fitting, challenged), fitting, challenged, priors, level)


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
    _check_enough(fitted.num_models + others.num_models)
    _check_apart(fitted, others)
    _check_sides(fitted, others, priors)
    is_allowed = _allowed(fitted, priors)
    for name, scored in on_fitting.items():
        values = scored.log_likelihood_ratio[:, is_allowed]
        if (values == values.flat[0]).all():
            raise InputError(f"{name} must differ, got {values.flat[0]:g} for all fitting models and nodes")
    guessed = _guess(
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
    return _prove_once(guessed, fitted, others, priors, level)


def _claims_on_fitting(
    sources: Mapping[str, Source], fitted: Evidence, priors: PriorOdds, is_allowed: Flags, num_threads: int
) -> dict[str, ClaimsByOrder]:
    """Statements about the fitting models, by those of the sources that have any to make.

    Raises:
        SaysNothingError: if none has.
    """
    claims, reasons = {}, []
    for name, source in sources.items():
        try:
            claims[name] = claims_of_attack(source, fitted, None, priors.log_odds, is_allowed, num_threads)
        except SaysNothingError as reason:
            reasons.append(reason)
    if not claims:
        raise reasons[0]
    return claims


def _guess(
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


def _prove_once(
    guessed: Guessed,
    fitting: Evidence | ScoredModels,
    challenged: Evidence | ScoredModels,
    priors: PriorOdds,
    level: float,
) -> Proof:
    bounds = {}
    for parameter, (choice, guesses) in guessed.items():
        if parameter == "mp":
            proven = mp_bound(guesses.num_hits, guesses.log_odds, priors.mp_level(level))
        else:
            proven = epsilon_bound(guesses.num_hits, guesses.num_guesses, level)
        bounds[parameter] = ProvenBound(
            parameter=parameter,
            proven=proven,
            **_floor(parameter, priors),
            level=level,
            method=ONE_GUESS,
            num_fitting=fitting.num_models,
            num_challenged=challenged.num_models,
            choice=choice,
            guesses=guesses,
        )
    return Proof(**bounds, is_leakage_proven=_proves_leakage(bounds["mp"], priors))


def _proves_leakage(bound: ProvenBound, priors: PriorOdds) -> bool:
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


def _prove_prequentially(
    guess: Callable[[Evidence, Evidence], Guessed], models: Evidence, priors: PriorOdds, level: float
) -> Proof:
    if models.num_models <= FIRST_FIT:
        raise InputError(f"the prequential method needs more than {FIRST_FIT} models, got {models.num_models}")
    _check_sides(models.take(slice(FIRST_FIT)), models.take(slice(FIRST_FIT, None)), priors)
    running: dict[Parameter, AnytimeBound] = {
        "epsilon_right": AnytimeBound(level),
        "epsilon_left": AnytimeBound(level),
        "mp": AnytimeBound(priors.mp_level(level), lowest=0.0),
    }
    total: Guessed = {}
    first = FIRST_FIT
    for first, last in pairwise(refits(models.num_models)):
        for parameter, (choice, guesses) in guess(models.take(slice(first)), models.take(slice(first, last))).items():
            log_odds = guesses.log_odds if parameter == "mp" else np.zeros(guesses.num_guesses)
            running[parameter].update_all(guesses.is_hit, log_odds)
            running[parameter].value  # noqa: B018  keeps the largest bound so far
            before = total.get(parameter)
            total[parameter] = (choice, guesses if before is None else before[1].followed_by(guesses))
    bounds = {
        parameter: ProvenBound(
            parameter=parameter,
            proven=running[parameter].value,
            **_floor(parameter, priors),
            level=level,
            method=PREQUENTIAL,
            num_fitting=first,
            num_challenged=models.num_models - FIRST_FIT,
            choice=choice,
            guesses=guesses,
        )
        for parameter, (choice, guesses) in total.items()
    }
    return Proof(**bounds, is_leakage_proven=_proves_leakage(bounds["mp"], priors))


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


def _floor(parameter: Parameter, priors: PriorOdds) -> dict[str, float]:
    limits = {"epsilon_right": priors.floor_right, "epsilon_left": priors.floor_left, "mp": (0.0, 0.0)}[parameter]
    return dict(zip(("floor", "floor_high"), limits, strict=True))


def _allowed(fitting: Evidence | ScoredModels, priors: PriorOdds) -> Flags:
    """Nodes that may be guessed about, shape (N,): those that rest on enough models, or all if there are none."""
    is_allowed = priors.is_uncertain & can_be_named(fitting.memberships)
    return is_allowed if is_allowed.any() else priors.is_uncertain


def _same_models(scored: Mapping[str, ScoredModels]) -> ScoredModels:
    first = next(iter(scored.values()))
    for name, other in scored.items():
        if not np.array_equal(other.memberships, first.memberships):
            raise InputError(f"all scores must be of the same models, got other memberships for {name}")
    return first


def _check_enough(num_models: int) -> None:
    if num_models < MIN_MODELS:
        raise InputError(
            f"there must be at least {MIN_MODELS} models to fit on some and challenge others, got {num_models}"
        )


def _check_apart(fitting: ScoredModels, challenged: ScoredModels) -> None:
    if fitting.memberships.shape[1] != challenged.memberships.shape[1]:
        raise InputError(
            f"challenged models must have {fitting.memberships.shape[1]} nodes as the fitting models, got "
            f"{challenged.memberships.shape[1]}"
        )
    both = np.intersect1d(fitting.indices, challenged.indices)
    if len(both):
        raise InputError(f"model {both[0]} is among both the fitting and the challenged models")


def _check_sides(fitting: Evidence | ScoredModels, challenged: Evidence | ScoredModels, priors: PriorOdds) -> None:
    priors.check_memberships(fitting.memberships, "fitting")
    priors.check_memberships(challenged.memberships, "challenged")
