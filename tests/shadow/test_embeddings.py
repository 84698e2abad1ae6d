"""The embeddings release: activations of the last hidden layer, and the probe that reads them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import fill, random_graph

from bmpaudit import registry
from bmpaudit.models import APPNP, GAT, GCN, GIN, SAGE, SGC, PrivateSGC, Training
from bmpaudit.releases import PENALTY, Clean, Embeddings, NoEdges, label_margin, probe_scores
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.shadow.engines.torch import TorchEngine
from bmpaudit.util.errors import InputError

GRAPH = random_graph()
PLAN = ShadowPlan(
    Uniform(0.5), GCN(hidden=6, dropout=0.0), Training(epochs=5), releases=(Clean(), Embeddings()), seed=3
)


def test_a_node_is_scored_by_the_ridge_regression_of_all_others() -> None:
    """Against fits without each node in turn."""
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(25, 4)).astype(np.float32)
    labels = rng.integers(3, size=25)
    scores = probe_scores(embeddings, labels, 3)
    inputs = np.column_stack([embeddings.astype(float), np.ones(25)])
    penalty = np.diag([PENALTY * 25 * embeddings.astype(float).var(axis=0).mean()] * 4 + [0.0])
    for node in range(25):
        others = np.arange(25) != node
        gram = inputs[others].T @ inputs[others] + penalty
        fitted = np.linalg.solve(gram, inputs[others].T @ np.eye(3)[labels[others]])
        assert scores[node] == pytest.approx(inputs[node] @ fitted, abs=1e-5)


def test_rotations_and_scales_change_nothing() -> None:
    rng = np.random.default_rng(1)
    embeddings = rng.normal(size=(200, 5))
    labels = rng.integers(4, size=200)
    rotation, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    scores = probe_scores(embeddings.astype(np.float32), labels, 4)
    turned = probe_scores((3.0 * embeddings @ rotation + 7.0).astype(np.float32), labels, 4)
    assert scores == pytest.approx(turned, abs=1e-5)


def test_embeddings_that_are_constant_or_not_finite() -> None:
    labels = np.array([0, 1, 1, 2])
    constant = probe_scores(np.zeros((4, 3), dtype=np.float32), labels, 3)
    assert np.isfinite(constant).all()
    assert np.isnan(probe_scores(np.full((4, 3), np.inf, dtype=np.float32), labels, 3)).all()


@pytest.mark.parametrize("model", [GCN, GAT, SAGE, GIN, APPNP], ids=lambda model: model.__name__)
def test_both_engines_give_the_same_embeddings(model: Any) -> None:
    plan = replace(PLAN, model=model(hidden=6, dropout=0.0))
    native: Any = fill(NativeEngine(GRAPH, plan), GRAPH, plan, [0, 4], 2, keep_logits=True)
    other_plan = replace(plan, engine="torch")
    other: Any = fill(TorchEngine(GRAPH, other_plan), GRAPH, other_plan, [0, 4], keep_logits=True)
    assert native.logits == pytest.approx(other.logits, abs=2e-3)
    numbers = [number for number, view in enumerate(plan.views) if view.release_name == "embeddings"]
    for number in numbers:
        assert np.array_equal(native.statistics[number], label_margin(native.logits[number], GRAPH.labels))


def test_the_last_layer_of_a_gcn_takes_the_embeddings() -> None:
    """Without edges the last layer is linear in them, with the weights that are kept."""
    plan = replace(PLAN, queries=(NoEdges(),))
    engine = NativeEngine(GRAPH, plan)
    batch: Any = fill(engine, GRAPH, plan, [0], keep_logits=True)
    embeddings = np.full((1, 1, GRAPH.num_nodes, 6), np.nan, dtype=np.float32)
    weights = np.full((1, engine.num_weights), np.nan, dtype=np.float32)
    again = replace(batch, statistics=batch.statistics[:1].copy(), logits=batch.logits[:1].copy())
    again = replace(again, view_train_accuracy=batch.view_train_accuracy[:1].copy(), weights=weights[None])
    again = replace(again, view_held_out_accuracy=batch.view_held_out_accuracy[:1].copy(), is_right=None)
    from bmpaudit.shadow.engines import Question

    engine._train_and_ask(again, 0, [Question(0, 0.0)], 1, lambda _: None, embeddings=embeddings)
    classes = GRAPH.num_classes
    last, bias = weights[0, -7 * classes : -classes].reshape(classes, 6), weights[0, -classes:]
    assert again.logits[0, 0] == pytest.approx(embeddings[0, 0] @ last.T + bias, abs=1e-5)
    assert again.logits[0].tobytes() == batch.logits[0].tobytes()
    assert np.array_equal(batch.logits[1, 0], probe_scores(embeddings[0, 0], GRAPH.labels, classes))


@pytest.mark.parametrize(("model", "engine"), [(SGC(), "native"), (SGC(), "torch"), (PrivateSGC(), "torch")], ids=str)
def test_a_model_without_a_hidden_layer_has_none(model: Any, engine: str, tmp_path: Path) -> None:
    plan = replace(PLAN, model=model, engine=engine)
    with pytest.raises(
        InputError, match=f"release embeddings needs a hidden layer, and the model {registry.title(model)} has"
    ):
        train_shadows(GRAPH, plan, 3, tmp_path)


def test_an_engine_that_gives_no_hidden_layer_says_so(tmp_path: Path) -> None:
    plan = replace(PLAN, engine="own_parts:ConstantEngine")
    with pytest.raises(InputError, match="a hidden layer, which engine own_parts:ConstantEngine does not give"):
        train_shadows(GRAPH, plan, 3, tmp_path)


def test_embeddings_are_added_from_weights(tmp_path: Path) -> None:
    whole = train_shadows(GRAPH, PLAN, 5, tmp_path / "whole", keep_weights=True)
    train_shadows(GRAPH, replace(PLAN, releases=(Clean(),)), 5, tmp_path / "added", keep_weights=True)
    added = train_shadows(GRAPH, PLAN, 5, tmp_path / "added")
    for view, statistics in whole.statistics.items():
        assert np.asarray(statistics).tobytes() == np.asarray(added.statistics[view]).tobytes()
