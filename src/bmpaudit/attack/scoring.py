"""Scores of any attack, checked: no model is in its own fit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from bmpaudit.arrays import Flags, Ints
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.not_auditable import can_be_attacked
from bmpaudit.attack.scores import Scores
from bmpaudit.errors import InputError, one_line
from bmpaudit.interfaces import LeaveOneOutAttack

if TYPE_CHECKING:
    from bmpaudit.interfaces import Attack

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
