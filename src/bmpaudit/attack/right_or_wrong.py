"""An attack for those who see labels only: is the model right about the node, and under which queries?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.not_auditable import too_few_models
from bmpaudit.attack.scores import Scores
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError

MOST_QUERIES = 8
SMOOTHING = 0.5  # Jeffreys' prior of a multinomial distribution


@dataclass(frozen=True)
class RightOrWrong:
    """Compares how often models with and without a node answer as the challenged one does.

    An answer is the pattern of right and wrong over all queries; right means that the statistic is positive, as the
    margin of a released label is if it is the true one. With C_m of n_m models of a hypothesis answering alike, and P
    possible patterns, the score is log (C_1 + 1/2)/(n_1 + P/2) - log (C_0 + 1/2)/(n_0 + P/2).

    Attributes:
        min_models: Minimum number of models of each hypothesis, not counting the challenged one.
    """

    fuses_queries: ClassVar[bool] = True

    min_models: int = 2

    def __post_init__(self) -> None:
        check_at_least_one(min_models=self.min_models)

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores models by how often others answer alike."""
        members, answers = fitting.at_targets(fitting.memberships), _answers(challenged)
        ratio = _log_likelihood(answers, _answers(fitting), members, len(fitting.queries))
        return self._scores(fitting, self.min_models, ratio)

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores each model by how often all others answer alike."""
        members, answers = models.at_targets(models.memberships), _answers(models)
        ratio = _log_likelihood(answers, answers, members, len(models.queries), left_out=members)
        return self._scores(models, self.min_models + 1, ratio)

    def _scores(self, fitted: Evidence, needed: int, ratio: Floats) -> Scores:
        num_out = fitted.num_models - fitted.num_in
        return Scores(ratio, too_few_models(fitted.nodes, num_out, fitted.num_in, needed, fitted.node_names))


def _answers(models: Evidence) -> Ints:
    """The number of the pattern that each model gives for each node, shape (J, K).

    Raises:
        InputError: if there are too many queries.
    """
    if len(models.queries) > MOST_QUERIES:
        raise InputError(f"right-or-wrong takes at most {MOST_QUERIES} queries, got {len(models.queries)}")
    is_right = [models.at_targets(values) > 0 for values in models.statistics.values()]
    return np.asarray(sum(flags.astype(np.int64) << place for place, flags in enumerate(is_right)))


def _log_likelihood(
    answers: Ints, others: Ints, members: Flags, num_queries: int, left_out: Flags | None = None
) -> Floats:
    """Log Pr(answer | in) - log Pr(answer | out), from how often `others` give it.

    Args:
        answers: Answers to score, shape (J, K).
        others: Answers of the models to go by, shape (F, K).
        members: Memberships of these, shape (F, K).
        num_queries: Number of queries.
        left_out: Memberships of the models to score if these are the others, each of which is then left out.
    """
    num_patterns = 2**num_queries
    ratio = np.zeros(answers.shape)
    for is_in, sign in ((True, 1.0), (False, -1.0)):
        of_hypothesis = members == is_in
        alike = np.empty(answers.shape)
        for pattern in range(num_patterns):
            number = (of_hypothesis & (others == pattern)).sum(axis=0)
            alike = np.where(answers == pattern, number, alike)
        total = np.broadcast_to(of_hypothesis.sum(axis=0), answers.shape)
        own = 0 if left_out is None else (left_out == is_in)
        ratio += sign * np.log((alike - own + SMOOTHING) / (total - own + SMOOTHING * num_patterns))
    return ratio
