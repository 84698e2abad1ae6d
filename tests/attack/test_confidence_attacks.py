"""RMIA and BASE against their formulas, written out."""

from dataclasses import replace

import numpy as np
import pytest
from slow_attack import make_models, random_memberships, scores_of

from bmpaudit import registry
from bmpaudit.attack import RMIA, Base, Evidence, attack_performance, split_models
from bmpaudit.attack.other_attacks import log_confidence, log_mean_of_others
from bmpaudit.interfaces import LeaveOneOutAttack
from bmpaudit.releases import label_margin
from bmpaudit.util.errors import InputError

ATTACKS: tuple[LeaveOneOutAttack, ...] = (Base(), RMIA(), RMIA(1.0))


def margin_models(num_models: int = 24, num_nodes: int = 15) -> Evidence:
    rng, members = np.random.default_rng(1), random_memberships(num_models, num_nodes, seed=1)
    statistics = 2 * rng.normal(size=num_nodes) + rng.normal(size=members.shape) + 2 * members
    return make_models(members, statistics)


def probabilities(models: Evidence) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-models.only_statistic.astype(np.float64))))


def slow_base(reference: np.ndarray, asked: np.ndarray) -> list[float]:
    return [np.log(asked[x]) - np.log(np.mean(reference[:, x])) for x in range(len(asked))]


def slow_rmia(reference: np.ndarray, asked: np.ndarray, gamma: float) -> list[float]:
    ratio = asked / reference.mean(axis=0)
    scores = []
    for x in range(len(asked)):
        won = sum(ratio[x] / ratio[z] > gamma for z in range(len(asked)) if z != x)
        scores.append(np.log(won + 0.5) - np.log(len(asked) - 1 - won + 0.5))
    return scores


def expected(attack: LeaveOneOutAttack, reference: np.ndarray, asked: np.ndarray) -> list[float]:
    return slow_rmia(reference, asked, attack.gamma) if isinstance(attack, RMIA) else slow_base(reference, asked)


@pytest.mark.parametrize("attack", ATTACKS)
def test_scores_are_those_of_the_formula(attack: LeaveOneOutAttack) -> None:
    models = margin_models()
    halves = split_models(models)
    fitting, challenged = probabilities(halves.fitting), probabilities(halves.challenged)
    scores = attack.score(halves.fitting, halves.challenged.without_memberships(), num_threads=1)
    assert scores.not_auditable == ()
    wanted = [expected(attack, fitting, asked) for asked in challenged]
    np.testing.assert_allclose(scores.log_likelihood_ratio, wanted, rtol=1e-9, atol=1e-9)
    everyone = probabilities(models)
    left_out = attack.score_left_out(models, num_threads=1).log_likelihood_ratio
    wanted = [expected(attack, np.delete(everyone, j, axis=0), everyone[j]) for j in range(len(everyone))]
    np.testing.assert_allclose(left_out, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("attack", ATTACKS)
def test_memberships_do_not_count_and_targets_change_nothing(attack: LeaveOneOutAttack) -> None:
    models, prior = margin_models(), np.full(15, 0.4)
    scores = scores_of(models, prior, attack).log_likelihood_ratio
    shuffled = replace(models, memberships=models.memberships[::-1])
    np.testing.assert_array_equal(scores_of(shuffled, prior, attack).log_likelihood_ratio, scores)
    some = scores_of(models, prior, attack, targets=[9, 2]).log_likelihood_ratio
    np.testing.assert_array_equal(some, scores[:, [9, 2]])


@pytest.mark.parametrize("attack", ATTACKS)
def test_they_find_members(attack: LeaveOneOutAttack) -> None:
    models, prior = margin_models(200), np.full(15, 0.4)
    assert attack_performance(scores_of(models, prior, attack), "weak").auc > 0.65


def test_confidences_are_those_of_the_logits() -> None:
    logits = np.random.default_rng(2).normal(0, 4, size=(6, 5)).astype(np.float32)
    labels = np.arange(6) % 5
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.exp(log_confidence(label_margin(logits, labels))), softmax[np.arange(6), labels], 1e-5
    )
    assert log_confidence([-1e30, 1e30]).tolist() == [-1e30, 0.0]


def test_the_mean_of_others_keeps_small_confidences() -> None:
    values = np.array([[0.0], [-800.0], [-801.0]])
    wanted = [np.logaddexp(-800, -801) - np.log(2), -np.log(2), -np.log(2)]
    np.testing.assert_allclose(log_mean_of_others(values)[:, 0], wanted, rtol=1e-12)


def test_wrong_use_is_told() -> None:
    with pytest.raises(InputError, match=r"^gamma must be at least 1 and finite, got gamma=0.5$"):
        RMIA(0.5)
    for attack in ATTACKS:
        with pytest.raises(InputError, match=r"^there must be at least 2 models to fit on others, got 1$"):
            attack.score_left_out(margin_models().take([0]), num_threads=1)
    one_node = make_models([[True], [False]], [[1.0], [2.0]])
    with pytest.raises(InputError, match=r"^RMIA compares a node with others: there must be at least 2 nodes, got 1$"):
        RMIA().score_left_out(one_node, num_threads=1)


def test_attacks_have_names() -> None:
    for name in ("gaussian", "student", "rmia", "base"):
        attack = registry.build(registry.ATTACK, name)
        assert isinstance(attack, LeaveOneOutAttack)
        assert registry.name_of(registry.ATTACK, attack) == name
    assert registry.build(registry.ATTACK, {"name": "rmia", "gamma": 3.0}) == RMIA(3.0)
