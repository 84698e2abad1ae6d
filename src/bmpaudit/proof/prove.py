"""From models to what they prove."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
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
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof.anytime import AnytimeBound
from bmpaudit.proof.bounds import check_level
from bmpaudit.proof.guessed import (
    Guessed,
    allowed_nodes,
    check_enough,
    check_sides,
    choose_and_guess,
    floor_of,
    prove_once,
    proves_leakage,
)
from bmpaudit.proof.guesses import PARAMETERS, Parameter
from bmpaudit.proof.priors import PriorOdds
from bmpaudit.proof.result import PREQUENTIAL, Proof, ProvenBound
from bmpaudit.proof.scoring import ClaimsByOrder, SaysNothingError, Share, Source, claims_of_attack, sources_of

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
