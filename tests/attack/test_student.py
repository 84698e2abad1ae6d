"""The Student attack against a slow reference, its limits, and what it does where there is little to go by."""

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student_t
from slow_attack import GAUSSIAN, RULES, make_models, random_memberships, scores_of
from slow_student import SlowPrior, features_of, slow_left_out_scores, slow_prior, slow_split_scores
from test_any_attack import graph_models, own_scores_move

from bmpaudit import _native
from bmpaudit.attack import (
    Evidence,
    Student,
    attack_performance,
    challenge,
    split_models,
    student,
)
from bmpaudit.attack.student import StudentPriors, learn_priors
from bmpaudit.graph.graph import Graph
from bmpaudit.util import matrices
from bmpaudit.util.errors import InputError

STUDENT = Student()


def ring_models(num_models: int, num_queries: int, num_nodes: int = 12, isolated: int = 0, seed: int = 0) -> Evidence:
    """Models on a ring and some nodes without neighbours, of different levels, shifts and spreads."""
    rng = np.random.default_rng(seed)
    num_all = num_nodes + isolated
    members = rng.random((num_models, num_all)) < 0.4
    members[:, 0], members[1:, 1], members[2:, 2] = False, False, True  # hardly any models on a side
    ring = [[i, (i + 1) % num_nodes] for i in range(num_nodes)]
    graph = Graph.from_edges(ring, np.eye(num_all), np.arange(num_all) % 2)
    level, shift, spread = rng.normal(0, 3, num_all), rng.normal(1, 0.5, num_all), rng.uniform(0.3, 2, num_all)
    common = rng.normal(size=members.shape)
    statistics: dict[str, Any] = {
        f"query{q}": (level + shift * members + spread * (common + rng.normal(size=members.shape))).astype(np.float32)
        for q in range(num_queries)
    }
    return Evidence(statistics, members, np.arange(num_models), graph)


def left_out(models: Evidence, attack: Student = STUDENT, num_threads: int = 2) -> np.ndarray:
    return attack.score_left_out(models, num_threads=num_threads).log_likelihood_ratio


def split(fitting: Evidence, challenged: Evidence, attack: Student = STUDENT) -> np.ndarray:
    return attack.score(fitting, challenged.without_memberships(), num_threads=2).log_likelihood_ratio


@pytest.mark.parametrize(("num_queries", "neighbours"), [(1, False), (1, True), (2, False), (2, True), (3, True)])
def test_a_fit_on_other_models_is_that_of_the_slow_reference(num_queries: int, neighbours: bool) -> None:
    halves = split_models(ring_models(60, num_queries))
    features, asked = (features_of(part, neighbours) for part in (halves.fitting, halves.challenged))
    prior = slow_prior(features, halves.fitting.memberships)
    expected = slow_split_scores(features, halves.fitting.memberships, asked, prior)
    scores = split(halves.fitting, halves.challenged, Student(neighbours))
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("num_queries", "neighbours"), [(1, False), (2, True), (3, True)])
def test_leaving_models_out_is_that_of_the_slow_reference(num_queries: int, neighbours: bool) -> None:
    models = ring_models(33, num_queries)
    features = features_of(models, neighbours)
    priors = []
    for first, last in pairwise(33 * fold // 10 for fold in range(11)):
        others = np.r_[:first, last:33]
        priors += [slow_prior(features[others], models.memberships[others])] * (last - first)
    expected = slow_left_out_scores(features, models.memberships, priors)
    np.testing.assert_allclose(left_out(models, Student(neighbours)), expected, rtol=1e-9, atol=1e-9)


def test_the_prior_is_that_of_the_slow_reference() -> None:
    models = ring_models(25, 2)
    features = features_of(models, with_neighbours=True)
    expected = slow_prior(features, models.memberships)
    priors = learn_priors(features.transpose(2, 0, 1).astype(np.float32), models.memberships, [slice(None)], 2)
    assert priors is not None
    prior = SlowPrior.of_part(priors, 0)
    for name in ("level", "shift", "level_weight", "shift_weight", "dof", "other_share", "scale"):
        np.testing.assert_allclose(getattr(prior, name), getattr(expected, name), rtol=1e-9)


def test_a_models_score_does_not_depend_on_its_own_memberships() -> None:
    assert own_scores_move(STUDENT, graph_models(30)) < 1e-9
    assert own_scores_move(STUDENT, graph_models(9)) < 1e-9
    assert own_scores_move(STUDENT, ring_models(41, 2, isolated=5)) < 1e-9


def kernel_scores(values: Any, members: Any, priors: StudentPriors, asked: Any = None) -> np.ndarray:
    """Scores of one node with one feature."""
    features = np.asarray(values, dtype=np.float32)[None, :, None]
    others = None if asked is None else np.asarray(asked, dtype=np.float32)[None, :, None]
    scores = np.empty(((features if others is None else others).shape[1], 1))
    _native.student_scores(
        features,
        np.asarray(members, dtype=np.uint8)[:, None],
        others,
        np.zeros(len(scores), dtype=np.int64),
        *priors,
        priors.log_gamma(features.shape[1]),
        1,
        scores,
    )
    return scores[:, 0]


def test_one_feature_with_a_flat_prior_is_the_normal_inverse_gamma_predictive() -> None:
    rng = np.random.default_rng(1)
    out, inside = rng.normal(0, 1, 7).astype(np.float32), rng.normal(1, 2, 5).astype(np.float32)
    flat = StudentPriors(
        level=np.zeros((1, 2, 1)),
        shift=np.zeros((1, 1)),
        weights=np.full((1, 2), 1e-12),
        dof=np.full((1, 2), 2 + 1e-12),
        other_share=np.zeros((1, 2)),
        scale=np.ones((1, 2, 1, 1)),
    )
    asked = np.linspace(-6, 6, 13)

    def predictive(side: np.ndarray) -> np.ndarray:
        side, n = side.astype(np.float64), len(side)
        spread = np.sqrt(np.square(side - side.mean()).sum() * (n + 1) / (n * (n + 2)))
        return np.asarray(student_t.logpdf(asked, n + 2, side.mean(), spread))

    scores = kernel_scores(np.r_[out, inside], [0] * 7 + [1] * 5, flat, asked)
    np.testing.assert_allclose(scores, predictive(inside) - predictive(out), rtol=1e-9, atol=1e-9)


def test_with_many_models_it_tends_to_the_gaussian_fit() -> None:
    """Prior and degrees of freedom count for O(1/n)."""
    rng, members = np.random.default_rng(2), random_memberships(20_000, 20, seed=2)
    statistics = rng.normal(size=members.shape) * (1 + 0.5 * members) + members
    models = make_models(members, statistics * np.geomspace(0.1, 10, 20))
    errors = []
    for num_models in (1_000, 20_000):
        some = models.take(slice(0, num_models))
        difference = left_out(some) - scores_of(some, np.full(20, 0.4)).log_likelihood_ratio
        errors.append(float(np.sqrt(np.mean(difference**2))))
    assert errors[1] < 0.1 * errors[0]
    assert errors[1] < 0.005


def test_with_few_models_it_is_stronger_than_the_gaussian_fit() -> None:
    rng, members = np.random.default_rng(3), random_memberships(500, 100, seed=3)
    statistics = 3 * rng.normal(size=100) + (2 + 0.3 * rng.normal(size=100)) * members + rng.normal(size=members.shape)
    models = make_models(members, statistics)
    student, gaussian = (
        attack_performance(
            scores_of(models.take(slice(20, 500)), np.full(100, 0.4), attack, fitting=models.take(slice(0, 12))), "weak"
        )
        for attack in (STUDENT, GAUSSIAN)
    )
    assert student.auc > gaussian.auc + 0.02


def test_nodes_with_hardly_any_models_on_a_side_are_scored() -> None:
    models = ring_models(200, 2, num_nodes=40, isolated=3)
    challenges = challenge(STUDENT, models, np.full(43, 0.4), RULES, with_scores=True)
    assert challenges.not_auditable == ()
    assert challenges.scores is not None
    assert np.isfinite(challenges.scores.log_likelihood_ratio).all()


def test_of_a_node_never_seen_as_a_member_the_other_nodes_tell() -> None:
    rng, members = np.random.default_rng(6), random_memberships(60, 50, seed=6)
    members[:, 0], members[:, 1] = False, True
    level = 3 * rng.normal(size=50)
    models = make_models(members, level + 3 * members + rng.normal(size=members.shape))
    asked = np.array([level, level + 3], dtype=np.float32)
    scores = split(models, Evidence({"full": asked}, np.zeros((2, 50), dtype=bool), np.arange(2)))
    assert (scores[0] < 0).all()
    assert (scores[1] > 0).all()


def test_a_feature_that_repeats_others_changes_nothing() -> None:
    models = ring_models(50, 1)
    values = models.statistics["query0"]
    twice = {"full": values, "none": values, "scaled": 4 * values}
    again = Evidence(twice, models.memberships, models.indices, models.graph)
    np.testing.assert_array_equal(left_out(again), left_out(models))


def test_nodes_without_neighbours_are_scored_by_their_own_statistics() -> None:
    models = ring_models(40, 2, isolated=4)
    alone = Evidence(models.statistics, models.memberships, models.indices)
    np.testing.assert_array_equal(left_out(models)[:, 12:], left_out(alone)[:, 12:])
    np.testing.assert_array_equal(left_out(models, Student(neighbours=False)), left_out(alone))
    assert not np.allclose(left_out(models)[:, :12], left_out(alone)[:, :12])


def test_statistics_that_do_not_vary_say_nothing() -> None:
    models = ring_models(20, 1)
    constant = Evidence({"full": np.full((20, 12), 3.0)}, models.memberships, models.indices, models.graph)
    assert (left_out(constant) == 0).all()


def test_units_do_not_matter() -> None:
    models = ring_models(30, 2)
    scores = left_out(models)
    for factor in (2.0**-40, 2.0**60):
        scaled = {query: factor * values for query, values in models.statistics.items()}
        again = Evidence(scaled, models.memberships, models.indices, models.graph)
        np.testing.assert_allclose(left_out(again), scores, rtol=1e-9, atol=1e-9)


def test_extreme_statistics_give_numbers_in_the_right_order() -> None:
    members = random_memberships(40, 9, seed=7)
    told = Evidence({"full": members.astype(np.float32)}, members, np.arange(40))
    scores = left_out(told)
    assert np.isfinite(scores).all()
    assert scores[members].min() > 5 > -5 > scores[~members].max()
    wild = np.random.default_rng(8).normal(size=members.shape).astype(np.float32)
    wild[3, 4], wild[7], wild[:, 8] = 1e38, 1e20, 1e-30
    assert np.isfinite(
        left_out(Evidence({"full": wild, "none": wild / (1 + wild / 1e38)}, members, np.arange(40)))
    ).all()


def test_a_model_far_off_is_taken_out_of_a_fit_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its features hold nearly all of the scatter: what is left when they are subtracted has no digits."""
    monkeypatch.setattr(student, "FAR", np.inf)  # it keeps its answers
    models = ring_models(20, 2, seed=4)
    for size in (1e4, 1e9):
        wild = {query: values.copy() for query, values in models.statistics.items()}
        for values in wild.values():
            values[11, 5:7] = size
        far = Evidence(wild, models.memberships, models.indices)
        features = features_of(far, with_neighbours=False)
        others = np.delete(np.arange(20), 11)
        folds = [slice(first, last) for first, last in pairwise(20 * fold // 10 for fold in range(11))]
        priors = learn_priors(features.transpose(2, 0, 1).astype(np.float32), models.memberships, folds, 2)
        assert priors is not None
        prior = SlowPrior.of_part(priors, 11 // 2)
        expected = slow_split_scores(features[others], models.memberships[others], features[[11]], prior)
        np.testing.assert_allclose(left_out(far)[[11]], expected, rtol=1e-9, atol=1e-9)


def test_a_model_that_went_astray_hides_no_node_that_gives_itself_away() -> None:
    rng, members = np.random.default_rng(1), random_memberships(300, 40, seed=1)
    statistics = rng.normal(size=members.shape) + 10 * members * (np.arange(40) < 3)
    statistics[7] *= 1e5
    models = make_models(members, statistics)
    halves = models.take(slice(100, 300)), models.take(slice(0, 100))
    apart = scores_of(halves[0], np.full(40, 0.4), STUDENT, fitting=halves[1]).log_likelihood_ratio
    for scores, truth in ((left_out(models)[8:], members[8:]), (apart, members[100:])):
        for node in range(3):
            assert scores[truth[:, node], node].min() > scores[~truth[:, node], node].max() + 2


def test_an_answer_far_off_is_moved_to_the_limit_of_the_usual_ones() -> None:
    features = np.tile(np.array([0.0, 1, 2, 3, 1e9, -1e9, 3], dtype=np.float32)[None, :, None], (2, 1, 3))
    asked = features[:, 4:5].copy()
    student.without_outliers(features, asked)
    assert features[0, :, 0].tolist() == [0, 1, 2, 3, 22, -18, 3]
    assert (asked == 22).all()
    same = np.ones((1, 9, 1), dtype=np.float32)
    same[0, 0] = 5  # of answers that are nearly all alike, none is far off
    assert student.without_outliers(same.copy()).tolist() == same.tolist()


def test_blocks_targets_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    models = ring_models(30, 2, num_nodes=150, isolated=7)
    prior = np.full(157, 0.4)
    whole = scores_of(models, prior, STUDENT).log_likelihood_ratio
    some = scores_of(models, prior, STUDENT, targets=[156, 7, 3, 151]).log_likelihood_ratio
    np.testing.assert_array_equal(some, whole[:, [156, 7, 3, 151]])
    for threads in (1, 3):
        assert left_out(models, num_threads=threads).tobytes() == whole.tobytes()
    monkeypatch.setattr(matrices, "MAX_BLOCK", 30 * 20)
    np.testing.assert_array_equal(scores_of(models, prior, STUDENT).log_likelihood_ratio, whole)


def test_workers_are_sent_priors_and_not_what_these_were_learnt_from() -> None:
    models = ring_models(400, 2, num_nodes=60, isolated=3)
    scores = left_out(models)
    without_priors = models._with(("samples",))
    size = sum(table.nbytes for table in models.statistics.values())
    for known in (models, without_priors):
        content = pickle.dumps(known.without_targets())
        assert 2 * size < len(content) < 2.5 * size  # statistics and means over neighbours; as features, as much again
        np.testing.assert_array_equal(left_out(pickle.loads(content)), scores)


def test_too_few_models_are_told() -> None:
    models = ring_models(12, 1)
    message = "there must be at least 2 models to fit on others, got 1"
    with pytest.raises(InputError, match=f"^{message}$"):
        STUDENT.score_left_out(models.take([0]), num_threads=1)
    for fitting in (models.take([0]), Evidence(models.statistics, np.zeros((12, 12), dtype=bool), models.indices)):
        reasons = STUDENT.score(fitting, models.without_memberships(), num_threads=1).not_auditable
        assert [left.node for left in reasons] == list(range(12))
        count = fitting.num_models
        assert reasons[0].reason == f"{count} models leave nothing to learn the prior of the Student attack from"
    many = ring_models(40, 9)
    with pytest.raises(InputError, match=r"^the Student attack takes at most 16 features, got 18$"):
        STUDENT.score_left_out(many, num_threads=1)
