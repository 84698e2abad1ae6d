"""The row attack: its kernel against a slow reference and enumeration, what it learns, and that it is honest."""

import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from slow_rows import SlowSweeps, simulated_models

from bmpaudit import registry
from bmpaudit.attack import Evidence, RowAttack, Rows, Student, attack_performance, challenge, split_models
from bmpaudit.attack.rows import (
    Directions,
    LinearMap,
    _Counts,
    _Fit,
    _logistic,
    _low_rates,
    learn_directions,
    normalised,
    shrunk_log_odds,
)
from bmpaudit.graph import Graph
from bmpaudit.interfaces import LeaveOneOutAttack
from bmpaudit.util import matrices
from bmpaudit.util.errors import InputError

ATTACK = RowAttack()
TEMPERATURES = np.array([0.2, 0.5, 1.0, 1.0], dtype=np.float32)


def auc(scores: Any, members: Any) -> float:
    """Over all challenges together; priors are alike."""
    ranks = scipy.stats.rankdata(scores)
    num_in, num_out = members.sum(), (~members).sum()
    return float((ranks[members.ravel()].sum() - num_in * (num_in + 1) / 2) / (num_in * num_out))


def split(models: Evidence, attack: Any = ATTACK, num_threads: int = 2) -> Any:
    halves = split_models(models)
    return attack.score(
        halves.fitting, halves.challenged.without_memberships(), num_threads=num_threads
    ).log_likelihood_ratio


def left_out(models: Evidence) -> Any:
    return ATTACK.score_left_out(models, num_threads=2).log_likelihood_ratio


def changed_models(models: Evidence, **changed: Any) -> Evidence:
    parts: dict[str, Any] = {"memberships": models.memberships, "rows": models.rows} | changed
    return Evidence(models.statistics, parts["memberships"], models.indices, models.graph, rows=parts["rows"])


# The kernel.


def problem(num_classes: int, seed: int = 0, num_nodes: int = 9, num_features: int = 12, num_models: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    x = (rng.random((num_nodes, num_features)) < 0.3) * rng.uniform(0.5, 1.5, (num_nodes, num_features))
    x[2] = 0  # a node without features
    state = rng.integers(0, 3, (num_models, num_nodes)).astype(np.uint8)
    made = {
        "x": x,
        "rows": rng.normal(size=(num_models, num_features, num_classes)),
        "noise": rng.uniform(0.2, 1, num_features),
        "mean": rng.normal(size=(num_nodes, num_classes)),
        "variance": rng.uniform(0.1, 0.5, num_nodes),
        "log_odds": rng.normal(size=num_nodes),
    }
    return state, {name: values.astype(np.float32).astype(np.float64) for name, values in made.items()}


def as_directions(values: Any) -> Directions:
    parts = (values[name].astype(np.float32) for name in ("noise", "mean", "variance", "log_odds"))
    return Directions(scipy.sparse.csr_array(values["x"].astype(np.float32)), *parts)


@pytest.mark.parametrize("num_classes", [1, 3, 7, 8, 20])
@pytest.mark.parametrize("with_spread", [True, False])
def test_sweeps_are_those_of_the_slow_reference(num_classes: int, with_spread: bool) -> None:
    state, values = problem(num_classes)
    statistic, coefficient = np.empty(state.shape, np.float32), np.empty((*state.shape, num_classes), np.float32)
    coefficient[:] = values["mean"]
    residual = np.empty((len(state), values["x"].shape[1]), np.float32)
    into: Any = {"statistic": statistic, "coefficient": coefficient, "residual": residual}
    rows = values.pop("rows")
    as_directions(values).sweep(rows.astype(np.float32), state, TEMPERATURES, 2, with_spread=with_spread, **into)
    for model, known in enumerate(state):
        slow = SlowSweeps(rows=rows[model], state=known, with_spread=with_spread, **values)
        for temperature in TEMPERATURES:
            slow.sweep(float(temperature))
        np.testing.assert_allclose(statistic[model], slow.statistic(), atol=2e-4)
        estimates = np.array([slow.estimate(node)[1] for node in range(len(known))])
        np.testing.assert_allclose(coefficient[model], np.where(known[:, None] == 0, 0, estimates), atol=2e-4)
        left = rows[model] - values["x"].T @ slow.part
        np.testing.assert_allclose(residual[model], (left**2).mean(axis=1), atol=2e-4)


def test_coefficients_say_where_parts_begin() -> None:
    state, values = problem(3)
    rows = values.pop("rows").astype(np.float32)
    directions, none = as_directions(values), np.zeros(0, np.float32)
    begin = np.random.default_rng(1).normal(size=(*state.shape, 3)).astype(np.float32)
    residual = np.empty((len(state), rows.shape[1]), np.float32)
    directions.sweep(rows, state, none, 1, coefficient=begin.copy(), residual=residual)
    prob = np.where(state == 2, 1 / (1 + np.exp(-values["log_odds"])), state == 1)
    left = rows - np.einsum("nf,jn,jnc->jfc", values["x"], prob, begin)
    np.testing.assert_allclose(residual, (left**2).mean(axis=2), rtol=1e-4)


def test_any_number_of_threads_gives_the_same() -> None:
    state, values = problem(7, num_models=9)
    rows = values.pop("rows").astype(np.float32)
    results = []
    for num_threads in (1, 4):
        statistic = np.empty(state.shape, np.float32)
        as_directions(values).sweep(rows, state, TEMPERATURES, num_threads, statistic=statistic)
        results.append(statistic)
    np.testing.assert_array_equal(results[0], results[1])


def test_one_node_alone_gets_the_posterior_of_two_normal_densities() -> None:
    """Y_f ~ N(0, noise) or N(x·mean, noise + τ²·xxᵀ): nothing is approximate with a single node."""
    values: Any = {"x": np.array([[1.0, 0.5]]), "noise": np.array([0.3, 0.6]), "mean": np.array([[0.8, -0.3]])}
    values |= {"variance": np.array([0.2]), "log_odds": np.array([-0.7])}
    rows, x, noise = np.array([[0.5, -0.4], [0.3, 0.1]]), values["x"][0], np.diag(values["noise"])
    densities = [
        sum(scipy.stats.multivariate_normal(mean, cov).logpdf(rows[:, c]) for c, mean in enumerate(means))
        for cov, means in ((noise, np.zeros((2, 2))), (noise + 0.2 * np.outer(x, x), np.outer(values["mean"][0], x)))
    ]
    expected = 1 / (1 + np.exp(-(-0.7 + densities[1] - densities[0])))
    slow = SlowSweeps(rows=rows, state=[2], with_spread=True, **values)
    slow.sweep(1.0)
    assert slow.prob[0] == pytest.approx(expected, rel=1e-9)


def test_few_nodes_get_posteriors_close_to_those_of_enumeration() -> None:
    errors, rng = [], np.random.default_rng(5)
    for _ in range(20):
        x = (rng.random((6, 14)) < 0.35).astype(float)
        mean, odds, noise = rng.normal(size=(6, 2)), np.full(6, -0.8), np.full(14, 0.15)
        truth = rng.random(6) < 0.35
        b = mean + np.sqrt(0.05) * rng.normal(size=mean.shape)
        rows = x.T @ (truth[:, None] * b) + np.sqrt(0.15) * rng.normal(size=(14, 2))
        samples = np.array(list(product([0, 1], repeat=6)))
        log_posterior = np.array(
            [
                sample @ odds
                + sum(
                    scipy.stats.multivariate_normal(
                        x.T @ (sample * mean[:, c]), np.diag(noise) + 0.05 * x.T @ np.diag(sample) @ x
                    ).logpdf(rows[:, c])
                    for c in range(2)
                )
                for sample in samples
            ]
        )
        weights = np.exp(log_posterior - log_posterior.max())
        exact = weights @ samples / weights.sum()
        slow = SlowSweeps(x, rows, [2] * 6, noise, mean, np.full(6, 0.05), odds, with_spread=True)
        for temperature in np.geomspace(0.1, 1, 10):
            slow.sweep(temperature)
        errors.append(np.abs(slow.prob - exact))
    assert np.mean(errors) < 0.05
    assert np.quantile(errors, 0.9) < 0.2


# What is learnt.


def test_directions_and_noise_of_simulated_models_are_learnt() -> None:
    models = simulated_models(60, leak=1.0)
    assert models.rows is not None
    assert models.graph is not None
    scale = np.sqrt(np.mean((models.rows.values - models.rows.values.mean(axis=2, keepdims=True)) ** 2, axis=(1, 2)))
    learnt = learn_directions(models.graph, models.rows, models.memberships, 2)
    rng = np.random.default_rng(0)
    for _ in range(60 - 1):  # as `simulated_models` draws
        rng.choice(120, 6, replace=False)
    size = rng.uniform(0.6, 1.4, 60)
    found = learnt.mean[np.arange(60), np.arange(60) % 3] * 1.5 * scale.mean()
    assert np.corrcoef(found[:-1], size[:-1])[0, 1] > 0.9
    assert np.abs(found[:-1] / size[:-1] - 1).mean() < 0.1
    assert (learnt.noise * scale.mean() ** 2).max() < 0.02  # of 0.0025, what others' directions leave, and a share
    spread = learnt.variance[:-1] * scale.mean() ** 2
    assert 0.003 < np.median(spread) < 0.03  # of 0.01, steadied by a prior
    others = simulated_models(40, seed=0)
    assert others.rows is not None
    of_others = learnt.of(normalised(others.rows.values_of(slice(0, 20))), np.full((20, 60), 2, np.uint8), 1)
    assert auc(of_others[:, :-1], others.memberships[:20, :-1]) > 0.97
    assert (of_others[:, -1] == 0).all()  # no features


@pytest.mark.parametrize("words", [1, 4])
def test_the_linear_map_is_its_formula(words: int) -> None:
    models = simulated_models(5, num_nodes=80, num_features=10, words=words)
    assert models.graph is not None
    assert models.rows is not None
    assert scipy.sparse.issparse(models.graph.features) == (words == 1)
    rows = normalised(models.rows.values_of(slice(None)))
    x = models.graph.dense_features.astype(np.float64)
    x = x - x.mean(axis=0)
    product_ = x.T @ x
    solved = 10 * x @ np.linalg.inv(product_ + 0.01 * np.trace(product_) / 10 * np.eye(10))
    label = np.eye(3)[models.graph.labels] - 1 / 3
    expected = np.einsum("nf,jfc,nc->jn", solved, rows, label)
    made = LinearMap(models.graph).of(rows, np.full((5, 80), 2, np.uint8), 1)
    np.testing.assert_allclose(made, expected, atol=1e-4 * np.abs(expected).max())


def test_prior_log_odds_are_shrunk_as_far_as_chance_explains_them() -> None:
    rng = np.random.default_rng(0)
    alike = shrunk_log_odds(rng.random((40, 4_000)) < 0.25)
    assert np.abs(alike - np.log(1 / 3)).max() < 0.15  # a frequency alone would be off by up to a factor of 4
    probs = np.where(np.arange(4_000) % 2, 0.1, 0.6)
    differ = 1 / (1 + np.exp(-shrunk_log_odds(rng.random((40, 4_000)) < probs)))
    assert np.corrcoef(differ, probs)[0, 1] > 0.9
    assert np.isfinite(shrunk_log_odds(np.zeros((3, 5), dtype=bool))).all()


def test_the_regression_finds_the_weights_that_made_the_data() -> None:
    rng = np.random.default_rng(0)
    features, offset = rng.normal(size=(3, 40_000)).astype(np.float32), rng.normal(size=40_000)
    weights = np.array([0.5, -1.0, 2.0])
    members = rng.random(40_000) < 1 / (1 + np.exp(-(offset + weights @ features)))
    np.testing.assert_allclose(_logistic(features, members, offset), weights, atol=0.08)
    apart = np.concatenate([np.full(50, -1.0), np.full(50, 1.0)])[None].astype(np.float32)
    assert np.isfinite(_logistic(apart, apart[0] > 0, np.zeros(100))).all()


def test_low_rates_are_those_of_counting() -> None:
    rng = np.random.default_rng(0)
    members = rng.random(30_000) < 0.3
    scores = rng.normal(size=30_000) + 2 * members
    others, mine = np.sort(scores[~members])[::-1], scores[members]
    rates = [np.mean(mine > others[int(rate * len(others))]) for rate in (1e-3, 1e-2)]  # 1e-4 is 2 of 21,000
    assert _low_rates(scores, members) == pytest.approx(np.mean(np.log(rates)), abs=1e-2)
    assert _low_rates(np.zeros(3), np.ones(3, dtype=bool)) == 0


# The attack.


@pytest.mark.parametrize("num_models", [20, 48, 300])
def test_rows_give_away_what_the_statistics_do_not(num_models: int) -> None:
    models = simulated_models(num_models)
    truth = split_models(models).challenged.memberships
    assert auc(split(models, Student()), truth) < 0.7
    assert auc(split(models), truth) > 0.95
    assert auc(left_out(models), models.memberships) > 0.95


def test_challenges_come_to_the_same_in_blocks_and_with_any_number_of_threads() -> None:
    models = simulated_models(30)
    halves = split_models(models)
    asked, some = halves.challenged.without_memberships(), np.array([3, 17, 40])
    whole = ATTACK.score(halves.fitting, asked, num_threads=2).log_likelihood_ratio
    part = ATTACK.score(halves.fitting.about(some), asked.about(some), num_threads=1).log_likelihood_ratio
    np.testing.assert_array_equal(part, whole[:, some])
    sent: Any = pickle.loads(pickle.dumps((halves.fitting, asked)))
    np.testing.assert_array_equal(ATTACK.score(*sent, num_threads=1).log_likelihood_ratio, whole)
    fresh = split(simulated_models(30), num_threads=1)
    np.testing.assert_array_equal(fresh, whole)
    assert isinstance(registry.build(registry.ATTACK, "rows"), LeaveOneOutAttack)
    made = challenge(
        ATTACK, models, "shadow-frequency", {"strong": registry.build(registry.RULE, "strong")}, with_scores=True
    )
    assert made.scores is not None
    assert attack_performance(made.scores, registry.build(registry.RULE, "strong")).auc > 0.95


@pytest.mark.parametrize("num_models", [20, 260])
def test_what_is_not_in_memory_gives_the_same(num_models: int, monkeypatch: pytest.MonkeyPatch) -> None:
    models = simulated_models(num_models)
    there, all_there = split(models), left_out(models)
    monkeypatch.setattr(matrices, "MOST_IN_MEMORY", 100)
    monkeypatch.setattr(matrices, "MAX_BLOCK", num_models * 16)
    again = simulated_models(num_models)
    halves = split_models(again)
    asked = halves.challenged.without_memberships()
    lazy = ATTACK.score(halves.fitting, asked, num_threads=2).log_likelihood_ratio
    np.testing.assert_allclose(lazy, there, atol=1e-4)
    np.testing.assert_allclose(left_out(again), all_there, atol=1e-4)
    sent: Any = pickle.loads(pickle.dumps((halves.fitting, asked)))  # without files that nobody else can read
    np.testing.assert_array_equal(ATTACK.score(*sent, num_threads=1).log_likelihood_ratio, lazy)


@pytest.mark.parametrize("num_models", [20, 260])
def test_nothing_of_a_model_enters_what_it_is_scored_with(num_models: int) -> None:
    models = simulated_models(num_models, num_nodes=30, num_features=50)
    assert models.rows is not None
    before = left_out(models)
    for model in (0, num_models // 2 + 1):
        flipped = models.memberships.copy()
        flipped[model] ^= True
        after = left_out(changed_models(models, memberships=flipped))
        np.testing.assert_allclose(after[model], before[model], atol=1e-6)
        assert not np.allclose(np.delete(after, model, axis=0), np.delete(before, model, axis=0))
    # Rows of one challenged model are nothing to another.
    values, norms = models.rows.values.copy(), models.rows.norms.copy()
    values[-1], norms[-1] = values[-1][::-1], 0.5
    there, changed = split(models), split(changed_models(models, rows=Rows(values, norms)))
    np.testing.assert_array_equal(changed[:-1], there[:-1])
    assert not np.allclose(changed[-1], there[-1])


@pytest.mark.parametrize("num_models", [40, 300])
def test_shuffled_memberships_tell_nothing(num_models: int) -> None:
    aucs = []
    for seed in range(6):
        models = simulated_models(num_models, seed=seed)
        order = np.random.default_rng(seed).permutation(num_models)
        shuffled = changed_models(models, memberships=np.asarray(models.memberships)[order])
        aucs.append(auc(left_out(shuffled), shuffled.memberships))
    # An AUC over J·N challenges has a standard deviation of about √(1/(12·0.3·0.7·J·N)), the mean of six less.
    assert abs(np.mean(aucs) - 0.5) < 4 * np.sqrt(1 / (12 * 0.21 * num_models * 60 * 6))


def test_rows_give_something_away_where_members_outnumber_features() -> None:
    models = simulated_models(120, num_nodes=90, num_features=14, words=5)
    truth = split_models(models).challenged.memberships
    assert auc(split(models), truth) > auc(split(models, Student()), truth) + 0.02


def test_rows_that_tell_nothing_leave_the_student_attack() -> None:
    models = simulated_models(60, leak=0.0)
    assert models.rows is not None
    flat = changed_models(models, rows=Rows(models.rows.values, np.ones_like(models.rows.norms)))
    truth = split_models(models).challenged.memberships
    assert auc(split(flat), truth) > auc(split(models, Student()), truth) - 0.03


def test_a_node_without_features_is_scored_by_its_statistics() -> None:
    models = simulated_models(60)
    halves = split_models(models)
    scores = split(models)[:, -1]
    margins = (
        Student()
        .score(halves.fitting, halves.challenged.without_memberships(), num_threads=1)
        .log_likelihood_ratio[:, -1]
    )
    assert np.isfinite(scores).all()
    assert np.corrcoef(scores, margins)[0, 1] > 0.8


def test_certain_nodes_are_beyond_all_others_and_a_missing_side_limits_what_is_said() -> None:
    models = simulated_models(40, num_features=60)
    assert models.graph is not None
    assert models.rows is not None
    members = models.memberships.copy()
    truth = split_models(models).challenged.memberships
    scores = split(models)
    x = models.graph.dense_features
    is_out = (models.rows.norms[20:] < 0.01).astype(float) @ x.T > 0
    assert is_out.any()
    assert not truth[is_out].any()
    assert scores[is_out].max() < -49
    assert np.abs(scores[~is_out & (np.abs(scores) < 49)]).max() < 49
    members[:20, 5], members[:20, 6] = False, True  # no fitting model has node 5, all have node 6
    flat = np.ones_like(models.rows.norms)
    limited = split(changed_models(models, memberships=members, rows=Rows(models.rows.values, flat)))
    assert limited[:, 5].max() <= np.log(21) + 1e-6
    assert limited[:, 6].min() >= -np.log(21) - 1e-6


def test_on_a_side_without_models_no_more_is_said_than_their_number_allows() -> None:
    scores = np.array([[-9.0, 9.0, -9.0, 9.0, 9.0], [9.0, -9.0, 9.0, -9.0, 9.0]])
    members = np.array([[True, True, False, False, True], [False, False, False, False, False]])
    num_in, most, whole = np.array([0, 0, 7, 7, 1]), np.log(8), slice(0, 2)
    of_others = _Counts(num_in, 7, None).supported(scores, whole, slice(0, 5))
    np.testing.assert_allclose(of_others, [[-9, most, -most, 9, 9], [most, -9, 9, -most, 9]])
    # Left out of their own fits: the first model alone has nodes 0, 1 and 4, and it or the other alone lacks 2 and 3.
    without_itself = _Counts(np.array([1, 1, 6, 6, 1]), 7, members).supported(scores, whole, np.arange(5))
    np.testing.assert_allclose(without_itself, [[-9, most, -most, 9, most], [9, -9, 9, -most, 9]])


def test_with_many_models_those_learnt_from_take_no_part_in_other_fits() -> None:
    models = simulated_models(300)
    fit, scores = _Fit(models, 2), left_out(models)
    size = fit.num_held_out
    assert size == 64
    np.testing.assert_allclose(scores[size:], fit.table_left_out().scores, atol=1e-6)
    swapped = np.concatenate([np.arange(size, 2 * size), np.arange(size), np.arange(2 * size, 300)])
    np.testing.assert_allclose(scores[:size], _Fit(models.take(swapped), 2).table_left_out().scores[:size], atol=1e-6)


@pytest.mark.parametrize("num_models", [128, 131, 200, 260])
def test_whatever_their_number_no_model_is_held_out_and_scored_by_the_same_fit(num_models: int) -> None:
    models = simulated_models(num_models, num_nodes=30, num_features=50)
    before, flipped = left_out(models), models.memberships.copy()
    for model in (0, num_models // 4, num_models - 1):  # learnt from at first, then, and never
        flipped[model] ^= True
        after = left_out(changed_models(models, memberships=flipped))
        np.testing.assert_allclose(after[model], before[model], atol=1e-6)
        flipped[model] ^= True


def test_each_model_is_read_once_by_all_who_learn_from_the_same_models(monkeypatch: pytest.MonkeyPatch) -> None:
    models, num_read = simulated_models(300), 0
    read = Directions.of

    def counted(directions: Directions, rows: Any, states: Any, num_threads: int) -> Any:
        nonlocal num_read
        num_read += len(rows)
        return read(directions, rows, states, num_threads)

    monkeypatch.setattr(Directions, "of", counted)
    left_out(models)
    assert num_read == 2 * (300 - 64)
    halves = split_models(models, 256)  # of which the same are learnt from
    ATTACK.score(halves.fitting, halves.challenged.without_memberships(), num_threads=2)
    left_out(halves.fitting)
    assert num_read == 2 * (300 - 64)


@pytest.mark.parametrize("num_fitting", [1, 2, 3, 4, 5])
def test_few_models_get_scores_or_reasons(num_fitting: int) -> None:
    models = simulated_models(10)
    halves = split_models(models, num_fitting)
    made = ATTACK.score(halves.fitting, halves.challenged.without_memberships(), num_threads=1)
    scored = ~np.isin(np.arange(60), [each.node for each in made.not_auditable])
    assert np.isfinite(made.log_likelihood_ratio[:, scored]).all()
    assert scored.all() == (num_fitting > 1)
    if num_fitting > 1:
        few = models.take(slice(num_fitting))
        assert ATTACK.score_left_out(few, num_threads=1).log_likelihood_ratio.shape == (num_fitting, 60)


@pytest.mark.parametrize("num_models", [20, 300])
def test_all_nodes_may_be_certain(num_models: int) -> None:
    models = simulated_models(num_models, num_nodes=30, num_features=30, words=1)
    assert models.graph is not None
    graph = Graph.from_edges([[0, 1]], np.eye(30, dtype=np.float32), models.graph.labels)
    assert models.rows is not None
    norms = np.where(models.memberships, 1.0, 0.001).astype(np.float32)
    rows = Rows(models.rows.values[:, :30], norms)
    scores = left_out(Evidence(models.statistics, models.memberships, models.indices, graph, rows=rows))
    assert (scores[models.memberships] > 49).all()
    assert (scores[~models.memberships] < -49).all()


def test_what_the_attack_needs_is_said() -> None:
    models = simulated_models(6)
    with pytest.raises(InputError, match="got no rows"):
        split(replace_rows(models, None))
    bare = Evidence(models.statistics, models.memberships, models.indices, rows=models.rows)
    with pytest.raises(InputError, match="got no graph"):
        split(bare)
    with pytest.raises(InputError, match="at least 2 models"):
        left_out(models.take([0]))


def replace_rows(models: Evidence, rows: Rows | None) -> Evidence:
    return Evidence(models.statistics, models.memberships, models.indices, models.graph, rows=rows)


# Rows as part of the evidence.


def test_rows_are_taken_with_their_models_and_read_when_asked() -> None:
    class Counted:
        def __init__(self, values: Any) -> None:
            self.values, self.shape, self.num_read = values, values.shape, 0

        def __getitem__(self, models: Any) -> Any:
            self.num_read += len(models)
            return self.values[models]

    models = simulated_models(8)
    assert models.rows is not None
    values = Counted(models.rows.values)
    evidence = replace_rows(models, Rows(values, models.rows.norms))
    part = evidence.take([6, 1, 3]).take(slice(1, None)).about([0]).without_memberships()
    assert part.rows is not None
    assert part.rows.shape == (2, 120, 3)
    assert values.num_read == 0
    np.testing.assert_array_equal(part.rows.values_of(slice(0, 2)), models.rows.values[[1, 3]])
    np.testing.assert_array_equal(part.rows.norms_of(np.array([1])), models.rows.norms[[3]])
    assert values.num_read == 2


def test_rows_that_do_not_fit_are_refused() -> None:
    models = simulated_models(4)
    assert models.rows is not None
    values, norms = models.rows.values, models.rows.norms
    with pytest.raises(InputError, match="rows must have values of shape"):
        Rows(values, norms[:, :-1])
    with pytest.raises(InputError, match="rows must be of 4 models"):
        replace_rows(models, Rows(values[:3], norms[:3]))
    with pytest.raises(InputError, match=r"rows must be of \(120, 3\) features and classes"):
        replace_rows(models, Rows(values[:, :-1], norms[:, :-1]))
    wrong = values.copy()
    wrong[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match="rows must be finite"):
        split(replace_rows(models, Rows(wrong, norms)))
