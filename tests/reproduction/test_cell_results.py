"""Results about one cell are those of the estimator."""

from pathlib import Path

import pytest
from reproduction import run as cell_results
from reproduction.experiments import COUNTINGS, DEFINITIONS, VARIANTS, Configuration
from reproduction.run import Run, load_counts, train_and_attack

from bmpaudit.auditing import Runtime
from bmpaudit.estimation import estimate

RUNTIME = Runtime(num_threads=1, quiet=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(Configuration("demo", 0.25, "snowball", "gcn"), 0, 12, Path(tmp_path_factory.mktemp("runs")))
    train_and_attack([run], RUNTIME)
    return run


@pytest.mark.parametrize("counting", COUNTINGS)
@pytest.mark.parametrize("definition", DEFINITIONS)
def test_posterior_of_a_cell(run: Run, counting: str, definition: str) -> None:
    counts = load_counts(run).error_counts(VARIANTS[0], counting)
    cell = cell_results.cell_posterior(counts, run.plan(counting), RUNTIME, definition=definition)
    posterior = estimate(counts, definition)
    assert [cell[name] for name in ("p5", "p50", "p95")] == posterior.quantile([0.05, 0.5, 0.95]).tolist()
    assert cell["mean"] == posterior.mean()
    assert cell["floor"] == (posterior.floor.right if definition == "bmp-r" else 0)
    assert cell["num_not_auditable"] == len(counts.not_auditable)
    trials = counts.num_out.sum() + counts.num_in.sum()
    errors = counts.false_positives.sum() + counts.false_negatives.sum()
    assert cell["accuracy"] == pytest.approx(1 - errors / trials)


def test_nodes(run: Run) -> None:
    counts, plan = load_counts(run).error_counts(VARIANTS[0], "ours"), run.plan("ours")
    deciding = cell_results.deciding_nodes(counts, plan, RUNTIME, definition="bmp-r")
    assert deciding["node"] in counts.node
    without = counts.take(counts.node != deciding["node"])
    assert deciding["p50_without_1"] == pytest.approx(float(estimate(without, "bmp-r").quantile(0.5)), abs=1e-12)
    nodes = cell_results.node_summary(counts, plan, RUNTIME, keep_nodes=True)
    assert len(nodes["nodes"]["prior_prob"]) == nodes["all_num"] == counts.num_nodes
    assert nodes["unflagged_num"] == counts.num_nodes - counts.is_constant.sum()
    unflagged = cell_results.unflagged_posterior(counts, plan, RUNTIME, definition="bmp-r")
    expected = estimate(counts.take(~counts.is_constant), "bmp-r")
    assert unflagged == {"num_nodes": nodes["unflagged_num"], "p50": float(expected.quantile(0.5))}
