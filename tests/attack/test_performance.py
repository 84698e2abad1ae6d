"""Accuracy, AUC and true positive rates against their definitions, counted pair by pair and threshold by threshold."""

import numpy as np
import pytest
from slow_attack import DECISIONS, VIEW, make_runs, random_memberships

from bmpaudit import InputError
from bmpaudit.attack import ChallengeScores, Decision, attack_performance, challenge_scores, node_mia

RATES = (0.0, 0.01, 0.05, 0.1, 0.29, 0.3, 0.5, 0.9, 1.0)


def make_scores(values: np.ndarray, members: np.ndarray, threshold: float = 0.0) -> ChallengeScores:
    num_nodes = values.shape[1]
    return ChallengeScores(np.arange(num_nodes), values, members, np.linspace(0.2, 0.8, num_nodes), threshold)


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


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("kind", ["continuous", "ties", "infinite", "equal"])
def test_same_as_counting(kind: str, decision: Decision) -> None:
    scores = scores_of_kind(kind)
    values, members = scores.of(decision), scores.memberships
    performance = attack_performance(scores, decision, RATES)
    assert performance.num_in == members.sum()
    assert performance.num_out == (~members).sum()
    assert performance.accuracy == pytest.approx(np.mean((values > 0) == members), abs=1e-12)
    assert performance.auc == pytest.approx(slow_auc(values, members), abs=1e-12)
    expected = {rate: slow_true_positive_rate(values, members, rate) for rate in RATES}
    assert performance.tpr_at_fpr == pytest.approx(expected, abs=1e-12)


def test_a_rate_of_so_many_in_a_hundred_allows_so_many() -> None:
    values = np.concatenate([np.arange(100.0), [70.5]])[:, None]  # 29 of the non-members are above the member
    members = np.arange(101)[:, None] == 100
    assert 0.29 * 100 < 29
    tpr = attack_performance(make_scores(values, members), "weak", [0.28, 0.29]).tpr_at_fpr
    assert tpr == {0.28: 0.0, 0.29: 1.0}


def test_accuracy_is_that_of_the_counts() -> None:
    rng, members = np.random.default_rng(2), random_memberships(40, 30, seed=2)
    runs, prior = make_runs(members, rng.normal(size=members.shape) + members), np.full(30, 0.3)
    counts = node_mia(runs, VIEW, prior)
    performance = attack_performance(challenge_scores(runs, VIEW, prior))
    assert performance.accuracy == pytest.approx(counts.accuracy.mean())
    assert list(performance.tpr_at_fpr) == [0.001, 0.01, 0.1]
    assert str(performance).startswith("1,200 challenges: accuracy ")


def test_what_cannot_be_is_refused() -> None:
    scores = scores_of_kind("continuous")
    with pytest.raises(InputError, match=r"^false_positive_rates must be in \[0, 1\], got 1.5$"):
        attack_performance(scores, false_positive_rates=[0.1, 1.5])
    nobody = make_scores(scores.log_likelihood_ratio, np.zeros_like(scores.memberships))
    with pytest.raises(
        InputError, match=r"^there must be challenges with members and with non-members, got 0 and 200$"
    ):
        attack_performance(nobody)
