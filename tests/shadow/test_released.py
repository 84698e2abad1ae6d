"""A released model in any form gives the same statistics; one that does not fit is refused in one line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from helpers import flat_parameters, random_graph
from torch_geometric.nn import models as pyg_models

from bmpaudit.graph.graph import Graph
from bmpaudit.models import APPNP, GAT, GCN, GIN, MLP, SAGE, SGC, NativeModel, TrainedElsewhere, Training
from bmpaudit.models.torch_modules import LayeredModule
from bmpaudit.registry import STATISTIC, UntrustedPart
from bmpaudit.releases import Clean, FullEdges, NoisyLastLayer, OutputRelease, label_margin
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ProbabilitiesConvertedWarning, ShadowPlan
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.shadow.released import read_released
from bmpaudit.util.errors import DataError, InputError, UntrustedCodeError

MODELS: list[NativeModel] = [
    GCN(),
    GAT(),
    MLP(),
    GCN(layers=1),
    GAT(hidden=3, heads=5, layers=3),
    GCN(activation="elu"),
    SAGE(),
    SAGE(aggregation="max", root_weight=False),
    SGC(layers=2),
    APPNP(),
    GIN(layers=3),
    GCN(layers=3, norm="batch"),
    GAT(norm="layer"),
]
NO_EDGES = torch.empty((2, 0), dtype=torch.long)


def plan_of(model: Any, **settings: Any) -> ShadowPlan:
    return ShadowPlan(Uniform(0.5), model, Training(epochs=5), **settings)


def module_of(graph: Graph, model: NativeModel) -> LayeredModule:
    torch.manual_seed(3)
    module = LayeredModule(model, graph.num_features, graph.num_classes)
    with torch.no_grad():
        for parameter in module.parameters():  # biases are not zero in a trained model
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module.eval()


def outputs_of(graph: Graph, module: Any) -> dict[str, Any]:
    data = graph.to_pyg()
    with torch.no_grad():
        return {"full": module(data.x, data.edge_index).numpy(), "none": module(data.x, NO_EDGES).numpy()}


@pytest.mark.parametrize("kind", ["binary", "weighted", "dense"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_native_logits_are_those_of_pytorch(model: NativeModel, kind: str) -> None:
    graph = random_graph(num_classes=4, kind=kind)
    module = module_of(graph, model)
    kernel = make_kernel(graph, model, Training())
    expected = outputs_of(graph, module)
    flat = flat_parameters(module)
    nowhere = np.zeros_like(graph.indptr), np.zeros(0, dtype=np.int32)
    for query, edges in {"full": (graph.indptr, graph.indices), "none": nowhere}.items():
        assert np.abs(kernel.logits(flat, *edges) - expected[query]).max() < 1e-5


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_weights_outputs_and_module_give_the_same_statistics(model: NativeModel, tmp_path: Path) -> None:
    graph, plan = random_graph(num_classes=4), plan_of(model)
    module = module_of(graph, model)
    outputs = outputs_of(graph, module)
    weights: dict[str, Any] = {name: value.numpy() for name, value in module.state_dict().items()}
    np.savez(tmp_path / "weights.npz", **weights)
    np.savez(tmp_path / "outputs.npz", **outputs)
    module.train()
    forms = {
        "weights": (tmp_path / "weights.npz", module.state_dict()),
        "outputs": (tmp_path / "outputs.npz", str(tmp_path / "outputs.npz"), outputs),
        "module": (module,),
    }
    for came_as, models in forms.items():
        for given in models:
            released = read_released(given, graph, plan, "clean")
            assert released.came_as == came_as
            assert list(released.statistics) == ["full", "none"]
            for query, statistics in released.statistics.items():
                assert statistics == pytest.approx(label_margin(outputs[query], graph.labels), abs=2e-5)
    assert module.training  # as it was


def test_a_plain_pyg_module_and_its_state_dict() -> None:
    graph, module = random_graph(), pyg_models.GCN(37, 16, num_layers=2, out_channels=3)
    by_module = read_released(module, graph, plan_of(GCN()), "clean").statistics
    by_weights = read_released(module.state_dict(), graph, plan_of(GCN()), "noisy").statistics
    for query in ("full", "none"):
        assert by_weights[query] == pytest.approx(by_module[query], abs=2e-5)


def test_outputs_of_some_queries_and_under_the_names_of_views() -> None:
    graph, plan = random_graph(), plan_of(GCN())
    outputs = outputs_of(graph, module_of(graph, GCN()))
    assert list(read_released({"none": outputs["none"]}, graph, plan, "clean").statistics) == ["none"]
    views = {"none_noisy": outputs["none"], "full_noisy": outputs["full"]}
    assert list(read_released(views, graph, plan, "noisy").statistics) == ["full", "none"]
    with pytest.raises(InputError, match="unknown query 'none_noisy'; the plan asks full and none"):
        read_released(views, graph, plan, "clean")
    with pytest.raises(InputError, match="the outputs of query full are there twice"):
        read_released({"full": outputs["full"], "full_clean": outputs["full"]}, graph, plan, "clean")


def test_files_of_a_single_query(tmp_path: Path) -> None:
    graph, plan = random_graph(), plan_of(GCN(), queries=(FullEdges(),))
    outputs = outputs_of(graph, module_of(graph, GCN()))["full"]
    expected = label_margin(outputs, graph.labels)
    np.save(tmp_path / "model.npy", outputs)
    np.savez(tmp_path / "model.npz", outputs)
    table = pd.DataFrame(outputs)
    table.columns = table.columns.astype(str)
    table.to_parquet(tmp_path / "model.parquet")
    backwards = table.assign(node=np.arange(graph.num_nodes)).iloc[::-1]
    backwards.to_parquet(tmp_path / "backwards.parquet", index=False)
    for name in ("model.npy", "model.npz", "model.parquet", "backwards.parquet"):
        released = read_released(tmp_path / name, graph, plan, "clean")
        assert released.statistics["full"] == pytest.approx(expected, abs=1e-6)
    assert read_released(outputs, graph, plan, "clean").statistics["full"] == pytest.approx(expected)
    with pytest.raises(
        InputError, match=r"the outputs of one query, and the plan asks full and none: save them by name"
    ):
        read_released(tmp_path / "model.npy", graph, plan_of(GCN()), "clean")
    table.assign(node=0).to_parquet(tmp_path / "twice.parquet")
    with pytest.raises(DataError, match=r"twice\.parquet: node 0 is there twice"):
        read_released(tmp_path / "twice.parquet", graph, plan, "clean")


def with_nan(outputs: np.ndarray) -> np.ndarray:
    changed = outputs.copy()
    changed[3, 1] = np.nan
    return changed


def with_infinity(outputs: np.ndarray) -> np.ndarray:
    changed = outputs.copy()
    changed[5] = np.inf
    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda full: full[:-1], r"full: outputs are of 59 nodes, and the graph has 60: of another graph\?"),
        (lambda full: full[:, :2], "full: outputs have 2 classes, and the graph has 3"),
        (lambda full: full[:, 0], r"full: outputs must have shape \(60, 3\), got \(60,\)"),
        (with_nan, "full: outputs must not be NaN, got one for node 3, class 1"),
        (with_infinity, "full: the margin of the true label must be finite, got nan for node 5"),
        (lambda full: full.astype(str), "full: outputs must be real numbers, got <U"),
    ],
)
def test_outputs_that_do_not_fit(change: Any, message: str) -> None:
    graph = random_graph()
    full = outputs_of(graph, module_of(graph, GCN()))["full"]
    with pytest.raises(InputError, match=message):
        read_released({"full": change(full)}, graph, plan_of(GCN()), "clean")


def test_unknown_queries_and_empty_files(tmp_path: Path) -> None:
    graph, plan = random_graph(), plan_of(GCN())
    with pytest.raises(InputError, match="unknown query 'ful'; the plan asks full and none"):
        read_released({"ful": np.zeros((60, 3)), "none": np.zeros((60, 3))}, graph, plan, "clean")
    with pytest.raises(InputError, match="unknown query 'ful'"):
        read_released({"ful": np.zeros((60, 3))}, graph, plan, "clean")
    np.savez(tmp_path / "empty.npz")
    with pytest.raises(InputError, match=r"empty\.npz: a released model must hold weights, or outputs by query, got n"):
        read_released(tmp_path / "empty.npz", graph, plan, "clean")
    with pytest.raises(DataError, match=r"model\.onnx: a released model must be \.npz or \.safetensors"):
        read_released(tmp_path / "model.onnx", graph, plan, "clean")
    for name in ("no.npz", "no.npy", "no.parquet", "no.safetensors"):
        with pytest.raises(DataError, match=f"{name}: no such file"):
            read_released(tmp_path / name, graph, plan, "clean")
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(DataError, match=f"{name}: damaged or not a"):
            read_released(tmp_path / name, graph, plan, "clean")


def test_probabilities_are_converted_where_logits_are_released() -> None:
    graph = random_graph()
    full = outputs_of(graph, module_of(graph, GCN()))["full"].astype(np.float64)
    probabilities = np.exp(full) / np.exp(full).sum(axis=1, keepdims=True)
    with pytest.warns(ProbabilitiesConvertedWarning, match="full: the outputs are probabilities"):
        released = read_released({"full": probabilities}, graph, plan_of(GCN()), "clean")
    assert released.statistics["full"] == pytest.approx(label_margin(full, graph.labels), abs=1e-5)


@dataclass(frozen=True)
class Softmax(OutputRelease):
    def outputs(self, logits: Any, rng: np.random.Generator) -> Any:  # noqa: ARG002
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def test_a_release_of_changed_outputs_is_given_as_outputs() -> None:
    """They are taken as they are: those of the shadow models were not converted either."""
    graph, plan = random_graph(), plan_of(GCN(), releases=(Clean(), Softmax()))
    module = module_of(graph, GCN())
    probabilities = Softmax().outputs(outputs_of(graph, module)["full"], np.random.default_rng(0))
    released = read_released({"full": probabilities}, graph, plan, "softmax")
    assert released.statistics["full"] == pytest.approx(label_margin(probabilities, graph.labels), abs=1e-6)
    for given, what in ((module.state_dict(), "weights"), (module, "a module")):
        with pytest.raises(InputError, match=f"release softmax gives out changed outputs, .* instead of {what}"):
            read_released(given, graph, plan, "softmax")


def test_weights_of_models_trained_elsewhere_and_parts_that_are_not_trusted() -> None:
    graph, weights = random_graph(), module_of(random_graph(), GCN()).state_dict()
    elsewhere = plan_of(TrainedElsewhere(), releases=(NoisyLastLayer(),))
    with pytest.raises(
        InputError, match="of models trained elsewhere: give outputs by query, in arrays named full and"
    ):
        read_released(weights, graph, elsewhere, "noisy")
    theirs: Any = UntrustedPart(STATISTIC, "theirs:statistic")
    with pytest.raises(UntrustedCodeError, match="the statistic 'theirs:statistic' is code that a file names"):
        read_released(weights, graph, replace(plan_of(GCN()), statistic=theirs), "clean")
