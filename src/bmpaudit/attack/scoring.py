"""Errors of any attack under any rules: no model is in its own fit, and memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Flags, Floats, Ints, as_bytes
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.gaussian import NATIVE_RULES, Gaussian
from bmpaudit.attack.not_auditable import NotAuditable, can_be_attacked
from bmpaudit.attack.rules import RuleErrors, Strong, errors_at
from bmpaudit.attack.scores import Scores
from bmpaudit.errors import InputError, one_line
from bmpaudit.interfaces import LeaveOneOutAttack
from bmpaudit.tables import columns, node_blocks, take_rows

if TYPE_CHECKING:
    from bmpaudit.interfaces import Attack, DecisionRule, Progress

NUM_FOLDS = 10


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
        log_likelihood_ratio: Scores that were to be kept, shape (J, number of them).
    """

    errors: Mapping[str, RuleErrors]
    not_auditable: tuple[NotAuditable, ...]
    log_likelihood_ratio: Floats


def count_errors(
    attack: Attack,
    rules: Mapping[str, DecisionRule],
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    threshold: float,
    *,
    num_threads: int,
    keep: Ints,
    progress: Progress,
) -> Scored:
    """Scores every model about every target, in blocks of nodes, and counts the errors of each rule.

    The Gaussian attack under the built-in rules is counted in one native pass, anything else from scores.

    Args:
        attack: Any attack.
        rules: Decision rules by name.
        models: Models to challenge.
        fitting: Other models to fit on, if any.
        log_prior_odds: log η of the K targets, shape (K,), finite.
        threshold: Decision scores above it mean "member".
        num_threads: Passed on to the attack.
        keep: Positions of the targets whose scores are returned, ascending, 8 bytes per challenge.
        progress: Called with the number of targets done.
    """
    num_nodes = len(models.nodes)
    kept = np.empty((models.num_models, len(keep)))
    totals = {name: RuleErrors(*np.zeros((2, num_nodes), dtype=np.int64)) for name in rules}
    reasons: list[NotAuditable] = []
    if type(attack) is Gaussian and all(type(rule) in NATIVE_RULES for rule in rules.values()):
        blocks = _native_errors(attack, rules, models, fitting, log_prior_odds, threshold, num_threads, len(keep) > 0)
    else:
        blocks = _errors_from_scores(attack, rules, models, fitting, log_prior_odds, threshold, num_threads)
    for block, errors in blocks:
        reasons += block.not_auditable
        first, last = np.searchsorted(keep, (block.columns.start, block.columns.stop))
        if last > first:
            kept[block.rows, first:last] = columns(block.log_likelihood_ratio, keep[first:last] - block.columns.start)
        for name, made in errors.items():
            totals[name].false_positives[block.columns] += made.false_positives
            totals[name].false_negatives[block.columns] += made.false_negatives
        progress(block.num_done)
    return Scored(totals, tuple(reasons), kept)


class ScoreBlock(NamedTuple):
    """Scores of some models about some of the targets.

    Attributes:
        rows: The models.
        columns: The targets.
        log_likelihood_ratio: -∞ for nodes that could not be scored.
        not_auditable: These nodes.
        num_done: Number of targets done so far, as a mean over models.
    """

    rows: slice
    columns: slice
    log_likelihood_ratio: Floats
    not_auditable: tuple[NotAuditable, ...]
    num_done: int


ErrorBlocks: TypeAlias = Iterator[tuple[ScoreBlock, Mapping[str, RuleErrors]]]


def _native_errors(
    attack: Gaussian,
    rules: Mapping[str, DecisionRule],
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    threshold: float,
    num_threads: int,
    with_scores: bool,
) -> ErrorBlocks:
    for where, part in _parts(Round(slice(None), models, fitting)):
        scores = np.empty((models.num_models if with_scores else 0, where.stop - where.start))
        made = attack.count_errors(
            part.challenged,
            part.fitting,
            log_prior_odds[where],
            threshold,
            num_threads=num_threads,
            scores=scores if with_scores else None,
        )
        block = ScoreBlock(part.rows, where, scores, made.not_auditable, where.stop)
        yield block, {name: made.errors[type(rule)] for name, rule in rules.items()}


def _errors_from_scores(
    attack: Attack,
    rules: Mapping[str, DecisionRule],
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    threshold: float,
    num_threads: int,
) -> ErrorBlocks:
    for block in score_blocks(attack, models, fitting, num_threads=num_threads):
        members = columns(take_rows(models.memberships, block.rows), models.nodes[block.columns])
        llr, log_odds = block.log_likelihood_ratio, log_prior_odds[block.columns]
        errors = {}
        for name, rule in rules.items():
            if type(rule) in NATIVE_RULES:
                added = log_odds if type(rule) is Strong else np.zeros_like(log_odds)
                made = np.empty((2, len(log_odds)), dtype=np.int64)
                _native.count_decisions(llr, as_bytes(members), added, threshold, num_threads, made)
                errors[name] = RuleErrors(*made)
            else:
                errors[name] = errors_at(rule.decision_score(llr, log_odds), members, threshold)
        yield block, errors


def score_blocks(
    attack: Attack, models: Evidence, fitting: Evidence | None, *, num_threads: int
) -> Iterator[ScoreBlock]:
    """Scores every model about every target, no model being in its own fit, in blocks that fit into memory.

    Raises:
        InputError: if the attack fails, or scores are NaN or of the wrong shape.
    """
    num_nodes, num_models = len(models.nodes), models.num_models
    for each in rounds(attack, models, fitting):
        first, last, _ = each.rows.indices(num_models)
        for where, part in _parts(each):
            scores = score_round(attack, part, num_threads=num_threads)
            num_done = (first * num_nodes + (last - first) * where.stop) // num_models
            yield ScoreBlock(each.rows, where, scores.log_likelihood_ratio, scores.not_auditable, num_done)


def _parts(each: Round) -> Iterator[tuple[slice, Round]]:
    """A round in blocks of nodes."""
    nodes = each.challenged.nodes
    num_models = each.challenged.num_models + (0 if each.fitting is None else each.fitting.num_models)
    for block in node_blocks(len(nodes), num_models):
        yield block, each if block == slice(0, len(nodes)) else each.about(nodes[block])


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
        values = np.ascontiguousarray(returned.log_likelihood_ratio, dtype=np.float64)
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
