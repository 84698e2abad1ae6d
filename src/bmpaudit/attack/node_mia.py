"""Algorithms 1 and 4: how often a membership inference attack errs about each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy.typing as npt

from bmpaudit.attack.challenges import challenge
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.gaussian import Gaussian
from bmpaudit.attack.inputs import SHADOW_FREQUENCY
from bmpaudit.attack.rules import as_rule
from bmpaudit.attack.settings import DEFAULT_SETTINGS, DecisionSettings

if TYPE_CHECKING:
    from bmpaudit.interfaces import Attack, DecisionRule

DEFAULT_ATTACK = Gaussian()


def node_mia(
    models: Evidence,
    prior_prob: npt.ArrayLike | str,
    *,
    attack: Attack = DEFAULT_ATTACK,
    rule: str | DecisionRule = "strong",
    settings: DecisionSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> ErrorCounts:
    """Algorithm 1 (Node-MIA): each model is challenged with hypotheses fitted on other models of the same set.

    As challenges share the models they are fitted on, the counts of a node vary more than binomial counts would;
    `split_mia` gives binomial ones. `challenge` counts the errors of several rules at once.

    Args:
        models: Models to challenge, as `Evidence.of_runs` makes them from shadow models.
        prior_prob: γ(1) of all nodes of the graph, as `prior_probabilities(graph, sampler).prob` gives it; or
            "shadow-frequency" as in the paper: how often each node is in the samples of `models`.
        attack: Attack that scores the challenges.
        rule: Decision rule, by name or itself: `strong` weighs the likelihood ratio with the prior odds, `weak` does
            not.
        settings: Costs of errors, and what to do about nodes that cannot be attacked.
        targets: The target set 𝒯 as node ids, or flags for all nodes; all nodes if None.
        num_threads: Number of threads; the result does not depend on it.

    Raises:
        InputError: if the inputs do not fit together, or no node can be attacked.
    """
    return _mia(models, None, prior_prob, attack, rule, settings, targets, num_threads)


def split_mia(
    fitting: Evidence,
    challenged: Evidence,
    prior_prob: npt.ArrayLike | str = SHADOW_FREQUENCY,
    *,
    attack: Attack = DEFAULT_ATTACK,
    rule: str | DecisionRule = "strong",
    settings: DecisionSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> ErrorCounts:
    """Algorithm 4: the models that are challenged are not those that the hypotheses are fitted on.

    Given the fitted hypotheses, the challenges of a node are independent and its counts binomial. `split_models`
    divides one set of models.

    Args:
        fitting: Models to fit on.
        challenged: Models to challenge; none of them may be among `fitting`.
        prior_prob: γ(1) of all nodes of the graph, or "shadow-frequency" as in the paper: over the fitting models.
        attack: See `node_mia`.
        rule: See `node_mia`.
        settings: See `node_mia`.
        targets: See `node_mia`.
        num_threads: See `node_mia`.

    Raises:
        InputError: if the inputs do not fit together, or no node can be attacked.
    """
    return _mia(challenged, fitting, prior_prob, attack, rule, settings, targets, num_threads)


def _mia(
    models: Evidence,
    fitting: Evidence | None,
    prior_prob: npt.ArrayLike | str,
    attack: Attack,
    rule: str | DecisionRule,
    settings: DecisionSettings,
    targets: npt.ArrayLike | None,
    num_threads: int | None,
) -> ErrorCounts:
    rules = {"rule": as_rule(rule)}
    options = {"fitting": fitting, "settings": settings, "targets": targets, "num_threads": num_threads}
    return challenge(attack, models, prior_prob, rules, **options).error_counts("rule")  # type: ignore[arg-type]
