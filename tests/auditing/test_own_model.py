"""A PyTorch script becomes an audit in one call: the `Data`, what makes the module, and what trains it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from small_audit import QUIET, leaky_graph
from torch import nn

from bmpaudit.graph import DataIgnoredWarning
from bmpaudit.models import GCN, TorchModel
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan
from bmpaudit.util.errors import InputError

SETTINGS: dict[str, Any] = {"shadows": 12, "definitions": "bmp-r", "releases": "clean", "runtime": QUIET}


class Linear(nn.Module):  # type: ignore[misc]
    """Logits from a node's own features."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.last_layer = nn.Linear(num_features, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        assert edge_index.shape[0] == 2
        return self.last_layer(x)


def train(module: Any, data: Any, seed: int) -> None:
    """In mini-batches, as a script of the user's own might."""
    generator = torch.Generator().manual_seed(seed % 2**31)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for _ in range(10):
        for batch in torch.randperm(data.num_nodes, generator=generator).split(8):
            optimizer.zero_grad()
            logits = module(data.x, data.edge_index)[batch]
            nn.functional.cross_entropy(logits, data.y[batch]).backward()
            optimizer.step()


def test_data_factory_and_training_are_all_it_takes() -> None:
    graph = leaky_graph()
    data = graph.to_pyg()
    data.train_mask = torch.ones(graph.num_nodes, dtype=torch.bool)
    with pytest.warns(DataIgnoredWarning, match="train_mask ignored"):
        result = audit(data, model=Linear, train=train, **SETTINGS)
    assert result.plan.engine == "torch"
    assert result.plan.model == TorchModel(Linear, train)
    assert result.title.endswith("Linear")
    again = audit(graph, AuditPlan(model=TorchModel(Linear, train)), **SETTINGS)
    for view, statistics in result.runs.statistics.items():
        assert np.array_equal(statistics[:, :], again.runs.statistics[view][:, :])


def test_the_engine_is_the_one_that_can_train_the_model() -> None:
    plan = AuditPlan(model=Linear)
    assert plan.engine == "torch"
    assert plan.replace(model="gat").engine == "native"
    assert plan.replace(model=GCN(), engine="torch").engine == "torch"
    assert AuditPlan(engine="torch").replace(shadows=40).engine == "torch"
    assert AuditPlan().engine == "native"
    assert AuditPlan().replace(model=Linear).engine == "torch"


def train_by_mask(module: Any, data: Any, seed: int) -> None:  # noqa: ARG001
    """As tutorials do it."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        logits = module(data.x, data.edge_index)[data.train_mask]
        assert len(logits) == data.num_nodes
        nn.functional.cross_entropy(logits, data.y[data.train_mask]).backward()
        optimizer.step()


def test_a_loop_over_the_training_mask_trains_on_the_sample() -> None:
    assert audit(leaky_graph(), model=Linear, train=train_by_mask, **SETTINGS).runs.num_models == 12


class OfData(Linear):
    """As the module of many a tutorial is called."""

    def forward(self, data: Any) -> torch.Tensor:  # type: ignore[override]
        return self.last_layer(data.x)


def of_one(num_features: int) -> nn.Module:
    return Linear(num_features, 2)


def without_seed(module: Any, data: Any) -> None: ...


def test_what_cannot_be_called_is_named() -> None:
    for settings, message in (
        ({"model": of_one}, r"model \S+of_one must take \(num_features, num_classes\), got \(num_features"),
        (
            {"model": Linear, "train": without_seed},
            r"train \S+ must take \(module, data, seed\), got \(module",
        ),
        ({"model": OfData}, r"forward of OfData must take \(x, edge_index\), got \(data"),
    ):
        with pytest.raises(InputError, match=message):
            audit(leaky_graph(), **settings, **SETTINGS)


def test_training_without_a_model_is_refused() -> None:
    with pytest.raises(InputError, match="train must come with model"):
        audit(leaky_graph(), train=train, **SETTINGS)
