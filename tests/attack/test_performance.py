"""Accuracy, AUC and true positive rates against their definitions, counted pair by pair and threshold by threshold."""

from typing import Any

import numpy as np
import pytest
from slow_attack import RULES, make_models, random_memberships, scores_of

from bmpaudit import _native
from bmpaudit.attack import ChallengeScores, attack_performance, node_mia
from bmpaudit.attack.performance import roc_within_models
from bmpaudit.util.errors import InputError

RATES = (0.0, 0.01, 0.05, 0.1, 0.29, 0.3, 0.5, 0.9, 1.0)


def make_scores(values: np.ndarray, members: np.ndarray, threshold: float = 0.0) -> ChallengeScores:
    nodes = np.arange(values.shape[1])
    return ChallengeScores(
        nodes, values, members, np.linspace(0.2, 0.8, len(nodes)), np.ones(len(nodes), dtype=bool), threshold
    )


def scores_of_kind(kind: str) -> ChallengeScores:
    rng, members = np.random.default_rng(1), random_memberships(20, 10, seed=1)
    values = rng.normal(size=members.shape) + members
    if kind == "ties":
        values = np.round(values)
    if kind == "infinite":
        values[values > 1.5], values[values < -1.0] = np.inf, -np.inf
    if kind == "equal":
        values[:] = 0.5
    return make_scores(values, members)


def slow_auc(values: np.ndarray, members: np.ndarray) -> float:
    inside, outside = values[members][:, None], values[~members][None, :]
    return float(np.mean((inside > outside) + 0.5 * (inside == outside)))


def slow_true_positive_rate(values: np.ndarray, members: np.ndarray, rate: float) -> float:
    below_all = np.array([np.nan])  # a threshold that all scores are above
    return max(
        float(np.mean(~(values[members] <= threshold)))
        for threshold in np.concatenate([values.ravel(), below_all])
        if np.mean(~(values[~members] <= threshold)) <= rate
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["continuous", "ties", "infinite", "equal"])
def test_same_as_counting(kind: str, rule: str) -> None:
    scores = scores_of_kind(kind)
    values, members = scores.of(rule), scores.memberships
    performance = attack_performance(scores, rule, RATES)
    assert performance.num_in == members.sum()
    assert performance.num_out == (~members).sum()
    assert performance.accuracy == pytest.approx(np.mean((values > 0) == members), abs=1e-12)
    assert performance.auc == pytest.approx(slow_auc(values, members), abs=1e-12)
    expected = {rate: slow_true_positive_rate(values, members, rate) for rate in RATES}
    assert performance.tpr_at_fpr == pytest.approx(expected, abs=1e-12)
    for fpr, tpr in zip(performance.roc.false_positive_rate, performance.roc.true_positive_rate, strict=True):
        assert tpr == pytest.approx(slow_true_positive_rate(values, members, fpr), abs=1e-12) or fpr == tpr == 0


def test_a_rate_of_so_many_in_a_hundred_allows_so_many() -> None:
    values = np.concatenate([np.arange(100.0), [70.5]])[:, None]  # 29 of the non-members are above the member
    members = np.arange(101)[:, None] == 100
    assert 0.29 * 100 < 29
    tpr = attack_performance(make_scores(values, members), "weak", [0.28, 0.29]).tpr_at_fpr
    assert tpr == {0.28: 0.0, 0.29: 1.0}


def test_accuracy_is_that_of_the_counts() -> None:
    rng, members = np.random.default_rng(2), random_memberships(40, 30, seed=2)
    models, prior = make_models(members, rng.normal(size=members.shape) + members), np.full(30, 0.3)
    counts = node_mia(models, prior)
    performance = attack_performance(scores_of(models, prior))
    assert performance.accuracy == pytest.approx(counts.accuracy.mean())
    assert list(performance.tpr_at_fpr) == [0.001, 0.01, 0.1]
    assert str(performance).startswith("1,200 challenges: accuracy ")


def test_impossible_inputs_are_refused() -> None:
    scores = scores_of_kind("continuous")
    with pytest.raises(InputError, match=r"^false_positive_rates must be in \[0, 1\], got 1.5$"):
        attack_performance(scores, false_positive_rates=[0.1, 1.5])
    nobody = make_scores(scores.log_likelihood_ratio, np.zeros_like(scores.memberships))
    with pytest.raises(
        InputError, match=r"^there must be challenges with members and with non-members, got 0 and 200$"
    ):
        attack_performance(nobody)


def test_scores_are_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    sort = _native.sort_by_side

    def counting_sort(*arguments: Any) -> Any:
        calls.append(arguments)
        return sort(*arguments)

    monkeypatch.setattr(_native, "sort_by_side", counting_sort)
    attack_performance(scores_of_kind("continuous"))
    assert len(calls) == 1


@pytest.mark.parametrize("kind", ["continuous", "ties", "infinite", "equal"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_within_models_each_model_counts_alone(kind: str, dtype: type) -> None:
    scores = scores_of_kind(kind)
    values: np.ndarray = scores.of("weak").astype(dtype)
    members = scores.memberships.copy()
    members[3], members[5] = True, False
    for rate in RATES:
        roc = roc_within_models(values, members, rate)
        assert np.isnan(roc.auc[[3, 5]]).all()
        assert np.isnan(roc.true_positive_rate[[3, 5]]).all()
        for model in np.flatnonzero(members.any(axis=1) & ~members.all(axis=1)):
            alone = make_scores(values[[model]].astype(np.float64), members[[model]])
            expected = attack_performance(alone, "weak", [rate])
            assert roc.auc[model] == expected.auc
            assert roc.true_positive_rate[model] == expected.tpr_at_fpr[rate]
