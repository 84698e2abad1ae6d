"""From the scores of any attack to what they prove."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import InputError
from bmpaudit.proof.bounds import check_level
from bmpaudit.proof.guessed import allowed_nodes, check_enough, check_sides, choose_and_guess, prove_once
from bmpaudit.proof.guesses import most_confident
from bmpaudit.proof.priors import PriorOdds
from bmpaudit.proof.result import Proof
from bmpaudit.proof.scored_models import ScoredModels


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
