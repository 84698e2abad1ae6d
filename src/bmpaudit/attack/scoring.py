"""Errors of any attack under any rules: no model is in its own fit, and memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from bmpaudit.arrays import Floats, Ints
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.gaussian import NATIVE_RULES, Gaussian
from bmpaudit.attack.not_auditable import NotAuditable, can_be_attacked
from bmpaudit.attack.rules import RuleErrors, errors_at
from bmpaudit.attack.scores import Scores
from bmpaudit.errors import InputError
from bmpaudit.interfaces import LeaveOneOutAttack

if TYPE_CHECKING:
    from bmpaudit.interfaces import Attack, DecisionRule

NUM_FOLDS = 10
MAX_BLOCK = 2**24  # challenges scored at once: 128 MB of scores


class Round(NamedTuple):
    """Models to score, and others to fit on; without these, the attack leaves each model out of its own fit."""

    rows: slice
    challenged: Evidence
    fitting: Evidence | None


def rounds(attack: Attack, models: Evidence, fitting: Evidence | None) -> Iterator[Round]:
    """How every model gets scored without being in its own fit.

    With `fitting`, once (Algorithm 4). Else by the attack's own leave-one-out (Algorithm 1), or if it has none, by
    folds: each of 10 contiguous parts of the models is scored with a fit on the others. Models of a plan are
    independent, so any division that does not look at them will do.

    Raises:
        InputError: if there is a single model and nothing to fit on.
    """
    if fitting is not None:
        yield Round(slice(None), models.without_memberships(), fitting)
    elif isinstance(attack, LeaveOneOutAttack):
        yield Round(slice(None), models, None)
    else:
        num_models = models.num_models
        if num_models < 2:
            raise InputError(f"there must be at least 2 models to fit on others, got {num_models}")
        num_folds = min(NUM_FOLDS, num_models)
        for first, last in pairwise(num_models * fold // num_folds for fold in range(num_folds + 1)):
            others = np.concatenate([np.arange(first), np.arange(last, num_models)])
            rows = slice(first, last)
            yield Round(rows, models.take(rows).without_memberships(), models.take(others))


@dataclass(frozen=True, eq=False)
class Scored:
    """What came of the scores; meaningless for nodes that some round could not score.

    Attributes:
        errors: By rule, for the K targets.
        not_auditable: Nodes that could not be scored in at least one round.
        log_likelihood_ratio: Scores of all challenges, shape (J, K), if they were to be kept.
    """

    errors: Mapping[str, RuleErrors]
    not_auditable: tuple[NotAuditable, ...]
    log_likelihood_ratio: Floats | None


def count_errors(
    attack: Attack,
    rules: Mapping[str, DecisionRule],
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    threshold: float,
    *,
    num_threads: int,
    keep_scores: bool,
) -> Scored:
    """Scores every model about every target and counts the errors of each rule.

    The Gaussian attack under the built-in rules is counted in one native pass, anything else from scores.

    Args:
        attack: Any attack.
        rules: Decision rules by name.
        models: Models to challenge.
        fitting: Other models to fit on, if any.
        log_prior_odds: log η of the K targets, shape (K,), finite.
        threshold: Decision scores above it mean "member".
        num_threads: Passed on to the attack.
        keep_scores: Whether to return the scores, 8 bytes per challenge.
    """
    kept = np.empty((models.num_models, len(models.nodes))) if keep_scores else None
    if type(attack) is Gaussian and all(type(rule) in NATIVE_RULES for rule in rules.values()):
        made = attack.count_errors(models, fitting, log_prior_odds, threshold, num_threads=num_threads, scores=kept)
        return Scored({name: made.errors[type(rule)] for name, rule in rules.items()}, made.not_auditable, kept)
    return _count_from_scores(attack, rules, models, fitting, log_prior_odds, threshold, num_threads, kept)


def _count_from_scores(
    attack: Attack,
    rules: Mapping[str, DecisionRule],
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    threshold: float,
    num_threads: int,
    kept: Floats | None,
) -> Scored:
    nodes = models.nodes
    errors = {name: RuleErrors(*np.zeros((2, len(nodes)), dtype=np.int64)) for name in rules}
    reasons: list[NotAuditable] = []
    for each in rounds(attack, models, fitting):
        memberships = models.memberships[each.rows]
        for columns in _blocks(len(nodes), each.challenged.num_models):
            is_whole = columns == slice(0, len(nodes))
            scores = _score(attack, each, None if is_whole else nodes[columns], num_threads)
            reasons += scores.not_auditable
            llr = _checked(attack, scores, each, nodes[columns])
            members = models.at_targets(memberships) if is_whole else memberships[:, nodes[columns]]
            for name, rule in rules.items():
                made = errors_at(rule.decision_score(llr, log_prior_odds[columns]), members, threshold)
                errors[name].false_positives[columns] += made.false_positives
                errors[name].false_negatives[columns] += made.false_negatives
            if kept is not None:
                kept[each.rows, columns] = llr
    return Scored(errors, tuple(reasons), kept)


def _blocks(num_nodes: int, num_models: int) -> Iterator[slice]:
    width = max(1, MAX_BLOCK // num_models)
    for first in range(0, num_nodes, width):
        yield slice(first, min(first + width, num_nodes))


def _score(attack: Attack, each: Round, nodes: Ints | None, num_threads: int) -> Scores:
    challenged, fitting = each.challenged, each.fitting
    if nodes is not None:
        challenged, fitting = challenged.about(nodes), None if fitting is None else fitting.about(nodes)
    if fitting is not None:
        return attack.score(fitting, challenged, num_threads=num_threads)
    return cast(LeaveOneOutAttack, attack).score_left_out(challenged, num_threads=num_threads)


def _checked(attack: Attack, scores: Scores, each: Round, nodes: Ints) -> Floats:
    """The scores, with -∞ for nodes that the attack could not score."""
    name, shape = type(attack).__name__, (each.challenged.num_models, len(nodes))
    values = np.asarray(scores.log_likelihood_ratio, dtype=np.float64)
    if values.shape != shape:
        raise InputError(f"attack {name} must return scores of shape {shape}, got {values.shape}")
    if scores.not_auditable:
        values = np.where(can_be_attacked(nodes, scores.not_auditable), values, -np.inf)
    is_nan = np.isnan(values)
    if is_nan.any():
        row, column = np.unravel_index(int(is_nan.argmax()), shape)
        model, node = each.challenged.indices[row], each.challenged.label(int(nodes[column]))
        raise InputError(f"attack {name} must not return NaN, got one for model {model}, {node}")
    return values
