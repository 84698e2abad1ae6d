"""The null control: how often it finds leakage where there is none, and that it finds some where there is."""

import numpy as np
import pytest
from scipy.stats import binom
from slow_attack import VIEW, make_runs

from bmpaudit import Graph, InputError, datasets
from bmpaudit.attack import AttackSettings, ErrorCounts, NullControl, node_mia, null_control
from bmpaudit.samplers import Snowball, draw_memberships
from bmpaudit.shadow import ShadowRuns
from bmpaudit.streams import Purpose, stream

NUM_MODELS, NUM_AUDITS = 40, 200


@pytest.fixture(scope="module")
def graph() -> Graph:
    return datasets.load("demo")


def clustered_runs(graph: Graph, seed: int, leak: float = 0.0) -> ShadowRuns:
    """Snowball samples, and statistics that go up and down together over the nodes of a model, as real ones do."""
    rng, members = np.random.default_rng(seed), draw_memberships(graph, Snowball(0.25), NUM_MODELS, seed)
    common = rng.normal(size=(NUM_MODELS, 3)) @ rng.normal(size=(3, graph.num_nodes))
    return make_runs(members, rng.normal(size=members.shape) + common + leak * members)


def test_false_alarms_come_at_the_nominal_rate(graph: Graph) -> None:
    targets = np.arange(0, graph.num_nodes, 5)
    alarms = 0
    for audit in range(NUM_AUDITS):
        runs = clustered_runs(graph, seed=audit)
        control = null_control(runs, VIEW, "shadow-frequency", seed=audit, targets=targets)
        alarms += control.leakage_found
        assert control.leakage_found == (control.p_value == 1 / 20)
    # The real statistic is one of 20 exchangeable ones; a test of level 1/1000 on the number of alarms.
    low, high = binom.ppf([0.0005, 0.9995], NUM_AUDITS, 1 / 20)
    assert low <= alarms <= high


def test_leakage_is_found_where_there_is_some(graph: Graph) -> None:
    control = null_control(clustered_runs(graph, seed=1, leak=2.0), VIEW, "shadow-frequency")
    assert control.leakage_found
    assert control.p_value == 1 / 20
    assert str(control).startswith("leakage found: mean |A/n0 + B/n1 - 1| is ")
    assert control.statistic > 2 * control.null_statistics.max()


def test_a_tie_is_no_finding() -> None:
    members = np.random.default_rng(0).random((20, 5)) < 0.5
    control = null_control(make_runs(members, np.zeros(members.shape)), VIEW, np.full(5, 0.5))
    assert control.statistic == 0.0  # equal statistics: always "non-member"
    assert not control.leakage_found
    assert control.p_value == 1.0
    assert str(control).startswith("no leakage found")


def test_whole_rows_are_permuted(graph: Graph) -> None:
    runs = clustered_runs(graph, seed=3, leak=1.0)
    control = null_control(runs, VIEW, "shadow-frequency", seed=7, num_permutations=3)
    for trial in range(3):
        order = stream(7, trial, Purpose.NULL_CONTROL).permutation(NUM_MODELS)
        permuted = make_runs(runs.memberships[order], runs.statistics[VIEW])
        expected = node_mia(permuted, VIEW, "shadow-frequency", decision="weak")
        counts = control.null_counts[trial]
        assert np.array_equal(counts.false_positives, expected.false_positives)
        assert np.array_equal(counts.false_negatives, expected.false_negatives)
        assert np.array_equal(counts.num_in, control.counts.num_in)  # priors and sides stay as they are
        distance = np.abs(counts.false_positives / counts.num_out + counts.false_negatives / counts.num_in - 1)
        assert control.null_statistics[trial] == pytest.approx(distance.mean())


def test_first_permutations_stay_when_more_are_asked_for(graph: Graph) -> None:
    runs = clustered_runs(graph, seed=4)
    few = null_control(runs, VIEW, "shadow-frequency", num_permutations=2)
    more = null_control(runs, VIEW, "shadow-frequency", num_permutations=4, num_threads=1)
    assert np.array_equal(few.null_statistics, more.null_statistics[:2])


def test_strong_counts_on_request_and_the_statistic_from_weak_ones(graph: Graph) -> None:
    runs = clustered_runs(graph, seed=5, leak=1.0)
    weak = null_control(runs, VIEW, "shadow-frequency", num_permutations=2)
    strong = null_control(runs, VIEW, "shadow-frequency", num_permutations=2, decision="strong")
    assert strong.statistic == weak.statistic
    assert np.array_equal(strong.counts.false_positives, node_mia(runs, VIEW, "shadow-frequency").false_positives)
    assert strong.null_counts[0].false_positives.sum() < weak.null_counts[0].false_positives.sum()


def test_nodes_that_cannot_be_attacked_do_not_count(graph: Graph) -> None:
    runs = clustered_runs(graph, seed=6)
    kept = null_control(
        runs, VIEW, "shadow-frequency", num_permutations=1, settings=AttackSettings(unfittable="non-member")
    )
    left_out = null_control(runs, VIEW, "shadow-frequency", num_permutations=1)
    assert left_out.counts.not_auditable
    assert kept.statistic == left_out.statistic
    assert np.isfinite(kept.statistic)


def test_what_cannot_be_is_refused(graph: Graph) -> None:
    runs = clustered_runs(graph, seed=7)
    with pytest.raises(
        InputError, match=r"^num_permutations must be a whole number of at least 1, got num_permutations=0$"
    ):
        null_control(runs, VIEW, "shadow-frequency", num_permutations=0)
    with pytest.raises(InputError, match=r"^seed must be"):
        null_control(runs, VIEW, "shadow-frequency", seed=-1)
    with pytest.raises(InputError, match=r"^there must be at least 2 models"):
        null_control(make_runs([[1]], [[0.0]]), VIEW, [0.5])


def test_p_value_counts_the_real_one() -> None:
    counts = ErrorCounts.from_arrays(5, 5, 1, 1, 0.5)
    control = NullControl(0.5, np.array([0.4, 0.5, 0.6, 0.1]), counts, (counts,) * 4, "weak")
    assert control.p_value == pytest.approx(3 / 5)
