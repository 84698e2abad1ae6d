"""RMIA, BASE and the offline forms against their formulas, written out."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from slow_attack import make_models, random_memberships, scores_of

from bmpaudit import registry
from bmpaudit.attack import RMIA, Base, Evidence, OfflineLiRA, attack_performance, split_models
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


def slow_offline(attack: LeaveOneOutAttack, fitting: Evidence, asked: np.ndarray) -> list[float]:
    """The score of each node of one model by models without the node, given its margins."""
    margins, members = fitting.only_statistic.astype(np.float64), fitting.memberships
    if isinstance(attack, OfflineLiRA):
        without = [margins[~members[:, x], x] for x in range(len(asked))]
        return [-scipy.stats.norm.logsf(z, each.mean(), each.std()) for z, each in zip(asked, without, strict=True)]
    known = 1 / (1 + np.exp(-margins))
    reference = [(1.3 * known[~members[:, x], x].mean() + 0.7) / 2 for x in range(len(asked))]
    return slow_rmia(np.array([reference]), 1 / (1 + np.exp(-asked)), 2.0)


@pytest.mark.parametrize("attack", [RMIA(offline=True), OfflineLiRA()])
def test_offline_forms_know_models_without_the_node_only(attack: LeaveOneOutAttack) -> None:
    models = margin_models()
    halves, every = split_models(models), np.arange(24)
    asked = halves.challenged.only_statistic.astype(np.float64)
    scores = attack.score(halves.fitting, halves.challenged.without_memberships(), num_threads=1)
    wanted = [slow_offline(attack, halves.fitting, each) for each in asked]
    np.testing.assert_allclose(scores.log_likelihood_ratio, wanted, rtol=1e-6, atol=1e-6)
    left_out = attack.score_left_out(models, num_threads=1).log_likelihood_ratio
    margins = models.only_statistic.astype(np.float64)
    wanted = [slow_offline(attack, models.take(np.delete(every, j)), margins[j]) for j in every]
    np.testing.assert_allclose(left_out, wanted, rtol=1e-6, atol=1e-6)
    assert attack_performance(scores_of(margin_models(200), np.full(15, 0.4), attack), "weak").auc > 0.65


def test_a_node_in_all_models_has_no_offline_score() -> None:
    models = margin_models()
    members = models.memberships.copy()
    members[:, 3], members[1:, 4] = True, True
    everywhere = replace(models, memberships=members)
    assert [each.node for each in OfflineLiRA().score_left_out(everywhere, num_threads=1).not_auditable] == [3, 4]
    assert np.isfinite(RMIA(offline=True).score_left_out(everywhere, num_threads=1).log_likelihood_ratio).all()


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
    for name in ("gaussian", "student", "rmia", "base", "lira-offline"):
        attack = registry.build(registry.ATTACK, name)
        assert isinstance(attack, LeaveOneOutAttack)
        assert registry.name_of(registry.ATTACK, attack) == name
    assert registry.build(registry.ATTACK, {"name": "rmia", "gamma": 3.0}) == RMIA(3.0)
