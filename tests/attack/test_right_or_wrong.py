"""Labels only: the score is the ratio of smoothed frequencies of an answer, and each model is left out of its own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bmpaudit.attack import Evidence, RightOrWrong, Weak, attack_performance, challenge
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Flags

ATTACK = RightOrWrong()


def evidence(num_models: int, seed: int, queries: int = 2, lift: float = 1.0) -> Evidence:
    """Statistics of 5 nodes that are higher for members."""
    rng = np.random.default_rng(seed)
    members = rng.random((num_models, 5)) < 0.4
    statistics = {f"q{number}": rng.normal(lift * members) for number in range(queries)}
    return Evidence(statistics, members, np.arange(num_models))


def plain_score(pattern: tuple[bool, ...], others: list[tuple[tuple[bool, ...], bool]]) -> float:
    """The formula of the docstring, one answer at a time."""
    log_likelihoods = []
    for is_in in (True, False):
        answers = [answer for answer, was_in in others if was_in == is_in]
        log_likelihoods.append(math.log((answers.count(pattern) + 0.5) / (len(answers) + 0.5 * 2 ** len(pattern))))
    return log_likelihoods[0] - log_likelihoods[1]


def patterns(models: Evidence, node: int) -> list[tuple[bool, ...]]:
    tables = [np.asarray(table[:, node]) > 0 for table in models.statistics.values()]
    return [tuple(map(bool, row)) for row in zip(*tables, strict=True)]


@pytest.mark.parametrize("queries", [1, 2, 3])
def test_scores_are_those_of_the_formula(queries: int) -> None:
    fitting, challenged = evidence(40, 1, queries), evidence(7, 2, queries)
    scores = ATTACK.score(fitting, challenged.without_memberships(), num_threads=1).log_likelihood_ratio
    left_out = ATTACK.score_left_out(fitting, num_threads=1).log_likelihood_ratio
    members: Flags = np.asarray(fitting.memberships[:, :])
    for node in range(5):
        others = list(zip(patterns(fitting, node), members[:, node].tolist(), strict=True))
        assert scores[:, node] == pytest.approx([plain_score(each, others) for each in patterns(challenged, node)])
        expected = [plain_score(others[j][0], others[:j] + others[j + 1 :]) for j in range(40)]
        assert left_out[:, node] == pytest.approx(expected)


def test_only_right_and_wrong_count() -> None:
    models = evidence(30, 3)
    signs = {query: np.sign(table[:, :]) * 20 for query, table in models.statistics.items()}
    coarse = Evidence(signs, models.memberships, models.indices)
    fine, rough = (ATTACK.score_left_out(each, num_threads=1).log_likelihood_ratio for each in (models, coarse))
    assert np.array_equal(fine, rough)


def test_some_of_the_nodes_have_the_same_scores() -> None:
    models = evidence(30, 4)
    whole = ATTACK.score_left_out(models, num_threads=1).log_likelihood_ratio
    part = ATTACK.score_left_out(models.about([4, 1]), num_threads=1).log_likelihood_ratio
    assert np.array_equal(part, whole[:, [4, 1]])


def test_it_finds_leakage_and_none_where_there_is_none() -> None:
    aucs = []
    for lift in (2.0, 0.0):
        done = challenge(ATTACK, evidence(600, 5, lift=lift), np.full(5, 0.4), {"weak": Weak()}, with_scores=True)
        assert done.scores is not None
        aucs.append(attack_performance(done.scores, "weak").auc)
    assert aucs[0] > 0.8
    assert abs(aucs[1] - 0.5) < 0.05


def test_nodes_with_too_few_models_are_named() -> None:
    models = evidence(30, 6)
    members = np.asarray(models.memberships[:, :]).copy()
    members[:, 2] = np.arange(30) < 2
    reasons = ATTACK.score_left_out(Evidence(models.statistics, members, models.indices), num_threads=1).not_auditable
    assert [str(reason) for reason in reasons] == ["node 2: in the samples of 2 of 30 models, at least 3 are needed"]


def test_too_many_queries_are_refused() -> None:
    with pytest.raises(InputError, match="right-or-wrong takes at most 8 queries, got 9"):
        ATTACK.score_left_out(evidence(10, 7, queries=9), num_threads=1)
