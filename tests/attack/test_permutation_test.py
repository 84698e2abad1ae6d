"""The permutation test: how often it finds leakage where there is none, and that it finds some where there is."""

import numpy as np
import pytest
from scipy.stats import binom, rankdata
from slow_attack import GAUSSIAN, QUERY, make_models, random_memberships

from bmpaudit import datasets
from bmpaudit.attack import Base, Evidence, PermutationTest, Weak, challenge, permutation_test
from bmpaudit.graph.graph import Graph
from bmpaudit.samplers import Snowball, draw_memberships
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import Purpose, stream

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
    assert str(test).startswith("leakage found (p = 0.05): the AUC is 0.")
    assert test.statistic > 0.7 > 0.6 > test.null_statistics.max()


def test_fewer_than_19_shuffles_find_nothing(graph: Graph) -> None:
    """Without leakage the real statistic is the largest of 5 in one of 5 audits."""
    test = permutation_test(GAUSSIAN, clustered_models(graph, seed=1, leak=2.0), "shadow-frequency", num_permutations=4)
    assert test.p_value == 1 / 5
    assert not test.is_leakage_found


def test_a_tie_is_not_leakage() -> None:
    members = np.random.default_rng(0).random((20, 5)) < 0.5
    test = permutation_test(GAUSSIAN, make_models(members, np.zeros(members.shape)), np.full(5, 0.5))
    assert test.statistic == 0.5  # equal statistics
    assert not test.is_leakage_found
    assert test.p_value == 1.0
    assert str(test).startswith("no leakage found")


def test_whole_rows_are_permuted(graph: Graph) -> None:
    models = clustered_models(graph, seed=3, leak=1.0)
    test = permutation_test(GAUSSIAN, models, "shadow-frequency", seed=7, num_permutations=3)
    for trial in range(3):
        order = stream(7, trial, Purpose.PERMUTATION_TEST).permutation(NUM_MODELS)
        permuted = make_models(models.memberships[order], models.statistics[QUERY])
        assert test.null_statistics[trial] == pytest.approx(slow_auc(permuted), abs=1e-12)
    assert test.statistic == pytest.approx(slow_auc(models), abs=1e-12)


def slow_auc(models: Evidence) -> float:
    """Of log-likelihood ratios: priors do not enter."""
    scores = challenge(GAUSSIAN, models, "shadow-frequency", {"weak": Weak()}, with_scores=True).scores
    assert scores is not None
    ranks = rankdata(scores.log_likelihood_ratio.ravel())
    members = scores.memberships.ravel()
    num_in, num_out = members.sum(), (~members).sum()
    return float((ranks[members].sum() - num_in * (num_in + 1) / 2) / (num_in * num_out))


def test_more_permutations_keep_the_first_ones(graph: Graph) -> None:
    models = clustered_models(graph, seed=4)
    few = permutation_test(GAUSSIAN, models, "shadow-frequency", num_permutations=2)
    more = permutation_test(GAUSSIAN, models, "shadow-frequency", num_permutations=4, num_threads=1)
    assert np.array_equal(few.null_statistics, more.null_statistics[:2])


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
    test = PermutationTest(0.5, np.array([0.4, 0.5, 0.6, 0.1]))
    assert test.p_value == pytest.approx(3 / 5)


def test_nodes_without_models_on_a_side_are_no_trouble() -> None:
    """An attack may score them all the same."""
    members = random_memberships(20, 6, seed=9)
    members[:, 2] = False
    models = make_models(members, np.random.default_rng(9).normal(size=members.shape) + members)
    test = permutation_test(Base(), models, np.full(6, 0.4), num_permutations=4)
    assert np.isfinite([test.statistic, *test.null_statistics]).all()
