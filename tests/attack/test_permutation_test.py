"""The permutation test: how often it finds leakage where there is none, and that it finds some where there is."""

import numpy as np
import pytest
from scipy.stats import binom
from slow_attack import GAUSSIAN, QUERY, make_models, random_memberships

from bmpaudit import Graph, InputError, datasets
from bmpaudit.attack import Base, DecisionSettings, ErrorCounts, Evidence, PermutationTest, node_mia, permutation_test
from bmpaudit.attack.permutation_test import mean_distance_from_guessing
from bmpaudit.samplers import Snowball, draw_memberships
from bmpaudit.streams import Purpose, stream

NUM_MODELS, NUM_AUDITS = 40, 200


@pytest.fixture(scope="module")
def graph() -> Graph:
    return datasets.load("demo")


def clustered_models(graph: Graph, seed: int, leak: float = 0.0) -> Evidence:
    """Snowball samples, and statistics that go up and down together over the nodes of a model, as real ones do."""
    rng, members = np.random.default_rng(seed), draw_memberships(graph, Snowball(0.25), NUM_MODELS, seed)
    common = rng.normal(size=(NUM_MODELS, 3)) @ rng.normal(size=(3, graph.num_nodes))
    return make_models(members, rng.normal(size=members.shape) + common + leak * members)


def test_false_alarms_come_at_the_nominal_rate(graph: Graph) -> None:
    targets = np.arange(0, graph.num_nodes, 5)
    alarms = 0
    for audit in range(NUM_AUDITS):
        models = clustered_models(graph, seed=audit)
        test = permutation_test(GAUSSIAN, models, "shadow-frequency", seed=audit, targets=targets)
        alarms += test.is_leakage_found
        assert test.is_leakage_found == (test.p_value == 1 / 20)
    # The real statistic is one of 20 exchangeable ones; a test of level 1/1000 on the number of alarms.
    low, high = binom.ppf([0.0005, 0.9995], NUM_AUDITS, 1 / 20)
    assert low <= alarms <= high


def test_leakage_is_found_where_there_is_some(graph: Graph) -> None:
    test = permutation_test(GAUSSIAN, clustered_models(graph, seed=1, leak=2.0), "shadow-frequency")
    assert test.is_leakage_found
    assert test.p_value == 1 / 20
    assert "; after shuffling memberships between models it is " in str(test)
    assert str(test).startswith("leakage found (p = 0.05): mean |A/n0 + B/n1 - 1| is ")
    assert test.statistic > 2 * test.null_statistics.max()


def test_a_tie_is_not_leakage() -> None:
    members = np.random.default_rng(0).random((20, 5)) < 0.5
    test = permutation_test(GAUSSIAN, make_models(members, np.zeros(members.shape)), np.full(5, 0.5))
    assert test.statistic == 0.0  # equal statistics: always "non-member"
    assert not test.is_leakage_found
    assert test.p_value == 1.0
    assert str(test).startswith("no leakage found")


def test_whole_rows_are_permuted(graph: Graph) -> None:
    models = clustered_models(graph, seed=3, leak=1.0)
    test = permutation_test(GAUSSIAN, models, "shadow-frequency", seed=7, num_permutations=3)
    for trial in range(3):
        order = stream(7, trial, Purpose.PERMUTATION_TEST).permutation(NUM_MODELS)
        permuted = make_models(models.memberships[order], models.statistics[QUERY])
        expected = node_mia(permuted, "shadow-frequency", rule="weak")
        counts = test.null_counts[trial]
        assert np.array_equal(counts.false_positives, expected.false_positives)
        assert np.array_equal(counts.false_negatives, expected.false_negatives)
        assert np.array_equal(counts.num_in, test.counts.num_in)  # priors and sides stay as they are
        distance = np.abs(counts.false_positives / counts.num_out + counts.false_negatives / counts.num_in - 1)
        assert test.null_statistics[trial] == pytest.approx(distance.mean())


def test_more_permutations_keep_the_first_ones(graph: Graph) -> None:
    models = clustered_models(graph, seed=4)
    few = permutation_test(GAUSSIAN, models, "shadow-frequency", num_permutations=2)
    more = permutation_test(GAUSSIAN, models, "shadow-frequency", num_permutations=4, num_threads=1)
    assert np.array_equal(few.null_statistics, more.null_statistics[:2])


def test_strong_counts_on_request_and_the_statistic_from_weak_ones(graph: Graph) -> None:
    models = clustered_models(graph, seed=5, leak=1.0)
    weak = permutation_test(GAUSSIAN, models, "shadow-frequency", num_permutations=2)
    strong = permutation_test(GAUSSIAN, models, "shadow-frequency", num_permutations=2, rule="strong")
    assert strong.statistic == weak.statistic
    assert np.array_equal(strong.counts.false_positives, node_mia(models, "shadow-frequency").false_positives)
    assert strong.null_counts[0].false_positives.sum() < weak.null_counts[0].false_positives.sum()


def test_nodes_that_cannot_be_attacked_do_not_count(graph: Graph) -> None:
    models = clustered_models(graph, seed=6)
    kept = permutation_test(
        GAUSSIAN, models, "shadow-frequency", num_permutations=1, settings=DecisionSettings(unfittable="non-member")
    )
    left_out = permutation_test(GAUSSIAN, models, "shadow-frequency", num_permutations=1)
    assert left_out.counts.not_auditable
    assert kept.statistic == left_out.statistic
    assert np.isfinite(kept.statistic)


def test_impossible_inputs_are_refused(graph: Graph) -> None:
    models = clustered_models(graph, seed=7)
    with pytest.raises(
        InputError, match=r"^num_permutations must be a whole number of at least 1, got num_permutations=0$"
    ):
        permutation_test(GAUSSIAN, models, "shadow-frequency", num_permutations=0)
    with pytest.raises(InputError, match=r"^seed must be"):
        permutation_test(GAUSSIAN, models, "shadow-frequency", seed=-1)
    with pytest.raises(InputError, match=r"^there must be at least 2 models"):
        permutation_test(GAUSSIAN, make_models([[1]], [[0.0]]), [0.5])


def test_p_value_counts_the_real_one() -> None:
    counts = ErrorCounts.from_arrays(5, 5, 1, 1, 0.5)
    test = PermutationTest(0.5, np.array([0.4, 0.5, 0.6, 0.1]), counts, (counts,) * 4, "weak")
    assert test.p_value == pytest.approx(3 / 5)


def test_nodes_of_all_models_or_of_none_do_not_count() -> None:
    """An attack of one's own may score a node that is in no sample; it has no rate of false negatives."""
    counts = ErrorCounts.from_arrays(
        num_out=[10, 20, 0], num_in=[10, 0, 20], false_positives=[1, 3, 0], false_negatives=[2, 0, 5], prior_prob=0.5
    )
    assert mean_distance_from_guessing(counts) == pytest.approx(0.7)
    assert mean_distance_from_guessing(counts.take([1, 2])) == 0.0


def test_nodes_without_models_on_a_side_have_no_rate() -> None:
    """An attack may score them all the same."""
    members = random_memberships(20, 6, seed=9)
    members[:, 2] = False
    models = make_models(members, np.random.default_rng(9).normal(size=members.shape) + members)
    test = permutation_test(Base(), models, np.full(6, 0.4), num_permutations=4)
    assert np.isfinite([test.statistic, *test.null_statistics]).all()
    without = permutation_test(Base(), models, np.full(6, 0.4), num_permutations=4, targets=[0, 1, 3, 4, 5])
    assert test.statistic == without.statistic
