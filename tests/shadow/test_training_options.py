"""DropEdge, early stopping and mini-batches: both engines against a slow reference, and against what they promise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers import fill, flat_parameters, random_graph, sample_flags, torch_trained
from slow_training import neighbors_of, slowly_trained

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.models import APPNP, GAT, GCN, GIN, MLP, SAGE, SGC, NativeModel, Training
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ModelState, ShadowPlan
from bmpaudit.shadow.engines.native import NativeEngine, make_kernel
from bmpaudit.shadow.engines.torch import Neighborhoods, TorchEngine, batches, validation_nodes
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import stream

# With ELU: a unit of ReLU that changes sides carries float32 away from float64.
MODELS: list[NativeModel] = [
    GCN(dropout=0.0, activation="elu"),
    GCN(dropout=0.0, activation="elu", layers=4, hidden=20, norm="batch", residual=True),
    GAT(dropout=0.0),
    SAGE(dropout=0.0, activation="elu"),
    SAGE(dropout=0.0, activation="elu", aggregation="max"),
    GIN(dropout=0.0, activation="elu"),
    SGC(dropout=0.0),
    APPNP(dropout=0.0, activation="elu"),
]
OPTIONS: dict[str, dict[str, Any]] = {
    "drop_edge": {"drop_edge": 0.3},
    "validation": {"validation_share": 0.2, "patience": 2},
    "batches": {"batch_size": 7, "neighbors": (2, 3)},
    "all": {"drop_edge": 0.2, "validation_share": 0.2, "batch_size": 9, "neighbors": (3, -1)},
}


def relative_difference(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.linalg.norm(first - second) / np.linalg.norm(second))


@pytest.mark.parametrize("kind", ["binary", "weighted", "dense"])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_steps_are_those_of_the_slow_reference(model: NativeModel, option: str, kind: str) -> None:
    """By SGD, whose steps are the gradients; Adam makes whole steps of what float32 leaves of a gradient of 0."""
    graph = random_graph(num_classes=5, kind=kind)
    training = Training(4, 0.1, 1e-3, "sgd", **OPTIONS[option])
    kernel = make_kernel(graph, model, training)
    parameters, flags = kernel.initial_parameters(3, 1), sample_flags(graph, 0)
    ours = kernel.trained_parameters(parameters, flags, seed=4, index=7)
    theirs, _ = slowly_trained(graph, model, training, parameters, flags, seed=4, index=7)
    assert relative_difference(ours, parameters) > 1e-4
    assert relative_difference(ours, theirs) < 1e-5
    by_torch = flat_parameters(torch_trained(graph, model, training, parameters, flags, seed=4, index=7))
    assert relative_difference(by_torch, theirs) < 1e-5
    others = kernel.trained_parameters(parameters, flags, seed=4, index=8)
    assert relative_difference(others, theirs) > 1e-4


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("model", [GCN(dropout=0.0), GAT(dropout=0.0)], ids=str)
def test_adams_steps_are_those_of_the_slow_reference(model: NativeModel, option: str) -> None:
    graph = random_graph(num_classes=5)
    training = Training(10, 0.01, 5e-4, **OPTIONS[option])
    kernel = make_kernel(graph, model, training)
    parameters, flags = kernel.initial_parameters(3, 1), sample_flags(graph, 0)
    ours = kernel.trained_parameters(parameters, flags, seed=4, index=7)
    theirs, _ = slowly_trained(graph, model, training, parameters, flags, seed=4, index=7)
    assert relative_difference(ours, theirs) < 1e-5


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("model", [GCN(), SAGE(aggregation="max"), GIN(norm="layer"), GAT()], ids=str)
def test_a_model_is_the_same_bytes_on_any_threads_in_any_order(model: NativeModel, option: str) -> None:
    graph = datasets.load("demo")
    plan = ShadowPlan(Uniform(0.25), model, Training(epochs=4, **OPTIONS[option] | {"drop_edge": 0.3}), seed=3)
    engine = NativeEngine(graph, plan)
    one = fill(engine, graph, plan, list(range(6)), num_threads=1)
    two = fill(engine, graph, plan, list(range(6)), num_threads=2)
    assert (one.state == ModelState.TRAINED).all()
    assert one.statistics.tobytes() == two.statistics.tobytes()
    backwards = fill(NativeEngine(graph, plan), graph, plan, [5, 2], num_threads=2)
    assert backwards.statistics.tobytes() == one.statistics[:, [5, 2]].tobytes()
    plain = replace(plan, training=Training(epochs=4))
    assert fill(NativeEngine(graph, plain), graph, plain, [0]).statistics.tobytes() != one.statistics[:, :1].tobytes()


@pytest.mark.parametrize("option", OPTIONS)
def test_both_engines_fill_a_batch_alike(option: str) -> None:
    graph = random_graph(num_classes=4, num_nodes=90)
    plan = ShadowPlan(Uniform(0.5), GCN(dropout=0.0), Training(epochs=8, **OPTIONS[option]), seed=2)
    native = fill(NativeEngine(graph, plan), graph, plan, [0, 5])
    other = fill(TorchEngine(graph, replace(plan, engine="torch")), graph, plan, [0, 5])
    assert native.statistics == pytest.approx(other.statistics, abs=1e-4)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_no_edges_dropped_and_one_batch_of_everyone_are_plain_training(model: NativeModel) -> None:
    graph, plain = random_graph(num_classes=4), Training(3, 0.1, 1e-3, "sgd")
    parameters, flags = make_kernel(graph, model, plain).initial_parameters(3, 1), sample_flags(graph, 0)
    trainings = plain, replace(plain, drop_edge=1e-9), replace(plain, batch_size=1_000, neighbors=(-1, -1))
    first, second, third = (make_kernel(graph, model, each).trained_parameters(parameters, flags) for each in trainings)
    assert relative_difference(second, first) < 1e-6
    assert relative_difference(third, first) < 1e-5  # the same sums in another order


def test_drop_edge_leaves_out_its_share_each_edge_as_often_as_any_other() -> None:
    graph = random_graph()
    whole = Neighborhoods(graph.indptr, graph.indices.astype(np.int64))
    rng, count, times = stream(0, 0), np.zeros((graph.num_nodes, graph.num_nodes)), 400
    for _ in range(times):
        left = whole.without_some(0.3, rng)
        matrix = np.zeros_like(count)
        matrix[left.sources, left.indices] = 1
        assert (matrix == matrix.T).all()
        assert matrix.sum() == 2 * (graph.num_edges - round(0.3 * graph.num_edges))
        count += matrix
    kept_prob = 1 - round(0.3 * graph.num_edges) / graph.num_edges
    away = np.abs(count[whole.sources, whole.indices] - times * kept_prob)
    assert away.max() < 5 * np.sqrt(times * kept_prob * (1 - kept_prob))
    assert count.sum() == count[whole.sources, whole.indices].sum()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_nodes_kept_for_validation_are_not_learnt_from(share: float) -> None:
    """With a feature of its own for each node and no edges, the first step of SGD moves what is learnt from."""
    num_nodes = 50
    graph = Graph.from_edges([(0, 1)], np.eye(num_nodes), [0, 1] * (num_nodes // 2))
    training = Training(1, 0.1, 0.0, "sgd", validation_share=share)
    kernel = make_kernel(graph, MLP(layers=1, dropout=0.0), training)
    before, flags = kernel.initial_parameters(0, 0), np.ones(num_nodes, dtype=np.uint8)
    drawn = []
    for index in range(20):
        moved = (kernel.trained_parameters(before, flags, seed=5, index=index) - before)[: 2 * num_nodes]
        still = np.flatnonzero(~moved.reshape(2, num_nodes).any(axis=0))
        assert len(still) == min(round(share * num_nodes), num_nodes - 1)
        drawn.append(tuple(still))
    assert len(set(drawn)) > 10
    assert list(validation_nodes(stream(0, 0), 2, 0.001)) in ([0], [1])


@pytest.mark.parametrize("batch_size", [None, 16])
def test_early_stopping_stops_and_takes_the_best_weights(batch_size: int | None) -> None:
    graph, model = datasets.load("demo"), GCN(dropout=0.0)
    more: dict[str, Any] = {} if batch_size is None else {"batch_size": batch_size, "neighbors": (3, 3)}
    training = Training(60, 0.1, 0.0, validation_share=0.3, patience=3, **more)
    kernel, flags = make_kernel(graph, model, training), sample_flags(graph, 0, 0.1)
    parameters = kernel.initial_parameters(3, 1)
    _, num_epochs = slowly_trained(graph, model, training, parameters, flags, seed=0, index=0)
    assert 3 < num_epochs < 60
    stopped = kernel.trained_parameters(parameters, flags)
    # As if the best epoch had been the last, and as if training had gone on for no longer than it did.
    for epochs in (num_epochs - 3, num_epochs):
        shorter = make_kernel(graph, model, replace(training, epochs=epochs, patience=None))
        assert shorter.trained_parameters(parameters, flags).tobytes() == stopped.tobytes()
    too_short = make_kernel(graph, model, replace(training, epochs=num_epochs - 4, patience=None))
    assert too_short.trained_parameters(parameters, flags).tobytes() != stopped.tobytes()


def test_every_node_is_a_seed_once_an_epoch_with_at_most_so_many_neighbours() -> None:
    graph = random_graph(num_nodes=90)
    around = Neighborhoods(graph.indptr, graph.indices.astype(np.int64))
    seeds = np.arange(0, graph.num_nodes, 2)
    for neighbors in ((2, 3), (1,), (-1, 1)):
        parts = list(batches(around, seeds, 8, neighbors, stream(1, 0)))
        assert [part.num_seeds for part in parts] == [8] * 5 + [5]
        drawn = np.concatenate([part.nodes[: part.num_seeds] for part in parts])
        assert sorted(drawn) == seeds.tolist()
        assert drawn.tolist() != seeds.tolist()
        for part in parts:
            assert len(set(part.nodes.tolist())) == len(part.nodes)
            for target in range(part.num_seeds):
                sampled = part.nodes[part.sources[part.targets == target]]
                everyone = neighbors_of(graph, int(part.nodes[target]))
                assert len(set(sampled.tolist())) == len(sampled)
                assert set(sampled.tolist()) <= set(everyone)
                assert len(sampled) == (len(everyone) if neighbors[0] < 0 else min(len(everyone), neighbors[0]))


@pytest.mark.parametrize(
    ("nodes", "model", "options"),
    [
        ([3], GCN(), {"validation_share": 0.5}),
        ([3, 58, 59], GIN(), {"batch_size": 1, "neighbors": (1,)}),  # two of them isolated
    ],
)
def test_too_few_nodes_fail_on_both_engines(nodes: list[int], model: NativeModel, options: dict[str, Any]) -> None:
    graph = random_graph()
    plan = ShadowPlan(lambda _graph, _rng: np.array(nodes), model, Training(epochs=3, **options))
    for engine in (NativeEngine(graph, plan), TorchEngine(graph, replace(plan, engine="torch"))):
        batch = fill(engine, graph, plan, [0])
        assert batch.state.tolist() == [ModelState.FAILED]
        assert np.isnan(batch.statistics).all()


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (MLP(), {"drop_edge": 0.2}, r"MLP sees no edges, and takes no drop_edge, got drop_edge=0\.2"),
        (
            MLP(),
            {"batch_size": 8, "neighbors": (2, 2)},
            r"MLP sees no edges, and takes no neighbors, got neighbors=\(2, 2\)",
        ),
        (
            GCN(),
            {"batch_size": 8},
            "GCN needs neighbors with batch_size=8: how many neighbours each hop takes of a node",
        ),
    ],
)
def test_what_a_model_cannot_do_is_refused(model: NativeModel, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ShadowPlan(Uniform(0.5), model, Training(**options))


def test_a_perceptron_trains_by_mini_batches_without_neighbours() -> None:
    graph, model, training = random_graph(), MLP(dropout=0.0), Training(4, 0.1, 0.0, "sgd", batch_size=7)
    ShadowPlan(Uniform(0.5), model, training)
    kernel, flags = make_kernel(graph, model, training), sample_flags(graph, 0)
    parameters = kernel.initial_parameters(3, 1)
    theirs, _ = slowly_trained(graph, model, training, parameters, flags, seed=4, index=7)
    assert relative_difference(kernel.trained_parameters(parameters, flags, seed=4, index=7), theirs) < 1e-5
