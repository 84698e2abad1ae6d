"""Errors of any attack under any rules: no model is in its own fit, and memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.gaussian import NATIVE_RULES, Gaussian
from bmpaudit.attack.not_auditable import NotAuditable, can_be_attacked
from bmpaudit.attack.rules import RuleErrors, errors_at
from bmpaudit.attack.scores import Scores
from bmpaudit.errors import InputError, one_line
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

    def about(self, nodes: Ints) -> Round:
        """The same models, with fewer nodes to score."""
        fitting = None if self.fitting is None else self.fitting.about(nodes)
        return Round(self.rows, self.challenged.about(nodes), fitting)


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
    num_nodes = len(models.nodes)
    errors = {name: RuleErrors(*np.zeros((2, num_nodes), dtype=np.int64)) for name in rules}
    reasons: list[NotAuditable] = []
    for block in score_blocks(attack, models, fitting, num_threads=num_threads):
        reasons += block.not_auditable
        memberships = models.memberships[block.rows]
        is_whole = block.columns == slice(0, num_nodes)
        members = models.at_targets(memberships) if is_whole else memberships[:, models.nodes[block.columns]]
        for name, rule in rules.items():
            score = rule.decision_score(block.log_likelihood_ratio, log_prior_odds[block.columns])
            made = errors_at(score, members, threshold)
            errors[name].false_positives[block.columns] += made.false_positives
            errors[name].false_negatives[block.columns] += made.false_negatives
        if kept is not None:
            kept[block.rows, block.columns] = block.log_likelihood_ratio
    return Scored(errors, tuple(reasons), kept)


class ScoreBlock(NamedTuple):
    """Scores of some models about some of the targets; -∞ for nodes that could not be scored."""

    rows: slice
    columns: slice
    log_likelihood_ratio: Floats
    not_auditable: tuple[NotAuditable, ...]


def score_blocks(
    attack: Attack, models: Evidence, fitting: Evidence | None, *, num_threads: int
) -> Iterator[ScoreBlock]:
    """Scores every model about every target, no model being in its own fit, in blocks that fit into memory.

    Raises:
        InputError: if the attack fails, or scores are NaN or of the wrong shape.
    """
    nodes = models.nodes
    for each in rounds(attack, models, fitting):
        for columns in _blocks(len(nodes), each.challenged.num_models):
            is_whole = columns == slice(0, len(nodes))
            scores = score_round(attack, each if is_whole else each.about(nodes[columns]), num_threads=num_threads)
            yield ScoreBlock(each.rows, columns, scores.log_likelihood_ratio, scores.not_auditable)


def _blocks(num_nodes: int, num_models: int) -> Iterator[slice]:
    width = max(1, MAX_BLOCK // num_models)
    for first in range(0, num_nodes, width):
        yield slice(first, min(first + width, num_nodes))


def score_round(attack: Attack, each: Round, *, num_threads: int, is_asked: Flags | None = None) -> Scores:
    """What an attack says in one round, checked: float64, -∞ for nodes that it could not score or was not asked about.

    Args:
        attack: Any attack.
        each: The round.
        num_threads: Passed on to the attack.
        is_asked: Which of the round's nodes to look at, shape (K,); all if None.

    Raises:
        InputError: if the attack fails, or returns something else than scores of the right shape without NaN.
    """
    name, nodes = type(attack).__name__, each.challenged.nodes
    shape = (each.challenged.num_models, len(nodes))
    try:
        if each.fitting is not None:
            scores = attack.score(each.fitting, each.challenged, num_threads=num_threads)
        else:
            scores = cast(LeaveOneOutAttack, attack).score_left_out(each.challenged, num_threads=num_threads)
    except InputError:
        raise
    except Exception as failure:
        raise InputError(f"attack {name} failed: {one_line(failure)}") from failure
    returned: object = scores  # whatever its annotation says
    if not isinstance(returned, Scores):
        raise InputError(f"attack {name} must return Scores, got {_named(returned)}")
    try:
        values = np.asarray(returned.log_likelihood_ratio, dtype=np.float64)
    except (TypeError, ValueError) as failure:
        raise InputError(f"attack {name} must return numbers as scores: {one_line(failure)}") from failure
    if values.shape != shape:
        raise InputError(f"attack {name} must return scores of shape {shape}, got {values.shape}")
    is_scored = can_be_attacked(nodes, returned.not_auditable)
    if is_asked is not None:
        is_scored &= is_asked
    if not is_scored.all():
        values = np.where(is_scored, values, -np.inf)
    is_nan = np.isnan(values)
    if is_nan.any():
        row, column = np.unravel_index(int(is_nan.argmax()), shape)
        model, node = each.challenged.indices[row], each.challenged.label(int(nodes[column]))
        raise InputError(f"attack {name} must not return NaN, got one for model {model}, {node}")
    return Scores(values, returned.not_auditable)


def _named(value: object) -> str:
    return "None" if value is None else type(value).__name__
