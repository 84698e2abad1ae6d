"""The attack on real, if small, graph neural networks."""

import numpy as np
import pytest
from slow_attack import Fit, is_clear, scores_of, slow_counts, slow_score

from bmpaudit import datasets
from bmpaudit.attack import (
    ErrorCounts,
    Evidence,
    attack_performance,
    node_mia,
    permutation_test,
    split_models,
)
from bmpaudit.graph.graph import Graph
from bmpaudit.models import GCN, Training
from bmpaudit.samplers import Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, ShadowRuns, train_shadows

SAMPLER = Uniform(0.5)
QUERIES = ("full", "none")
NUM_MODELS = 40


def hit_rate(counts: ErrorCounts) -> float:
    """The share of members that are taken for members, mean over nodes."""
    return float((1 - counts.false_negatives / counts.num_in).mean())


@pytest.fixture(scope="module")
def graph() -> Graph:
    return datasets.load("demo")


@pytest.fixture(scope="module")
def runs(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> ShadowRuns:
    plan = ShadowPlan(SAMPLER, GCN(), Training(epochs=60), seed=3)
    return train_shadows(graph, plan, NUM_MODELS, tmp_path_factory.mktemp("shadows"))


@pytest.fixture(scope="module")
def prior(graph: Graph) -> np.ndarray:
    return prior_probabilities(graph, SAMPLER).prob


@pytest.mark.parametrize("query", QUERIES)
def test_members_are_told_apart(runs: ShadowRuns, prior: np.ndarray, query: str) -> None:
    models = Evidence.of_runs(runs, "clean", [query])
    # What does not depend on memberships would be the first of 200 with probability 1/200, however dependent nodes are.
    assert permutation_test(models).p_value == 1 / 200
    assert hit_rate(node_mia(models, prior)) > 0.5
    assert attack_performance(scores_of(models, prior)).auc > 0.5


def test_disjoint_models_tell_members_apart_too(runs: ShadowRuns, prior: np.ndarray) -> None:
    halves = split_models(Evidence.of_runs(runs, "clean", ["none"]))
    counts = node_mia(halves.challenged, prior, fitting=halves.fitting)
    assert hit_rate(counts) > 0.5
    assert counts.accuracy.mean() > 0.5
    assert (counts.num_in + counts.num_out == NUM_MODELS // 2).all()


def test_same_as_refitting_on_some_nodes(runs: ShadowRuns, prior: np.ndarray) -> None:
    models, targets = Evidence.of_runs(runs, "clean", ["full"]), [0, 500, 999]
    statistics, members = models.statistics["full"][:, targets].astype(np.float64), models.memberships[:, targets]
    scores = np.empty(members.shape)
    for column in range(len(targets)):
        for model in range(NUM_MODELS):
            z, m = np.delete(statistics[:, column], model), np.delete(members[:, column], model)
            scores[model, column] = slow_score(statistics[model, column], z[~m], z[m], Fit())
    assert is_clear(scores).all()
    counts = node_mia(models, prior, targets=targets)
    false_positives, false_negatives = slow_counts(scores, members)
    assert np.array_equal(counts.false_positives, false_positives)
    assert np.array_equal(counts.false_negatives, false_negatives)
