"""What the native engine promises: dropout, the same bytes anywhere, nothing seen beyond the sample, failures."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers import fill, random_graph

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.models import NativeModel, Training
from bmpaudit.models.gnn import APPNP, GAT, GCN, GIN, MLP, SAGE, SGC, DropoutPlace
from bmpaudit.releases import Clean, NoEdges
from bmpaudit.samplers import Bernoulli, Uniform, draw_memberships
from bmpaudit.shadow import ModelState, ShadowPlan
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.native import NativeEngine, make_kernel
from bmpaudit.shadow.engines.torch import TorchEngine


@pytest.fixture(scope="module")
def cora() -> Graph:
    return datasets.load("cora")


@pytest.mark.parametrize("dropout", [0.5, 0.25, 0.9, 0.1])
@pytest.mark.parametrize("place", ["input", "hidden"])
def test_dropout_drops_its_share_and_scales_the_rest(place: DropoutPlace, dropout: float) -> None:
    """With a feature of its own for each node, the first step of SGD shows every mask: what was dropped stays."""
    num_nodes, hidden = 400, 16
    graph = Graph.from_edges([(0, 1)], np.eye(num_nodes), [0, 1] * (num_nodes // 2))
    model = MLP(hidden=hidden, dropout=dropout, dropout_on=(place,), activation="elu")
    kernel = make_kernel(graph, model, Training(epochs=1, learning_rate=1.0, weight_decay=0.0, optimizer="sgd"))
    before = kernel.initial_parameters(0, 0)
    after = kernel.trained_parameters(before, np.ones(num_nodes, dtype=np.uint8))
    size = num_nodes * hidden
    weight, moved = before[:size].reshape(hidden, -1).T, (after - before)[:size].reshape(hidden, -1).T
    last = before[size + hidden : size + hidden + 2 * hidden].reshape(2, hidden)

    keep_prob = 1 - dropout  # the coins have it to 32 binary digits
    kept = moved != 0
    coins = kept if place == "hidden" else kept.any(axis=1)
    expected_kept = keep_prob * coins.size
    assert abs(coins.sum() - expected_kept) < 5 * np.sqrt(coins.size * dropout * (1 - dropout))
    scale = kept / keep_prob
    inputs, units = (np.any(kept, axis=1) / keep_prob, 1.0) if place == "input" else (1.0, scale)
    z = weight * np.reshape(inputs, (-1, 1))
    activation, slope = np.where(z > 0, z, np.expm1(z)), np.where(z > 0, 1.0, np.exp(z))
    logits = activation * units @ last.T
    error = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) - np.eye(2)[graph.labels]
    gradient = (error / num_nodes) @ last * slope * units * np.reshape(inputs, (-1, 1))
    assert moved == pytest.approx(-gradient, abs=1e-7)


@pytest.mark.parametrize("dropout", [0.5, 0.2])
@pytest.mark.parametrize("num_features", [400, 2_000], ids=["dense", "sparse"])
def test_dropout_of_real_features_keeps_their_values(num_features: int, dropout: float) -> None:
    """A sample of one node: the first step of SGD shows which of its features were kept, and how they were scaled."""
    rng = np.random.default_rng(0)
    features = np.zeros((2, num_features), dtype=np.float32)
    features[:, ::5] = rng.normal(size=(2, len(range(0, num_features, 5))))  # a fifth: stored sparse
    if num_features == 400:
        features[:] = rng.normal(size=features.shape)
    graph = Graph.from_edges([(0, 1)], features, [1, 0])
    assert isinstance(graph.features, np.ndarray) == (num_features == 400)
    model = MLP(hidden=16, dropout=dropout, dropout_on=("input",), activation="elu")
    kernel = make_kernel(graph, model, Training(epochs=1, learning_rate=1.0, weight_decay=0.0, optimizer="sgd"))
    before = kernel.initial_parameters(0, 0)
    after = kernel.trained_parameters(before, np.array([1, 0], dtype=np.uint8))
    size = num_features * 16
    weight, moved = before[:size].reshape(16, -1).T, (after - before)[:size].reshape(16, -1).T
    last = before[size + 16 : size + 48].reshape(2, 16)

    keep_prob = 1 - dropout
    kept = (moved != 0).any(axis=1)
    present = features[0] != 0
    assert not kept[~present].any()
    assert abs(kept.sum() - keep_prob * present.sum()) < 5 * np.sqrt(present.sum() * dropout * (1 - dropout))
    x = features[0] * kept / keep_prob
    z = x @ weight
    logits = np.where(z > 0, z, np.expm1(z)) @ last.T
    error = np.exp(logits) / np.exp(logits).sum() - np.eye(2)[1]
    gradient = np.outer(x, (error @ last) * np.where(z > 0, 1.0, np.exp(z)))
    assert moved == pytest.approx(-gradient, abs=2e-6)


@pytest.mark.parametrize(
    "model",
    [GCN(), GAT(), MLP(dropout_on=("input", "hidden")), SAGE(), SAGE(aggregation="max"), SGC(), APPNP(), GIN()],
    ids=str,
)
def test_a_model_is_the_same_bytes_on_any_threads_in_any_order(model: NativeModel) -> None:
    graph = datasets.load("demo")
    plan = ShadowPlan(Uniform(0.25), model, Training(epochs=15), seed=3)
    engine = NativeEngine(graph, plan)
    one = fill(engine, graph, plan, list(range(12)), num_threads=1)
    many = fill(engine, graph, plan, list(range(12)), num_threads=5)
    assert one.statistics.tobytes() == many.statistics.tobytes()
    backwards = fill(NativeEngine(graph, plan), graph, plan, [11, 4, 0], num_threads=2)
    assert backwards.statistics.tobytes() == one.statistics[:, [11, 4, 0]].tobytes()
    assert one.statistics[0, 0].tobytes() != one.statistics[0, 1].tobytes()
    other_seed = fill(NativeEngine(graph, replace(plan, seed=4)), graph, plan, [0])
    assert other_seed.statistics[0, 0].tobytes() != one.statistics[0, 0].tobytes()


@pytest.mark.parametrize("model", [GAT(), SAGE(aggregation="max")], ids=str)
def test_only_the_induced_subgraph_is_seen(model: NativeModel, cora: Graph) -> None:
    """Features and edges outside the sample do not reach the training."""
    plan = ShadowPlan(Uniform(0.25), model, Training(epochs=5), releases=(Clean(),), queries=(NoEdges(),))
    batch = fill(NativeEngine(cora, plan), cora, plan, [0])
    member = batch.memberships[0]
    inside = member[cora.edges].all(axis=1)
    features = cora.dense_features.copy()
    features[~member] = 0.0
    stripped = Graph.from_edges(cora.edges[inside], features, cora.labels)
    again = fill(NativeEngine(stripped, plan), stripped, plan, [0])
    assert np.array_equal(batch.memberships, again.memberships)
    assert batch.statistics[0, 0, member].tobytes() == again.statistics[0, 0, member].tobytes()


def test_a_loss_that_is_not_a_number_fails_the_model_and_not_the_run() -> None:
    graph = datasets.load("demo")
    plan = ShadowPlan(Uniform(0.25), GCN(), Training(learning_rate=1e38))
    batch = fill(NativeEngine(graph, plan), graph, plan, [0, 1, 2])
    assert batch.state.tolist() == [ModelState.FAILED] * 3
    assert np.isnan(batch.statistics).all()


def test_an_empty_sample_fails_and_a_single_node_trains() -> None:
    graph = random_graph()
    plan = ShadowPlan(Bernoulli(0.02), GCN(), Training(epochs=5))
    sizes = draw_memberships(graph, plan.sampler, 40, plan.seed).sum(axis=1)
    assert 0 in sizes
    assert 1 in sizes
    batch = fill(NativeEngine(graph, plan), graph, plan, list(range(40)))
    assert (batch.state == np.where(sizes == 0, ModelState.FAILED, ModelState.TRAINED)).all()
    assert np.isfinite(batch.statistics[:, sizes > 0]).all()


def test_batch_normalisation_of_a_single_node_fails_on_both_engines() -> None:
    graph = random_graph()
    plan = ShadowPlan(lambda _graph, _rng: np.array([3]), GIN(), Training(epochs=3))
    for engine in (NativeEngine(graph, plan), TorchEngine(graph, replace(plan, engine="torch"))):
        batch = fill(engine, graph, plan, [0])
        assert batch.state.tolist() == [ModelState.FAILED]


@pytest.mark.parametrize(
    "model", [GCN(), GAT(), MLP(), SAGE(), SAGE(aggregation="max"), SGC(), APPNP(), GIN()], ids=str
)
def test_features_all_zero_and_isolated_nodes_are_no_problem(model: NativeModel) -> None:
    graph = random_graph()
    blank = Graph.from_edges(graph.edges, np.zeros((graph.num_nodes, 5)), graph.labels)
    plan = ShadowPlan(Uniform(0.5), model, Training(epochs=5))
    batch = fill(NativeEngine(blank, plan), blank, plan, [0, 1])
    assert np.isfinite(batch.statistics).all()


def test_a_class_that_no_sample_holds_still_has_a_margin() -> None:
    labels = [0, 1] * 10 + [2]
    graph = Graph.from_edges([(0, 1), (19, 20)], np.eye(21), labels)

    def without_the_last(graph: Graph, rng: np.random.Generator) -> np.ndarray:
        return np.sort(rng.choice(graph.num_nodes - 1, 10, replace=False))

    plan = ShadowPlan(without_the_last, GCN(), Training(epochs=10))
    batch = fill(NativeEngine(graph, plan), graph, plan, [0, 1, 2])
    assert np.isfinite(batch.statistics).all()
    assert (batch.state == ModelState.TRAINED).all()


def test_a_stop_keeps_what_is_finished() -> None:
    graph = datasets.load("demo")
    plan = ShadowPlan(Uniform(0.25), GCN(), Training(epochs=50))
    count = 2_000
    memberships = draw_memberships(graph, plan.sampler, count, plan.seed)
    batch = ShadowBatch.empty(graph, plan, np.arange(count), memberships)

    def stop_soon(done: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NativeEngine(graph, plan).fill(batch, 2, stop_soon)
    finished = np.flatnonzero(batch.is_done)
    assert 3 <= len(finished) < count
    assert np.isfinite(batch.statistics[:, finished]).all()
    assert np.isnan(batch.statistics[:, ~batch.is_done]).all()
    whole = fill(NativeEngine(graph, plan), graph, plan, finished[:3].tolist())
    assert whole.statistics.tobytes() == batch.statistics[:, finished[:3]].tobytes()


NO_MEMORY = """
import resource
import numpy as np
from bmpaudit import datasets
from bmpaudit.samplers import Uniform
from bmpaudit.models import MLP
from bmpaudit.shadow import ShadowPlan
from bmpaudit.models import Training
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.native import NativeEngine

graph = datasets.load("demo")
plan = ShadowPlan(Uniform(0.5), MLP(hidden=60_000), Training(epochs=1))
batch = ShadowBatch.empty(graph, plan, np.arange(2), np.ones((2, graph.num_nodes), dtype=bool))
engine = NativeEngine(graph, plan)
resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
try:
    engine.fill(batch, 2, lambda _: None)
except MemoryError:
    print("refused", batch.state.tolist())
"""


def test_too_little_memory_is_an_error_and_not_the_end_of_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", NO_MEMORY], capture_output=True, text=True, check=False)
    assert done.stdout == "refused [0, 0]\n", done.stderr


def test_margins_that_are_not_finite_fail_the_model() -> None:
    """One huge step leaves finite parameters whose logits overflow."""
    graph = datasets.load("demo")
    plan = ShadowPlan(Uniform(0.25), GCN(), Training(1, 1e25, 0.0))
    for engine in (NativeEngine(graph, plan), TorchEngine(graph, replace(plan, engine="torch"))):
        batch = fill(engine, graph, plan, [0, 1], keep_logits=True)
        assert batch.state.tolist() == [ModelState.FAILED] * 2
        assert np.isnan(batch.statistics).all()
        assert batch.logits is not None
        assert np.isnan(batch.logits).all()
        assert np.isnan(batch.train_accuracy).all()


def test_each_model_has_its_own_dropout() -> None:
    graph = datasets.load("demo")
    plan = ShadowPlan(lambda graph, _rng: np.arange(graph.num_nodes // 2), GCN(), Training(epochs=1), (Clean(),))
    one = fill(NativeEngine(graph, plan), graph, plan, [0, 1])
    without = replace(plan, model=GCN(dropout=0.0))
    plain = fill(NativeEngine(graph, without), graph, without, [0, 1])
    # The change that dropout makes to the first step, model by model: the same masks would give the same pattern.
    changes = one.statistics[0] - plain.statistics[0]
    assert abs(np.corrcoef(changes)[0, 1]) < 0.9
