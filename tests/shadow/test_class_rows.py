"""Class rows: what models say of every single feature, asked about made-up nodes or read from their weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr
from helpers import random_graph
from sklearn.linear_model import LogisticRegression
from torch import nn

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.models import APPNP, GAT, GCN, GIN, MLP, SAGE, SGC, NativeModel, Training
from bmpaudit.releases import Clean, FullEdges, LabelOnly, NoisyLastLayer
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, ShadowStore, train_shadows
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.class_rows import UnitNodes
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.util.errors import DataError, InputError

BOTH = ("queries", "weights")
QUICK = Training(epochs=3)


def plan_of(model: Any = GCN(dropout=0.0), **settings: Any) -> ShadowPlan:  # noqa: B008
    chosen: dict[str, Any] = {"training": QUICK, "rows": BOTH, **settings}
    return ShadowPlan(Uniform(0.5), model, **chosen)


def centered(rows: Any) -> Any:
    return rows - rows.mean(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    "model", [GCN(dropout=0.0), GCN(layers=3, dropout=0.0), GAT(dropout=0.0), SAGE(dropout=0.0), GIN(dropout=0.0),
              SGC(dropout=0.0), APPNP(dropout=0.0), MLP(dropout=0.0)]
)  # fmt: skip
def test_both_engines_find_the_same_rows(model: NativeModel, tmp_path: Path) -> None:
    graph = random_graph()
    native, torch_rows = (
        train_shadows(graph, plan_of(model, engine=engine), 3, tmp_path / engine, num_threads=1).rows
        for engine in ("native", "torch")
    )
    assert native.keys() == torch_rows.keys()
    assert len(native) == (4 if len(model.native_layers(2)) > 1 else 3), "noise on the only layer hides the weights"
    for name, rows in native.items():
        assert rows.shape == (3, graph.num_features, graph.num_classes)
        np.testing.assert_allclose(rows.values, torch_rows[name].values, atol=2e-4)
        np.testing.assert_allclose(rows.norms, torch_rows[name].norms, atol=2e-4)


@pytest.mark.parametrize("kind", ["binary", "weighted", "dense"])
def test_rows_are_what_the_weights_say(kind: str, tmp_path: Path) -> None:
    graph, hidden = random_graph(kind=kind), 5
    plan = plan_of(GCN(hidden=hidden, dropout=0.0), releases=(Clean(),))
    runs = train_shadows(graph, plan, 4, tmp_path, keep_weights=True)
    classes, features = graph.num_classes, graph.num_features
    scale = UnitNodes(graph).scale
    for model, flat in enumerate(zarr.open_group(tmp_path / "shadows", mode="r")["weights_0"][:4]):  # type: ignore[index, arg-type]
        first, bias, last, _ = np.split(np.asarray(flat), np.cumsum([hidden * features, hidden, classes * hidden]))
        first, last = first.reshape(hidden, features), last.reshape(classes, hidden)
        asked = np.maximum(first * scale + bias[:, None], 0) - np.maximum(bias, 0)[:, None]
        np.testing.assert_allclose(
            runs.rows["queries_clean"].values[model], (last @ asked).T / scale[:, None], atol=1e-5
        )
        chain = last.astype(np.float64) - last.mean(axis=0)
        gram = chain @ chain.T
        gram += 0.1 * np.trace(gram) / classes * np.eye(classes)
        np.testing.assert_allclose(
            runs.rows["weights_clean"].values[model], (np.linalg.inv(gram) @ chain @ first).T, atol=1e-4
        )
        np.testing.assert_allclose(runs.rows["weights_clean"].norms[model], np.linalg.norm(first, axis=0), rtol=1e-5)


def test_weight_decay_empties_rows_that_no_member_has(tmp_path: Path) -> None:
    graph = datasets.load("demo")
    runs = train_shadows(graph, ShadowPlan(Uniform(0.25), rows=BOTH), 2, tmp_path)
    is_touched = (runs.memberships[:, :].astype(int) @ (graph.features != 0)) > 0
    assert (~is_touched).sum() > 20
    for access in BOTH:
        norms = runs.rows[f"{access}_clean"].norms
        assert norms[~is_touched].max() < norms[is_touched].min() / 2


def test_a_linear_classifier_shows_its_coefficients(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = Graph.from_table(rng.normal(size=(60, 4)), np.arange(60) % 3)
    plan = plan_of(LogisticRegression, training=None, engine="sklearn", releases=(Clean(),), queries=(FullEdges(),))
    runs = train_shadows(table, plan, 2, tmp_path)
    assert list(runs.rows) == ["queries_clean"]
    for model in range(2):
        member = runs.memberships[model]
        fitted = LogisticRegression().fit(table.dense_features[member], table.labels[member])
        expected = centered(fitted.coef_.T)
        np.testing.assert_allclose(centered(runs.rows["queries_clean"].values[model]), expected, atol=1e-4)


class Own(nn.Module):
    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + 0 * edge_index.sum()


class ForThisGraphOnly(Own):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        if len(x) > 1 and not edge_index.numel():
            raise RuntimeError("no messages to pass")
        return super().forward(x, edge_index)


def test_own_modules_are_asked_too(tmp_path: Path) -> None:
    graph = random_graph()
    plan = plan_of(Own, engine="torch", releases=(Clean(),))
    rows = train_shadows(graph, plan, 2, tmp_path, num_threads=1, keep_weights=True).rows
    assert list(rows) == ["queries_clean"], "weights of a module are read as one reads its answers"
    flat = np.asarray(zarr.open_group(tmp_path / "shadows", mode="r")["weights_0"][:2])  # type: ignore[index]
    weight = flat[:, : graph.num_features * graph.num_classes].reshape(2, graph.num_classes, graph.num_features)
    np.testing.assert_allclose(rows["queries_clean"].values, weight.transpose(0, 2, 1), atol=1e-5)
    refused = plan_of(ForThisGraphOnly, engine="torch", releases=(Clean(),), queries=(FullEdges(),))
    with pytest.raises(InputError, match=r"cannot be asked about made-up nodes without edges \(RuntimeError"):
        train_shadows(graph, refused, 1, tmp_path / "refused", num_threads=1)


def test_releases_that_change_outputs_have_no_rows() -> None:
    plan = plan_of(releases=(Clean(), NoisyLastLayer(), LabelOnly()))
    assert [each.name for each in plan.row_sets] == ["queries_clean", "queries_noisy", "weights_clean", "weights_noisy"]
    assert plan_of(rows=()).row_sets == ()
    with pytest.raises(InputError, match=r"rows must be of queries and weights, each once, got labels"):
        plan_of(rows=("labels",))


def test_rows_come_back_from_the_store(tmp_path: Path) -> None:
    graph, plan = random_graph(), plan_of()
    first = train_shadows(graph, plan, 3, tmp_path / "a").rows
    again = train_shadows(graph, plan, 5, tmp_path / "a").rows  # two models are added
    at_once = train_shadows(graph, plan, 5, tmp_path / "b").rows
    for name, rows in again.items():
        np.testing.assert_array_equal(rows.values[:3], first[name].values)
        np.testing.assert_array_equal(rows.values, at_once[name].values)
        np.testing.assert_array_equal(rows.take(np.array([4, 1])).values_of(np.array([1])), rows.values[[1]])
    chunk = tmp_path / "a" / "shadows" / "rows_queries_clean" / "c" / "0" / "0" / "0"
    chunk.unlink()
    with pytest.raises(DataError, match="rows_queries_clean"):
        ShadowStore(tmp_path / "a", graph, plan, read_only=True).read()
    with pytest.warns(UserWarning, match="trained again"):
        mended = train_shadows(graph, plan, 5, tmp_path / "a").rows
    np.testing.assert_array_equal(mended["queries_clean"].values, at_once["queries_clean"].values)


def test_rows_of_an_added_release_are_the_same(tmp_path: Path) -> None:
    graph = random_graph()
    one, two = plan_of(releases=(Clean(),)), plan_of()
    train_shadows(graph, one, 3, tmp_path / "a", keep_weights=True)
    added = train_shadows(graph, two, 3, tmp_path / "a").rows
    at_once = train_shadows(graph, two, 3, tmp_path / "b").rows
    assert added.keys() == at_once.keys()
    for name, rows in added.items():
        np.testing.assert_array_equal(rows.values, at_once[name].values)


def test_a_model_that_is_stopped_before_its_rows_is_not_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, plan = random_graph(), plan_of()
    batch = ShadowBatch.empty(graph, plan, np.arange(2), np.ones((2, graph.num_nodes), dtype=bool))
    engine = NativeEngine(graph, plan)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.unit_nodes, "class_rows", stop)
    with pytest.raises(KeyboardInterrupt):
        engine.fill(batch, 1, lambda _: None)
    assert (batch.state == ModelState.UNTRAINED).all()


def test_few_features_are_asked_about_along_principal_directions() -> None:
    rng = np.random.default_rng(0)
    mixed = (rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + 2).astype(np.float32)
    graph = Graph.from_table(mixed, np.arange(60) % 3)
    unit_nodes = UnitNodes(graph)
    asked = unit_nodes.graph.dense_features.astype(np.float64)
    assert asked.shape == (10, 5)
    steps = (asked[:5] - asked[5:]) / 2
    np.testing.assert_allclose((asked[:5] + asked[5:]) / 2, np.tile(mixed.mean(axis=0), (5, 1)), atol=1e-4)
    np.testing.assert_allclose(steps.T @ steps, np.cov(mixed.T, bias=True), atol=1e-3)  # one standard deviation each
    gram = steps @ steps.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-3)
    weights, bias = rng.normal(size=(5, 3)), rng.normal(size=3)
    rows, norms = unit_nodes.class_rows((asked @ weights + bias).astype(np.float32)[None])
    np.testing.assert_allclose(rows[0], weights, atol=1e-3)  # of a linear model they are its weights
    np.testing.assert_allclose(norms[0], np.linalg.norm(weights, axis=1), atol=1e-3)
    constant = UnitNodes(Graph.from_table(np.ones((20, 2)), np.arange(20) % 2))
    assert np.isfinite(constant.class_rows(np.ones((1, 4, 2), dtype=np.float32))[0]).all()
