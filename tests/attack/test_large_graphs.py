"""Models that do not fit into memory: the same results, in the memory of a block."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit import datasets
from bmpaudit.attack import RMIA, Base, Evidence, Gaussian, Student, challenge, permutation_test
from bmpaudit.attack.rules import Strong, Weak
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Attack
from bmpaudit.io.codec import to_arrays
from bmpaudit.models import GCN, Training
from bmpaudit.proof import expose, prove
from bmpaudit.samplers import Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, ShadowRuns, ShadowStore, train_shadows
from bmpaudit.util import matrices
from bmpaudit.util.matrices import LazyMatrix

PLAN = ShadowPlan(Uniform(0.25), GCN(hidden=4), Training(epochs=20))
NUM_MODELS = 40
ATTACKS: list[Attack] = [Student(), Gaussian(), RMIA(), Base()]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return datasets.load("demo")


@pytest.fixture(scope="module")
def folder(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    train_shadows(graph, PLAN, NUM_MODELS, folder)
    return folder


def read(folder: Path, graph: Graph) -> ShadowRuns:
    return ShadowStore(folder, graph, PLAN, read_only=True).read()


def results(attack: Attack, runs: ShadowRuns, graph: Graph) -> dict[str, Any]:
    """Everything that is worked out about models, as arrays."""
    prior = prior_probabilities(graph, PLAN.sampler).prob
    models = Evidence.of_runs(runs, "clean", ["full", "none"] if attack.fuses_queries else ["none"], graph)
    made = challenge(attack, models, prior, {"weak": Weak(), "strong": Strong()}, with_scores=True)
    assert made.scores is not None
    return {
        "scores": made.scores.log_likelihood_ratio,
        "errors": np.array([made.errors[rule] for rule in ("weak", "strong")]),
        **{f"test {name}": values for name, values in to_arrays(permutation_test(models)).items()},
        **{f"exposure {name}": values for name, values in to_arrays(expose(attack, models, prior)).items()},
        **{f"proof {name}": values for name, values in to_arrays(prove(attack, models, prior)).items()},
    }


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: type(attack).__name__)
def test_what_is_not_in_memory_gives_the_same(
    attack: Attack, folder: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = read(folder, graph)
    assert isinstance(runs.memberships, np.ndarray)
    expected = results(attack, runs, graph)
    monkeypatch.setattr(matrices, "MOST_IN_MEMORY", 1_000)
    monkeypatch.setattr(matrices, "MAX_BLOCK", NUM_MODELS * 300)
    lazy = read(folder, graph)
    assert isinstance(lazy.memberships, LazyMatrix)
    assert all(isinstance(table, LazyMatrix) for table in lazy.statistics.values())
    found = results(attack, lazy, graph)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if np.asarray(values).dtype.kind in "fiub":
            np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_means_over_neighbours_are_worked_out_once_for_all_steps(folder: Path, graph: Graph) -> None:
    runs = read(folder, graph)
    models = Evidence.of_runs(runs, "clean", ["full", "none"], graph)
    means = models.neighbour_means("full", 1)
    again = Evidence.of_runs(runs, "clean", ["full"], graph)
    assert np.shares_memory(again.neighbour_means("full", 1), means)
    rows = np.array([7, 3, 30])
    np.testing.assert_array_equal(models.take(rows).neighbour_means("full", 1), np.asarray(means)[rows])
    np.testing.assert_array_equal(
        models.take(rows).take(slice(1, 3)).neighbour_means("full", 1), np.asarray(means)[[3, 30]]
    )
    other = dataclasses.replace(graph)
    assert not np.shares_memory(Evidence.of_runs(runs, "clean", ["full"], other).neighbour_means("full", 1), means)
    noisy = Evidence.of_runs(runs, "noisy", ["full"], graph)
    assert not np.array_equal(noisy.neighbour_means("full", 1), means)


def test_what_is_kept_is_forgotten_when_it_is_no_longer_right(folder: Path, graph: Graph) -> None:
    models = Evidence.of_runs(read(folder, graph), "clean", ["full", "none"], graph)
    for scope in ("models", "targets", "samples"):
        assert models.kept(scope, "key", lambda: 1) == models.kept(scope, "key", lambda: 2) == 1
    changed = {
        "about": models.about([1, 2]),
        "take": models.take(slice(3)),
        "asked": models.asked("full"),
        "without_memberships": models.without_memberships(),
    }
    still_right = {
        "about": {"models", "samples"},
        "take": set(),
        "asked": set(),
        "without_memberships": {"models", "targets"},
    }
    for name, evidence in changed.items():
        for scope in ("models", "targets", "samples"):
            expected = 1 if scope in still_right[name] else 2
            assert evidence.kept(scope, "key", lambda: 2) == expected, (name, scope)  # type: ignore[arg-type]


IN_LITTLE_MEMORY = """
import sys
from pathlib import Path

sys.path.insert(0, {benchmarks!r})
import scale
from bmpaudit.util import matrices
from bmpaudit.auditing import stages as attack_step
from bmpaudit.proof import calibration, expose
from bmpaudit.shadow import store as array_group

array_group.NODES_PER_CHUNK = 2**11
matrices.MOST_IN_MEMORY, matrices.MAX_BLOCK, matrices.NODES_PER_CHUNK = 2**20, 2**20, 2**11
attack_step.MOST_SCORES = 2**18
calibration.MAX_CHALLENGES = sys.modules[expose.__module__].MAX_CHALLENGES = 2**18
scale.run(Path(sys.argv[1]) / "small", 500, 100, scale.STEPS[:3])  # imports, and whatever is made only once
before = scale.memory()
results = scale.run(Path(sys.argv[1]) / "large", {nodes}, {models}, scale.STEPS[:3])
print(max(peak for *_, peak in results.values()) - before)
"""


def test_memory_is_that_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array of all models and nodes in double precision would not fit into what the steps may take more."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("memory is measured on Linux")
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(benchmarks)
    monkeypatch.setattr("bmpaudit.shadow.store.NODES_PER_CHUNK", 2**11)
    import scale

    num_nodes, num_models = 40_000, 500
    for name, nodes, models in (("small", 500, 100), ("large", num_nodes, num_models)):
        scale.write_models(tmp_path / name, scale.make_graph(nodes), scale.make_plan(models))
    code = IN_LITTLE_MEMORY.format(benchmarks=str(benchmarks), nodes=num_nodes, models=num_models)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert 1e9 * float(done.stdout) < 8 * num_nodes * num_models
