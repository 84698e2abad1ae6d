"""The two methods on counts of real, if small, graph neural networks: the same posterior up to Monte Carlo error."""

import numpy as np
import pytest
from quantile_errors import mcse_quantile

from bmpaudit import datasets
from bmpaudit.attack import ErrorCounts, Evidence, node_mia
from bmpaudit.estimation import estimate
from bmpaudit.models import GCN, Training
from bmpaudit.samplers import Snowball
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, train_shadows

PROBS = (0.05, 0.25, 0.5, 0.75, 0.95)
# A normal deviate lies beyond with probability 6e-5; there are 30 comparisons.
STANDARD_ERRORS = 4


@pytest.fixture(scope="module")
def all_counts(tmp_path_factory: pytest.TempPathFactory) -> ErrorCounts:
    graph, sampler = datasets.load("demo"), Snowball(0.25)
    plan = ShadowPlan(sampler, GCN(), Training(epochs=60), seed=4)
    runs = train_shadows(graph, plan, 80, tmp_path_factory.mktemp("shadows"))
    return node_mia(Evidence.of_runs(runs, "clean", ["full"]), prior_probabilities(graph, sampler).prob, rule="weak")


def some_nodes(counts: ErrorCounts, num_nodes: int) -> ErrorCounts:
    """Nodes from the whole graph that were in and out of enough models; with all of them Algorithm 3 would not mix."""
    eligible = np.flatnonzero((counts.num_in >= 15) & (counts.num_out >= 15))
    rows = eligible[np.linspace(0, len(eligible) - 1, num_nodes).astype(int)]
    return ErrorCounts(
        node=counts.node[rows],
        num_out=counts.num_out[rows],
        num_in=counts.num_in[rows],
        false_positives=counts.false_positives[rows],
        false_negatives=counts.false_negatives[rows],
        prior_prob=counts.prior_prob[rows],
    )


@pytest.mark.parametrize(
    ("definition", "num_nodes"), [("mp", 12), ("bmp-r", 12), ("bmp-l", 12), ("bmp-s", 12), ("bmp", 4)]
)
def test_same_posterior(all_counts: ErrorCounts, definition: str, num_nodes: int) -> None:
    counts = some_nodes(all_counts, num_nodes)
    assert len(np.unique(counts.prior_prob)) == num_nodes
    exact, chains = estimate(counts, definition), estimate(counts, definition, method="mhaar", seed=1)
    run = chains.run
    assert run is not None
    assert run.has_converged, run.status
    for name in exact.marginals:
        errors = np.array([mcse_quantile(run.chains(name), prob) for prob in PROBS])
        assert (errors < 0.2).all()
        apart = np.abs(chains.quantile(PROBS, name) - exact.quantile(PROBS, name))
        assert (apart < STANDARD_ERRORS * errors).all(), (name, apart / errors)
        assert abs(chains.mean(name) - exact.mean(name)) < STANDARD_ERRORS * run.diagnostics[name].mcse_mean
