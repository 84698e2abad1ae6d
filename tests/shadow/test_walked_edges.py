"""Models that are trained on the edges that their sampling walked along."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import fill

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.models import GAT, GCN, SAGE, NativeModel, PrivateSGC, Training
from bmpaudit.releases import Clean, NoEdges
from bmpaudit.samplers import Snowball
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.shadow.engines.torch import TorchEngine
from bmpaudit.util.errors import InputError

PLAN = ShadowPlan(
    Snowball(0.25, any_order=True, walked_edges=True), GCN(), Training(epochs=10), releases=(Clean(),), seed=2
)


@pytest.fixture(scope="module")
def cora() -> Graph:
    return datasets.load("cora")


@pytest.mark.parametrize("model", [GCN(), GAT(), SAGE(aggregation="max")], ids=str)
def test_a_model_is_that_of_a_graph_with_these_edges_alone(model: NativeModel, cora: Graph) -> None:
    """The training sees no other edge, whatever the models are asked with."""
    plan = replace(PLAN, model=model, queries=(NoEdges(),))
    batch = fill(NativeEngine(cora, plan), cora, plan, [1, 2])
    assert batch.edges is not None
    for row, index in enumerate((1, 2)):
        walked = Graph.from_edges(np.unique(np.sort(batch.edges[row], axis=1), axis=0), cora.features, cora.labels)
        all_edges = replace(plan, sampler=Snowball(0.25, any_order=True))
        alone = fill(NativeEngine(walked, all_edges), cora, all_edges, [index])
        assert np.array_equal(alone.memberships[0], batch.memberships[row])
        assert alone.statistics[:, 0].tobytes() == batch.statistics[:, row].tobytes()
        other = fill(NativeEngine(cora, all_edges), cora, all_edges, [index])
        assert other.statistics[:, 0].tobytes() != batch.statistics[:, row].tobytes()


def test_the_torch_engine_trains_on_the_same_edges(cora: Graph) -> None:
    plan = replace(PLAN, model=GCN(dropout=0.0))
    native = fill(NativeEngine(cora, plan), cora, plan, [1])
    named = replace(plan, engine="torch")
    torch = fill(TorchEngine(cora, named), cora, named, [1])
    np.testing.assert_allclose(torch.statistics, native.statistics, atol=1e-3)
    all_edges = replace(plan, sampler=Snowball(0.25, any_order=True))
    other = fill(NativeEngine(cora, all_edges), cora, all_edges, [1])
    assert np.abs(torch.statistics - other.statistics).max() > 0.1


def test_stored_models_are_the_same_in_pieces(tmp_path: Path) -> None:
    graph = datasets.load("demo")
    whole = train_shadows(graph, PLAN, 40, tmp_path / "whole")
    train_shadows(graph, PLAN, 7, tmp_path / "pieces", num_threads=1)
    pieces = train_shadows(graph, PLAN, 40, tmp_path / "pieces")
    for view, statistics in whole.statistics.items():
        assert statistics[:].tobytes() == pieces.statistics[view][:].tobytes()


def test_a_model_that_chooses_its_edges_refuses_such_a_sampler() -> None:
    graph, model = datasets.load("demo"), PrivateSGC(epsilon=1.0, max_degree=5)
    plan = ShadowPlan(PLAN.sampler, model, engine="torch")
    with pytest.raises(InputError, match=r"trains on edges that it chooses itself.*walked_edges=True"):
        TorchEngine(graph, plan)
    TorchEngine(graph, replace(plan, sampler=Snowball(0.25)))
