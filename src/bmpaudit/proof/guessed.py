"""From guesses about challenged models to what they prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bmpaudit.arrays import Flags
from bmpaudit.attack.evidence import Evidence
from bmpaudit.errors import InputError
from bmpaudit.proof.anytime import AnytimeBound
from bmpaudit.proof.bounds import epsilon_bound, mp_bound
from bmpaudit.proof.guesses import PARAMETERS, Choice, Guesses, Parameter, can_be_named, choose, make_guesses
from bmpaudit.proof.priors import PriorOdds
from bmpaudit.proof.result import ONE_GUESS, SURE, Proof, ProvenBound
from bmpaudit.proof.scored_models import ScoredModels
from bmpaudit.proof.scoring import ClaimsByOrder
from bmpaudit.tables import count_in

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
