"""A test for every node: how often it accuses where there is nothing, and that it finds what there is."""

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, norm, rankdata
from slow_attack import make_models

from bmpaudit import datasets
from bmpaudit.attack import Evidence
from bmpaudit.attack.permutation import (
    MIN_SHUFFLES,
    PermutationTest,
    after_second_look,
    largest_z,
    permutation_test,
)
from bmpaudit.samplers import Snowball, draw_memberships
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import Purpose, stream
from bmpaudit.util.values import Flags, Floats

NUM_MODELS, NUM_AUDITS = 40, 150
SURPRISE = 5e-4  # probability of a number of audits that makes a test fail for nothing


demo = cache(lambda: datasets.load("demo"))


def clustered_models(seed: int, leak: float = 0.0, who: slice = slice(None)) -> Evidence:
    """Snowball samples, and statistics that go up and down together over the nodes of a model, as real ones do."""
    graph = demo()
    rng, members = np.random.default_rng(seed), draw_memberships(graph, Snowball(0.25), NUM_MODELS, seed)
    common = rng.normal(size=(NUM_MODELS, 3)) @ rng.normal(size=(3, graph.num_nodes))
    statistics = rng.normal(size=members.shape) + common
    statistics[:, who] += leak * members[:, who]
    return make_models(members, statistics).about(np.arange(0, graph.num_nodes, 4))


@dataclass(frozen=True)
class Alarms:
    """What is found in many audits where nobody leaks, or only node 4."""

    p_value: Floats
    of_a_node: Floats
    any_accused: Flags

    @classmethod
    def of(cls, leak: float, num_audits: int) -> "Alarms":
        tests = [
            permutation_test(clustered_models(audit, leak, slice(4, 5)), seed=audit) for audit in range(num_audits)
        ]
        is_other = tests[0].node != 4
        p_value, of_a_node = np.array([[test.p_value, test.node_p_value[100]] for test in tests]).T
        return cls(p_value, of_a_node, np.array([test.is_leaking[is_other].any() for test in tests]))


@pytest.fixture(scope="module")
def of_noise() -> Alarms:
    return Alarms.of(leak=0.0, num_audits=NUM_AUDITS)


def test_false_alarms_come_at_the_nominal_rate(of_noise: Alarms) -> None:
    assert (of_noise.p_value <= 0.01).sum() <= binom.ppf(1 - SURPRISE, NUM_AUDITS, 0.01)
    for level in (0.05, 0.1, 0.5):
        low, high = binom.ppf([SURPRISE, 1 - SURPRISE], NUM_AUDITS, level)
        assert low <= (of_noise.p_value <= level).sum() <= high


def test_p_values_of_a_node_are_uniform_where_it_does_not_leak(of_noise: Alarms) -> None:
    for level in (0.01, 0.05, 0.1, 0.5):
        low, high = binom.ppf([SURPRISE, 1 - SURPRISE], NUM_AUDITS, level)
        assert low <= (of_noise.of_a_node <= level).sum() <= high


def test_nobody_is_accused_wrongly_in_more_than_one_audit_of_a_hundred(of_noise: Alarms) -> None:
    assert of_noise.any_accused.sum() <= binom.ppf(1 - SURPRISE, NUM_AUDITS, 0.01)


def test_a_node_that_leaks_draws_no_suspicion_on_others() -> None:
    """Step-down: once it is found, all others are held against what chance makes of them alone."""
    found = Alarms.of(leak=6.0, num_audits=30)
    assert found.any_accused.sum() <= binom.ppf(1 - SURPRISE, 30, 0.01)


def slow_statistics(models: Evidence, order: np.ndarray) -> Floats:
    """z of each query and node if model j had the sample of model order[j], shape (V, K), by ranks with ties."""
    members = models.at_targets(models.memberships)[order]
    num_models, made = len(order), np.zeros((len(models.queries), members.shape[1]))
    for v, table in enumerate(models.statistics.values()):
        ranks = rankdata(models.at_targets(table), axis=0)
        num_in = members.sum(axis=0)
        variance = num_in * (num_models - num_in) / num_models * ranks.var(axis=0, ddof=1)
        centred = (ranks * members).sum(axis=0) - num_in * (num_models + 1) / 2
        np.divide(centred, np.sqrt(variance), out=made[v], where=variance > 0)
    return made


def small_models(seed: int, leak: float, *, ties: bool, num_nodes: int = 12) -> Evidence:
    rng = np.random.default_rng(seed)
    members = rng.random((15, num_nodes)) < 0.4
    members[:, 1], members[:, 2] = True, False
    statistics = {query: rng.normal(size=members.shape) + leak * members for query in ("full", "none")}
    if ties:
        statistics = {query: np.round(values) for query, values in statistics.items()}
    return Evidence(statistics, members, np.arange(15))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("seed", "leak"), [(0, 0.0), (1, 0.7), (2, 3.0)])
def test_it_is_what_ranks_of_shuffled_memberships_say(seed: int, leak: float, ties: bool) -> None:
    models = small_models(seed, leak, ties=ties)
    test = permutation_test(models, seed=7)
    shuffled = [stream(7, r, Purpose.PERMUTATION_TEST).permutation(15) for r in range(test.num_shuffles)]
    every = np.stack([slow_statistics(models, order) for order in (np.arange(15), *shuffled)])
    statistic = np.abs(every).max(axis=1)

    np.testing.assert_allclose(np.abs(test.z), statistic[0], atol=1e-12)
    np.testing.assert_array_equal(np.sign(test.z), np.sign(np.take_along_axis(
        every[0], np.abs(every[0]).argmax(axis=0)[None], axis=0)[0]))  # fmt: skip
    np.testing.assert_allclose(test.largest, statistic.max(axis=1))
    np.testing.assert_allclose(test.node_p_value, (statistic >= statistic[0] - 1e-9).mean(axis=0))
    assert test.node_p_value[1] == test.node_p_value[2] == 1.0  # of which all models are alike

    respects = np.round([statistic.max(axis=1), every.sum(axis=(1, 2)), (every**2).sum(axis=(1, 2))], 9)
    ranks = np.array([[(row >= value).sum() for value in row] for row in respects])
    best = [(int(column.min()), int(column.sum())) for column in ranks.T]
    num_ahead = sum(one <= best[0] for one in best[1:])
    second_look = test.num_shuffles > MIN_SHUFFLES
    assert test.p_value == (
        after_second_look(num_ahead, test.num_shuffles, MIN_SHUFFLES)
        if second_look
        else (1 + num_ahead) / (1 + test.num_shuffles)
    )

    # Step-down: whoever none of the first 199 shuffles reaches is out, and the others are compared among themselves.
    is_leaking = np.zeros(12, dtype=bool)
    while True:
        by_chance = statistic[1 : MIN_SHUFFLES + 1][:, ~is_leaking].max(axis=1, initial=0.0)
        more = ~is_leaking & (by_chance.max() < statistic[0] - 1e-9)
        if not more.any():
            break
        is_leaking |= more
    np.testing.assert_array_equal(test.is_leaking, is_leaking)
    assert test.num_leaking == is_leaking.sum()


def test_who_is_not_quite_first_is_looked_at_again() -> None:
    looked = [permutation_test(small_models(seed, 0.3, ties=False)) for seed in range(12)]
    assert {test.num_shuffles for test in looked} == {199, 1990}
    assert {len(test.largest) for test in looked} == {200, 1991}
    for test in looked:
        if test.num_shuffles == 199:
            assert test.p_value == 1 / 200 or test.p_value >= 11 / 200
        else:
            assert 1 / 200 <= test.p_value < 1


def after_by_enumeration(num_ahead: int, num_shuffles: int, num_first: int) -> Fraction:
    """All ranks of the real arrangement, and all places that those ahead of it can have among the shuffles."""
    called = total = 0
    for ahead in range(num_shuffles + 1):
        for places in itertools.combinations(range(num_shuffles), num_first):
            called += ahead <= num_ahead or not any(place < ahead for place in places)
            total += 1
    return Fraction(called, total)


@pytest.mark.parametrize("num_first", [1, 3, 5, 9])
def test_a_second_look_is_paid_for(num_first: int) -> None:
    for num_ahead in range(10):
        exact = after_by_enumeration(num_ahead, 9, num_first)
        assert after_second_look(num_ahead, 9, num_first) == pytest.approx(float(exact), rel=1e-12)


def one_of_many(audit: int, shift: float, num_nodes: int = 1000, num_models: int = 64) -> Evidence:
    """One node leaks; samples of fixed size, and noise that a model's nodes have in common."""
    rng = np.random.default_rng([audit, num_models, num_nodes])
    members = rng.permuted(np.tile(np.arange(num_nodes) < num_nodes // 4, (num_models, 1)), axis=1)
    statistics = rng.normal(size=members.shape) + 0.5 * rng.normal(size=(num_models, 1))
    statistics[:, 0] += shift * members[:, 0]
    return make_models(members, statistics)


def test_one_node_of_a_thousand_is_found() -> None:
    tests = [permutation_test(one_of_many(audit, 3.0), seed=audit) for audit in range(20)]
    assert sum(test.is_leaking[0] for test in tests) >= 0.8 * 20
    assert sum(test.is_leakage_found for test in tests) >= 0.8 * 20
    assert "nodes are proven to leak" in str(tests[0])


def test_a_little_of_every_node_is_found() -> None:
    """No node stands out, all together do."""
    found = 0
    for audit in range(20):
        models = one_of_many(audit, 0.0, num_models=128)
        leaky = models.statistics["full"] + np.float32(0.1) * models.memberships
        found += permutation_test(make_models(models.memberships, leaky), seed=audit).is_leakage_found
    assert found >= 0.8 * 20


def test_a_leak_above_what_may_be_missed_is_found() -> None:
    """In 95 of 100 audits at least: how much of it there is was worked out without looking at any."""
    quiet = permutation_test(one_of_many(0, 0.0, 200, 128))
    shift = np.sqrt(2) * norm.ppf(quiet.missed_auc[0])
    found = sum(permutation_test(one_of_many(audit, shift, 200, 128)).is_leaking[0] for audit in range(1, 51))
    assert found >= binom.ppf(SURPRISE, 50, 0.95)
    assert 0.6 < quiet.missed_auc[0] < 1


def test_what_may_be_missed_by_hand() -> None:
    test = PermutationTest(
        p_value=0.5,
        num_shuffles=199,
        largest=np.zeros(200),
        node=np.arange(4),
        z=np.zeros(4),
        num_in=np.array([0, 2, 50, 100]),
        node_p_value=np.ones(4),
        is_leaking=np.zeros(4, dtype=np.bool_),
        critical=3.0,
        num_models=100,
    )
    assert largest_z(test.num_in, 100) == pytest.approx([0, np.sqrt(3 * 196 / 101), np.sqrt(3 * 2500 / 101), 0])
    assert test.can_be_found.tolist() == [False, False, True, False]
    # A rank sum of 50 among 100 has a standard deviation of √(50·50·101/12), which is that of 2,500 AUCs.
    expected = 0.5 + (3 + 1.6448536) * np.sqrt(50 * 50 * 101 / 12) / 2500
    assert test.missed_auc == pytest.approx([1, 1, expected, 1])
    assert replace(test, critical=9.0).missed_auc.tolist() == [1, 1, 1, 1]
    assert not replace(test, p_value=0.011).is_leakage_found
    assert replace(test, p_value=0.01).is_leakage_found


def test_a_tie_is_not_leakage() -> None:
    members = np.random.default_rng(0).random((20, 5)) < 0.5
    test = permutation_test(make_models(members, np.zeros(members.shape)))
    assert (test.p_value, test.num_leaking) == (1.0, 0)
    assert test.node_p_value.tolist() == [1.0] * 5
    assert str(test).startswith("no leakage found (p = 1, 199 shuffles of memberships): 0 of 5 nodes")


def test_samples_that_are_all_the_same_show_nothing() -> None:
    members = np.tile([True, False, True], (20, 1))
    models = make_models(members, np.random.default_rng(0).normal(size=members.shape))
    test = permutation_test(replace(models, are_independent=True))
    assert (test.p_value, test.num_leaking) == (1.0, 0)
    assert not test.can_be_found.any()
    assert test.missed_auc.tolist() == [1.0] * 3


def same(first: PermutationTest, second: PermutationTest) -> bool:
    arrays = (vars(each) for each in (first, second))
    return all(np.array_equal(*pair) for pair in zip(*(each.values() for each in arrays), strict=True))


def test_threads_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    models, done = clustered_models(seed=3, leak=1.0), list[int]()
    one = permutation_test(models, seed=5, num_threads=1, progress=done.append)
    assert same(one, permutation_test(models, seed=5, num_threads=3))
    assert not same(one, permutation_test(models, seed=6))
    assert done[-1] == 250
    done.clear()
    monkeypatch.setattr("bmpaudit.util.matrices.MAX_BLOCK", NUM_MODELS * 64)
    assert same(one, permutation_test(models, seed=5, progress=done.append))
    assert done == [64, 128, 192, 250]


def test_more_shuffles_keep_the_first_ones() -> None:
    models = clustered_models(seed=4)
    few, more = permutation_test(models), permutation_test(models, num_shuffles=300)
    assert np.array_equal(few.largest[:200], more.largest[:200])


def test_impossible_inputs_are_refused() -> None:
    models = small_models(0, 0.0, ties=False)
    with pytest.raises(InputError, match=r"^num_shuffles must be at least 199, got num_shuffles=198$"):
        permutation_test(models, num_shuffles=198)
    with pytest.raises(InputError, match=r"^seed must be"):
        permutation_test(models, seed=-1)
    with pytest.raises(InputError, match=r"^there must be at least 2 models to shuffle memberships, got 1$"):
        permutation_test(make_models([[1]], [[0.0]]))


def test_where_all_nodes_leak_all_are_found() -> None:
    rng = np.random.default_rng(3)
    members = rng.random((64, 6)) < 0.5
    models = Evidence(
        {"full": (rng.normal(size=members.shape) + 9 * members).astype(np.float32)}, members, np.arange(64)
    )
    test = permutation_test(models)
    assert test.is_leaking.all()
    assert test.p_value == 1 / 200
