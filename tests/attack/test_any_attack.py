"""Any attack and any rule: the same counts by every way, no model in its own fit, and bounded memory."""

import tracemalloc
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from plain_attacks import Cheating, InItsOwnFit, PlainGaussian, ScoreStrong, ScoreWeak, Tempered, WithNeighbours
from slow_attack import (
    GAUSSIAN,
    RULES,
    Fit,
    make_models,
    random_memberships,
    scores_of,
    slow_counts,
    slow_left_out_scores,
    slow_split_scores,
)

from bmpaudit.attack import (
    Challenges,
    DecisionSettings,
    ErrorCounts,
    Evidence,
    Gaussian,
    NotAuditable,
    Scores,
    Strong,
    Weak,
    attack_performance,
    challenge,
    node_mia,
    split_models,
)
from bmpaudit.attack.counts import COLUMNS
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Attack, DecisionRule, LeaveOneOutAttack
from bmpaudit.proof import prove
from bmpaudit.util import matrices
from bmpaudit.util.errors import InputError

NUM_MODELS, NUM_NODES = 36, 150
SCORE_RULES: dict[str, DecisionRule] = {"weak": ScoreWeak(), "strong": ScoreStrong()}
PRIOR = np.concatenate([[0.0, 1.0], np.linspace(0.05, 0.95, NUM_NODES - 2)])


def random_models(num_models: int = NUM_MODELS, seed: int = 1) -> Evidence:
    """Some nodes with hardly any models on a side."""
    rng, members = np.random.default_rng(seed), random_memberships(num_models, NUM_NODES, seed)
    members[2:, 5], members[3:, 6], members[:, 7], members[:-2, 8] = False, False, False, True
    return make_models(members, rng.normal(size=members.shape) + members)


def plain_models(num_models: int, num_nodes: int = 40, seed: int = 2) -> Evidence:
    rng, members = np.random.default_rng(seed), random_memberships(num_models, num_nodes, seed)
    return make_models(members, rng.normal(size=members.shape) + members)


def graph_models(num_models: int = 30) -> Evidence:
    """Models on a ring, under two queries; a member raises its own statistic and those of its neighbours."""
    rng, members = np.random.default_rng(3), random_memberships(num_models, 25, seed=3)
    ring = [[i, (i + 1) % 25] for i in range(25)]
    graph = Graph.from_edges(ring, np.eye(25), np.arange(25) % 2)
    statistics: dict[str, Any] = {
        query: (rng.normal(size=members.shape) + members + members @ graph.adjacency).astype(np.float32)
        for query in ("full", "none")
    }
    return Evidence(statistics, members, np.arange(num_models), graph)


def assert_same_counts(one: ErrorCounts, other: ErrorCounts) -> None:
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column))
    assert one.not_auditable == other.not_auditable


def assert_same(one: Challenges, other: Challenges) -> None:
    assert one.not_auditable == other.not_auditable
    assert list(one.errors) == list(other.errors)
    for name, errors in one.errors.items():
        np.testing.assert_array_equal(errors, other.errors[name])
    if one.scores is not None and other.scores is not None:
        assert one.scores.log_likelihood_ratio.tobytes() == other.scores.log_likelihood_ratio.tobytes()


def test_built_in_parts_are_what_the_seams_ask_for() -> None:
    assert isinstance(GAUSSIAN, LeaveOneOutAttack)
    assert isinstance(PlainGaussian(), Attack)
    assert not isinstance(PlainGaussian(), LeaveOneOutAttack)
    for rule in (Strong(), Weak(), Tempered()):
        assert isinstance(rule, DecisionRule)


@pytest.mark.parametrize("unfittable", ["leave-out", "non-member"])
@pytest.mark.parametrize("attack", [Gaussian(), Gaussian(True, 0.4, 3)])
@pytest.mark.parametrize("targets", [None, [149, 3, 5, 6, 0, 77]])
@pytest.mark.parametrize("max_block", [1, 100, 2**24])
def test_the_native_pass_and_scores_in_blocks_agree_exactly(
    monkeypatch: pytest.MonkeyPatch, unfittable: Any, attack: Gaussian, targets: Any, max_block: int
) -> None:
    monkeypatch.setattr(matrices, "MAX_BLOCK", max_block)
    models, settings = random_models(), DecisionSettings(1.5, 0.8, unfittable)
    halves = split_models(models)
    for challenged, fitting in ((models, None), (halves.challenged, halves.fitting)):
        fast, slow = (
            challenge(
                attack,
                challenged,
                PRIOR,
                rules,
                fitting=fitting,
                settings=settings,
                targets=targets,
                with_scores=True,
            )
            for rules in (RULES, SCORE_RULES)
        )
        assert fast.not_auditable
        assert_same(fast, slow)
        for name in RULES:
            assert_same_counts(fast.error_counts(name), slow.error_counts(name))


def test_the_native_pass_keeps_no_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gaussian, "score_left_out", None)
    assert challenge(Gaussian(), random_models(), PRIOR, RULES).scores is None


@pytest.mark.parametrize("num_models", [8, 9, 10])
def test_an_attack_that_cannot_leave_models_out_is_cross_fitted(num_models: int) -> None:
    """With at most ten models, each is a fold: leaving one out."""
    models = plain_models(num_models)
    scores = scores_of(models, "shadow-frequency", PlainGaussian()).log_likelihood_ratio
    np.testing.assert_allclose(scores, slow_left_out_scores(models, Fit()), rtol=1e-9, atol=1e-9)


def test_ten_folds_in_the_order_of_the_models() -> None:
    models = plain_models(43)
    scores = scores_of(models, "shadow-frequency", PlainGaussian()).log_likelihood_ratio
    bounds = [0, 4, 8, 12, 17, 21, 25, 30, 34, 38, 43]
    for first, last in pairwise(bounds):
        others = models.take([j for j in range(43) if not first <= j < last])
        expected = slow_split_scores(others, models.take(slice(first, last)), Fit())
        np.testing.assert_allclose(scores[first:last], expected, rtol=1e-9, atol=1e-9)


def test_errors_are_counted_from_cross_fitted_scores() -> None:
    models, prior = plain_models(43), np.linspace(0.1, 0.9, 40)
    rules: dict[str, DecisionRule] = {**RULES, "half": Tempered(), "none": Tempered(0.0)}
    challenges = challenge(PlainGaussian(), models, prior, rules, settings=DecisionSettings(2.0, 1.0), with_scores=True)
    assert challenges.scores is not None
    llr, log_odds = challenges.scores.log_likelihood_ratio, np.log(prior / (1 - prior))
    for name, weight in {"weak": 0.0, "half": 0.5, "strong": 1.0, "none": 0.0}.items():
        expected = slow_counts(llr + weight * log_odds, models.memberships, np.log(2))
        counts = challenges.error_counts(name)
        assert np.array_equal(counts.false_positives, expected[0])
        assert np.array_equal(counts.false_negatives, expected[1])
    assert attack_performance(challenges.scores, Tempered()).accuracy == pytest.approx(
        1 - np.sum(challenges.errors["half"]) / llr.size
    )


def own_scores_move(attack: Attack, models: Evidence) -> float:
    """By how much a model's scores change when its own memberships are flipped; 0 for an honest attack."""
    scores, moved = scores_of(models, np.full(models.num_nodes, 0.5), attack).log_likelihood_ratio, 0.0
    for model in range(0, models.num_models, 5):
        flipped = models.memberships.copy()
        flipped[model] ^= True
        again = Evidence(models.statistics, flipped, models.indices, models.graph)
        after = scores_of(again, np.full(models.num_nodes, 0.5), attack).log_likelihood_ratio
        assert not np.allclose(np.delete(after, model, axis=0), np.delete(scores, model, axis=0))  # others' fits change
        moved = max(moved, float(np.abs(after[model] - scores[model]).max()))
    return moved


def test_a_models_score_does_not_depend_on_its_own_memberships() -> None:
    assert own_scores_move(PlainGaussian(), plain_models(31)) == 0.0
    assert own_scores_move(WithNeighbours(), graph_models()) == 0.0
    assert own_scores_move(GAUSSIAN, plain_models(31)) < 1e-10  # rounding: the model is removed from one side or other


def test_an_attack_that_fits_on_the_scored_model_would_be_caught() -> None:
    assert own_scores_move(InItsOwnFit(), plain_models(31)) > 0.01


def test_memberships_of_scored_models_are_withheld() -> None:
    models, message = plain_models(31), "^memberships of the models to score are withheld from the attack$"
    halves = split_models(models)
    with pytest.raises(InputError, match=message):
        node_mia(models, "shadow-frequency", attack=Cheating())
    with pytest.raises(InputError, match=message):
        node_mia(halves.challenged, "shadow-frequency", fitting=halves.fitting, attack=Cheating())


def test_queries_and_neighbours_of_one_release_are_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    models = graph_models(100)
    whole = challenge(WithNeighbours(), models, "shadow-frequency", RULES, with_scores=True)
    assert whole.scores is not None
    for query, statistics in models.statistics.items():
        alone = Evidence({query: statistics}, models.memberships, models.indices)
        by_one_query = attack_performance(scores_of(alone, "shadow-frequency")).auc
        assert attack_performance(whole.scores).auc > by_one_query + 0.05
    # Blocks and targets change nothing: neighbours outside of them stay visible.
    monkeypatch.setattr(matrices, "MAX_BLOCK", 20)
    blocks = challenge(WithNeighbours(), models, "shadow-frequency", RULES, with_scores=True)
    assert blocks.scores is not None
    np.testing.assert_allclose(blocks.scores.log_likelihood_ratio, whole.scores.log_likelihood_ratio, rtol=1e-12)
    for name in RULES:
        assert_same_counts(blocks.error_counts(name), whole.error_counts(name))
    some = challenge(WithNeighbours(), models, "shadow-frequency", RULES, targets=[7, 3], with_scores=True)
    assert some.scores is not None
    expected = whole.scores.log_likelihood_ratio[:, [7, 3]]
    np.testing.assert_allclose(some.scores.log_likelihood_ratio, expected, rtol=1e-12)
    for name, errors in some.errors.items():
        np.testing.assert_array_equal(errors, np.array(whole.errors[name])[:, [7, 3]])


def test_an_attack_that_does_not_fuse_takes_one_query() -> None:
    message = "^attack Gaussian does not fuse queries and takes one at a time, got full, none$"
    with pytest.raises(InputError, match=message):
        node_mia(graph_models(), "shadow-frequency")


def test_blocks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "MAX_BLOCK", 40)
    WithNeighbours.largest = 0
    challenge(WithNeighbours(), graph_models(), "shadow-frequency", RULES)
    assert 0 < WithNeighbours.largest <= 40


def test_memory_is_that_of_a_block_not_of_all_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    members = random_memberships(400, 2_000, seed=4)
    models, prior = make_models(members, np.random.default_rng(4).normal(size=members.shape)), np.full(2_000, 0.4)
    monkeypatch.setattr(matrices, "MAX_BLOCK", 20_000)
    tracemalloc.start()
    challenge(GAUSSIAN, models, prior, SCORE_RULES)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * members.size / 4


def test_a_node_that_some_fold_cannot_score_is_left_out() -> None:
    models = graph_models()
    members = models.memberships.copy()
    members[:, 9] = False
    members[[0, 1, 17], 9] = True  # a fit without the first fold has one member, which is too few
    models = Evidence(models.statistics, members, models.indices, models.graph)
    prior = np.full(25, 0.4)
    prior[4] = 1.0
    counts = node_mia(models, prior, attack=WithNeighbours())
    reasons = (NotAuditable(4, "its prior probability is 1"), NotAuditable(9, "too few models"))
    assert counts.not_auditable == reasons
    assert counts.num_nodes == 23
    settings = DecisionSettings(unfittable="non-member")
    kept = node_mia(models, prior, attack=WithNeighbours(), settings=settings)
    assert kept.not_auditable == reasons
    assert np.flatnonzero(kept.is_kept).tolist() == [4, 9]
    assert kept.false_positives[[4, 9]].tolist() == [0, 0]
    assert np.array_equal(kept.false_negatives[[4, 9]], kept.num_in[[4, 9]])
    scores = scores_of(models, prior, WithNeighbours(), settings=settings)
    rules: tuple[DecisionRule, ...] = (Weak(), Strong(), Tempered())
    for rule in rules:
        assert (scores.of(rule)[:, [4, 9]] == -np.inf).all()


class Returning:
    """Returns whatever it is made with."""

    fuses_queries = False

    def __init__(self, value: float, extra: int = 0) -> None:
        self.value, self.extra = value, extra

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        llr = np.zeros((challenged.num_models, len(challenged.nodes) + self.extra))
        llr[-1, 2] = self.value
        return Scores(llr)


def test_scores_of_an_attack_are_checked() -> None:
    models = plain_models(20)
    with pytest.raises(InputError, match=r"^attack Returning must return scores of shape \(2, 40\), got \(2, 41\)$"):
        node_mia(models, "shadow-frequency", attack=Returning(0.0, extra=1))
    with pytest.raises(InputError, match=r"^attack Returning must not return NaN, got one for model 1, node 2$"):
        node_mia(models, "shadow-frequency", attack=Returning(np.nan))
    node_mia(models, "shadow-frequency", attack=Returning(np.inf))
    with pytest.raises(InputError, match=r"^there must be at least 2 models to fit on others, got 1$"):
        node_mia(models.take([0]), "shadow-frequency", attack=Returning(0.0))


class Failing:
    """Does whatever it is made with, in place of scoring."""

    fuses_queries = True

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Any:  # noqa: ARG002
        return self.answer()


class FailingLeftOut(Failing):
    def score_left_out(self, models: Evidence, *, num_threads: int) -> Any:  # noqa: ARG002
        return self.answer()


def raised(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


@pytest.mark.parametrize("kind", [Failing, FailingLeftOut])
@pytest.mark.parametrize("use", [node_mia, prove])
def test_an_attack_that_fails_is_told_in_one_line(kind: type[Failing], use: Any) -> None:
    models, prior = replace(plain_models(40), are_independent=True), np.full(40, 0.5)

    def failing(answer: Callable[[], Any]) -> InputError:
        attack = kind(answer)
        with pytest.raises(InputError) as refused:
            use(models, prior, attack=attack) if use is node_mia else use(attack, models, prior)
        return refused.value

    for error, said in (
        (ValueError("operands could not be\nbroadcast"), "ValueError: operands could not be broadcast"),
        (KeyError("full"), "KeyError: 'full'"),
        (ZeroDivisionError(), "ZeroDivisionError"),
    ):
        told = failing(raised(error))
        assert str(told) == f"attack {kind.__name__} failed: {said}"
        assert told.__cause__ is error
    own = InputError("query must be none, got full")
    assert failing(raised(own)) is own
    for returned, said in (
        (None, "Scores, got None"),
        (np.zeros((40, 40)), "Scores, got ndarray"),
        (Scores("high"), "numbers as scores: ValueError: could not convert string to float: 'high'"),  # type: ignore[arg-type]
    ):
        told = failing(partial(copy, returned))
        assert str(told) == f"attack {kind.__name__} must return {said}"


def test_an_attack_can_be_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt):
        node_mia(plain_models(20), "shadow-frequency", attack=Failing(raised(KeyboardInterrupt())))


def test_errors_are_addressed_by_rule_and_not_by_order() -> None:
    models = random_models()
    expected = {name: node_mia(models, PRIOR, rule=name) for name in RULES}
    assert not np.array_equal(expected["weak"].false_positives, expected["strong"].false_positives)
    backwards = challenge(GAUSSIAN, models, PRIOR, {"strong": Strong(), "weak": Weak()})
    renamed = challenge(GAUSSIAN, models, PRIOR, {"strong": Weak(), "b": Strong(), "c": Weak()})
    for name in RULES:
        assert_same_counts(backwards.error_counts(name), expected[name])
    assert_same_counts(renamed.error_counts("strong"), expected["weak"])
    assert_same_counts(renamed.error_counts("b"), expected["strong"])
    assert_same_counts(renamed.error_counts("c"), expected["weak"])
