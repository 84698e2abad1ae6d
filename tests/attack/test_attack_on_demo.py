"""The attack on real, if small, graph neural networks."""

import numpy as np
import pytest
from slow_attack import Rule, is_clear, slow_counts, slow_score

from bmpaudit import Graph, datasets, prior_probabilities
from bmpaudit.attack import (
    ErrorCounts,
    attack_performance,
    challenge_scores,
    node_mia,
    null_control,
    split_mia,
    split_runs,
)
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import GCN, ShadowPlan, ShadowRuns, Training, train_shadows

SAMPLER = Uniform(0.5)
VIEWS = ("full_clean", "none_clean")
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


@pytest.mark.parametrize("view", VIEWS)
def test_members_are_told_apart(runs: ShadowRuns, prior: np.ndarray, view: str) -> None:
    # A blind attack would be the best of 100 exchangeable ones with probability 1/100, however dependent nodes are.
    control = null_control(runs, view, prior, num_permutations=99, decision="strong")
    assert control.leakage_found
    assert control.counts.accuracy.mean() > max(counts.accuracy.mean() for counts in control.null_counts)
    assert hit_rate(control.counts) > max(hit_rate(counts) for counts in control.null_counts)
    assert hit_rate(control.counts) > 0.5
    assert attack_performance(challenge_scores(runs, view, prior)).auc > 0.5


def test_disjoint_models_tell_members_apart_too(runs: ShadowRuns, prior: np.ndarray) -> None:
    halves = split_runs(runs)
    counts = split_mia(halves.fitting, halves.challenged, "none_clean", prior)
    assert hit_rate(counts) > 0.5
    assert counts.accuracy.mean() > 0.5
    assert (counts.num_in + counts.num_out == NUM_MODELS // 2).all()


def test_same_as_refitting_on_some_nodes(runs: ShadowRuns, prior: np.ndarray) -> None:
    targets = [0, 500, 999]
    statistics, members = runs.statistics["full_clean"][:, targets].astype(np.float64), runs.memberships[:, targets]
    scores = np.empty(members.shape)
    for column in range(len(targets)):
        for model in range(NUM_MODELS):
            z, m = np.delete(statistics[:, column], model), np.delete(members[:, column], model)
            scores[model, column] = slow_score(statistics[model, column], z[~m], z[m], Rule())
    assert is_clear(scores).all()
    counts = node_mia(runs, "full_clean", prior, targets=targets)
    false_positives, false_negatives = slow_counts(scores, members)
    assert np.array_equal(counts.false_positives, false_positives)
    assert np.array_equal(counts.false_negatives, false_negatives)
