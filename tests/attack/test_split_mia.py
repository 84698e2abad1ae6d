"""Algorithm 4: disjoint models, against a direct loop."""

from dataclasses import replace

import numpy as np
import pytest
from slow_attack import QUERY, Fit, is_clear, make_models, random_memberships, scores_of, slow_counts, slow_split_scores

from bmpaudit.attack import SHADOW_FREQUENCY, Evidence, node_mia, split_models
from bmpaudit.util.errors import InputError

PRIOR = np.linspace(0.1, 0.9, 140)


def independent_models(num_models: int, seed: int) -> Evidence:
    rng, members = np.random.default_rng(seed), random_memberships(num_models, 140, seed)
    statistics = rng.normal(size=members.shape) + members
    statistics[:, 0] = np.where(members[:, 0], 1.0, 0.0)  # no spread
    return make_models(members, statistics)


@pytest.mark.parametrize(
    "fit", [Fit(), Fit(pooled_variance=True), Fit(min_sigma=0.7), Fit(pooled_variance=True, min_sigma=1.2)]
)
def test_same_as_a_direct_loop(fit: Fit) -> None:
    fitting, challenged = independent_models(40, seed=1), independent_models(25, seed=2)
    expected = slow_split_scores(fitting, challenged, fit)
    scores = scores_of(challenged, PRIOR, fit.attack(), fitting=fitting)
    np.testing.assert_allclose(scores.log_likelihood_ratio, expected, rtol=1e-10, atol=1e-10)
    strong = expected + np.log(PRIOR / (1 - PRIOR))
    for rule, by_rule in {"weak": expected, "strong": strong}.items():
        assert is_clear(by_rule).all()
        counts = node_mia(challenged, PRIOR, fitting=fitting, attack=fit.attack(), rule=rule)
        false_positives, false_negatives = slow_counts(by_rule, challenged.memberships)
        assert np.array_equal(counts.false_positives, false_positives)
        assert np.array_equal(counts.false_negatives, false_negatives)
        assert np.array_equal(counts.num_in, challenged.memberships.sum(axis=0))
        assert np.array_equal(counts.num_out, (~challenged.memberships).sum(axis=0))


def test_the_prior_comes_from_the_fitting_models() -> None:
    fitting, challenged = independent_models(40, seed=1), independent_models(25, seed=2)
    counts = node_mia(challenged, SHADOW_FREQUENCY, fitting=fitting)
    assert np.array_equal(counts.prior_prob, fitting.memberships.mean(axis=0))
    assert np.array_equal(node_mia(challenged, PRIOR, fitting=fitting).prior_prob, PRIOR)


def test_min_models_counts_the_fitting_models() -> None:
    members = np.arange(10)[:, None] < np.array([1, 2, 8, 9])
    fitting = make_models(members, np.random.default_rng(3).normal(size=members.shape))
    challenged = make_models(np.zeros((3, 4)), np.zeros((3, 4)))
    counts = node_mia(challenged, SHADOW_FREQUENCY, fitting=fitting)
    assert counts.node.tolist() == [1, 2]
    assert [left.reason for left in counts.not_auditable] == [
        "in the samples of 1 of 10 models, at least 2 are needed",
        "missing from the samples of 1 of 10 models, at least 2 are needed",
    ]
    assert counts.num_in.tolist() == [0, 0]  # a challenged set without the node is as it is
    assert counts.num_out.tolist() == [3, 3]


def test_models_are_divided_by_their_order() -> None:
    models = replace(independent_models(9, seed=4), indices=np.array([0, 1, 2, 3, 5, 6, 8, 9, 10]))
    halves = split_models(models)
    assert halves.fitting.indices.tolist() == [0, 1, 2, 3]
    assert halves.challenged.indices.tolist() == [5, 6, 8, 9, 10]
    parts = [part.memberships for part in (halves.fitting, halves.challenged)]
    np.testing.assert_array_equal(np.concatenate(parts), models.memberships)
    assert np.array_equal(halves.challenged.statistics[QUERY], models.statistics[QUERY][4:])
    assert split_models(models, num_fitting=8).challenged.num_models == 1


@pytest.mark.parametrize("num_fitting", [0, -1, 9, 10, 2.5])
def test_neither_part_may_be_empty(num_fitting: int) -> None:
    with pytest.raises(InputError, match=f"^num_fitting must be .*, got num_fitting={num_fitting}$"):
        split_models(independent_models(9, seed=4), num_fitting)


def test_a_model_may_not_be_on_both_sides() -> None:
    models = independent_models(20, seed=5)
    halves = split_models(models)
    with pytest.raises(InputError, match=r"^model 10 is among both the fitting and the challenged models$"):
        node_mia(halves.challenged, PRIOR, fitting=models)
    # The same numbers under another plan are other models.
    node_mia(halves.challenged, PRIOR, fitting=independent_models(20, seed=6))


def test_graphs_must_be_the_same() -> None:
    other = make_models(random_memberships(20, 5, seed=7), np.zeros((20, 5)))
    with pytest.raises(InputError, match=r"^fitting models must be of the same graph: 140 nodes, got 5$"):
        node_mia(independent_models(9, seed=4), PRIOR, fitting=other)


def test_queries_must_be_the_same() -> None:
    models = independent_models(9, seed=4)
    other = Evidence({"none": models.statistics[QUERY]}, models.memberships, models.indices + 9)
    with pytest.raises(InputError, match=r"^fitting models must have the same queries: full, got none$"):
        node_mia(models, PRIOR, fitting=other)
