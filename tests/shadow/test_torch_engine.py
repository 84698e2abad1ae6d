"""Any model through PyTorch Geometric."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers import fill, random_graph
from own_parts import Sage, train_by_hand
from torch import nn
from torch_geometric.nn import GCNConv

from bmpaudit import datasets
from bmpaudit.models import APPNP, GAT, GCN, GIN, MLP, SAGE, SGC, NativeModel, TorchModel, Training
from bmpaudit.releases import Clean, FullEdges
from bmpaudit.samplers import Bernoulli, Uniform, draw_memberships
from bmpaudit.shadow import ModelState, ShadowPlan, train_shadows
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.shadow.engines.torch import TorchEngine, box_muller, last_layer
from bmpaudit.util.errors import InputError


def unstable(module: nn.Module, data: Any, seed: int) -> None:  # noqa: ARG001
    with torch.no_grad():
        next(module.parameters()).fill_(float("nan"))


@pytest.mark.parametrize("model", [kind(dropout=0.0) for kind in (GCN, GAT, MLP, SAGE, SGC, APPNP, GIN)], ids=str)
def test_without_dropout_both_engines_give_the_same_margins_in_every_view(model: NativeModel) -> None:
    graph = random_graph(num_classes=4)
    plan = ShadowPlan(Uniform(0.5), model, Training(epochs=30), seed=2)
    native = fill(NativeEngine(graph, plan), graph, plan, [0, 5], keep_logits=True)
    other = fill(TorchEngine(graph, replace(plan, engine="torch")), graph, plan, [0, 5], keep_logits=True)
    assert native.statistics == pytest.approx(other.statistics, abs=1e-3)
    assert native.logits == pytest.approx(other.logits, abs=1e-3)
    assert native.train_accuracy == pytest.approx(other.train_accuracy)
    assert native.held_out_accuracy == pytest.approx(other.held_out_accuracy)


@pytest.mark.parametrize("train", [None, train_by_hand])
def test_a_users_model_and_training(train: Any) -> None:
    graph = random_graph()
    plan = ShadowPlan(Uniform(0.5), TorchModel(Sage, train), Training(epochs=5), engine="torch")
    first, second = (fill(TorchEngine(graph, plan), graph, plan, [0, 3]) for _ in range(2))
    assert (first.state == ModelState.TRAINED).all()
    assert np.isfinite(first.statistics).all()
    assert first.statistics.tobytes() == second.statistics.tobytes()
    alone = fill(TorchEngine(graph, plan), graph, plan, [3])
    assert alone.statistics[:, 0].tobytes() == first.statistics[:, 1].tobytes()
    clean, noisy = first.statistics[0, 0], first.statistics[1, 0]
    assert not np.allclose(clean, noisy)


def test_the_global_generator_is_left_as_it_was() -> None:
    graph = random_graph()
    plan = ShadowPlan(Uniform(0.5), TorchModel(Sage), Training(epochs=2), engine="torch")
    torch.manual_seed(17)
    expected = torch.rand(3)
    torch.manual_seed(17)
    fill(TorchEngine(graph, plan), graph, plan, [0])
    assert torch.equal(torch.rand(3), expected)


def test_a_model_that_is_not_finite_and_an_empty_sample_fail() -> None:
    graph = random_graph()
    plan = ShadowPlan(Uniform(0.5), TorchModel(Sage, unstable), engine="torch")
    assert fill(TorchEngine(graph, plan), graph, plan, [0]).state.tolist() == [ModelState.FAILED]
    sparse = ShadowPlan(Bernoulli(0.01), TorchModel(Sage), Training(epochs=1), engine="torch")
    sizes = draw_memberships(graph, sparse.sampler, 6, 0).sum(axis=1)
    batch = fill(TorchEngine(graph, sparse), graph, sparse, list(range(6)))
    assert 0 in sizes
    assert ((batch.state == ModelState.FAILED) == (sizes == 0)).all()


def test_a_model_with_the_wrong_number_of_outputs_is_refused() -> None:
    graph = random_graph(num_classes=3)
    model = TorchModel(lambda features, classes: Sage(features, classes + 1), version="one too many")
    plan = ShadowPlan(Uniform(0.5), model, Training(epochs=1), engine="torch")
    with pytest.raises(InputError, match=r"logits of shape \(60, 3\) \(nodes, classes\), got \(60, 4\)"):
        fill(TorchEngine(graph, plan), graph, plan, [0])


def test_noise_goes_on_the_last_layer_with_parameters() -> None:
    sage = Sage(5, 3)
    assert last_layer(sage) is sage.layers[1]
    assert isinstance(last_layer(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 3), nn.ReLU())), nn.Linear)
    named = Sage(5, 3)
    named.last_layer = named.layers[0]
    assert last_layer(named) is named.layers[0]
    convolution = GCNConv(4, 2)
    assert last_layer(nn.Sequential(nn.Linear(2, 4), convolution)) is convolution


def test_box_muller_numbers_are_standard_normal() -> None:
    numbers = box_muller(np.random.default_rng(0), 100_001)
    assert len(numbers) == 100_001
    assert abs(numbers.mean()) < 5 / np.sqrt(1e5)
    assert abs(numbers.std() - 1) < 5 / np.sqrt(2e5)


def test_a_users_model_is_stored_and_resumed(tmp_path: Any) -> None:
    graph = datasets.load("demo")
    plan = ShadowPlan(Uniform(0.1), TorchModel(Sage), Training(epochs=2), (Clean(),), (FullEdges(),), engine="torch")
    first = train_shadows(graph, plan, 3, tmp_path)
    assert (
        train_shadows(graph, plan, 5, tmp_path).statistics["full_clean"][:3].tobytes()
        == first.statistics["full_clean"].tobytes()
    )
    with pytest.raises(
        InputError, match=r"holds shadow models with model own_parts:Sage, no version; this plan has version='2'"
    ):
        train_shadows(graph, replace(plan, model=TorchModel(Sage, version="2")), 5, tmp_path)
