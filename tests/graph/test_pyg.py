import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from small_graphs import DENSE, assert_same, graphs, kite, sparse_rows
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from bmpaudit.graph import DataIgnoredWarning
from bmpaudit.graph.graph import Graph, GraphCleanedWarning
from bmpaudit.util.errors import InputError


@given(graphs())
def test_round_trip(graph: Graph) -> None:
    assert_same(Graph.from_pyg(graph.to_pyg()), graph, names=False)


@pytest.mark.parametrize("features", [DENSE, sparse_rows()])
def test_what_pyg_gets(features: np.ndarray) -> None:
    data = kite(features).to_pyg()
    assert data.validate()
    assert (data.num_nodes, data.num_edges, data.num_features) == (4, 8, features.shape[1])
    assert is_undirected(data.edge_index)
    assert (data.x.dtype, data.edge_index.dtype, data.y.dtype) == (torch.float32, torch.int64, torch.int64)
    np.testing.assert_array_equal(data.x.numpy(), features)


def test_what_pyg_does_to_its_data_stays_there() -> None:
    graph = kite()
    data = graph.to_pyg()
    data.x.zero_()
    data.y.zero_()
    data.edge_index.zero_()
    assert_same(graph, kite())


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state:UserWarning")
def test_sparse_features(layout: str) -> None:
    data = kite(sparse_rows()).to_pyg()
    data.x = getattr(data.x, layout)()
    assert_same(Graph.from_pyg(data), kite(sparse_rows()))


def test_features_that_are_being_optimised() -> None:
    data = kite().to_pyg()
    data.x.requires_grad_()
    assert_same(Graph.from_pyg(data), kite())


def test_labels_in_a_column() -> None:
    data = kite().to_pyg()
    data.y = data.y[:, None]
    assert_same(Graph.from_pyg(data), kite())


def test_directed_edges_are_made_undirected_with_a_warning() -> None:
    data = Data(
        x=torch.tensor(DENSE), edge_index=torch.tensor([[0, 0, 1, 2], [1, 2, 2, 3]]), y=torch.tensor([0, 1, 1, 2])
    )
    with pytest.warns(GraphCleanedWarning, match=r"^edges: 4 one-way edges made two-way$"):
        assert_same(Graph.from_pyg(data), kite())


@pytest.mark.parametrize("part", ["x", "edge_index", "y"])
def test_a_missing_part(part: str) -> None:
    data = kite().to_pyg()
    data[part] = None
    with pytest.raises(InputError, match=f"^the PyG data must have {part}, got none(: models learn from features.*)?$"):
        Graph.from_pyg(data)


def test_unlabelled_nodes_are_refused() -> None:
    data = kite().to_pyg()
    data.y[1] = -1
    with pytest.raises(InputError, match=r"got -1 at node 1$"):
        Graph.from_pyg(data)


def test_masks_are_ignored_with_a_notice() -> None:
    data = kite().to_pyg()
    data.train_mask = torch.tensor([True, False, False, False])
    data.test_mask = ~data.train_mask
    with pytest.warns(
        DataIgnoredWarning,
        match=r"^PyG data: train_mask, test_mask ignored \(a sampler chooses the training nodes\)$",
    ) as notices:
        assert_same(Graph.from_pyg(data), kite())
    assert [Path(notice.filename).name for notice in notices] == [Path(__file__).name]


def test_edge_attributes_are_ignored_with_a_notice() -> None:
    data = kite().to_pyg()
    data.edge_attr = torch.ones(8, 2)
    with pytest.warns(DataIgnoredWarning, match=r"^PyG data: edge_attr ignored$"):
        assert_same(Graph.from_pyg(data), kite())


def test_a_graph_without_edges() -> None:
    data = Data(x=torch.eye(3), edge_index=torch.empty((2, 0), dtype=torch.int64), y=torch.tensor([0, 1, 0]))
    graph = Graph.from_pyg(data)
    assert (graph.num_nodes, graph.num_edges) == (3, 0)
    assert_same(Graph.from_pyg(graph.to_pyg()), graph)


def test_half_precision_and_plain_arrays() -> None:
    data = kite(np.eye(4)).to_pyg()
    data.x = data.x.to(torch.bfloat16)
    assert_same(Graph.from_pyg(data), kite(np.eye(4)))
    data.x, data.y = np.eye(4), [0, 1, 1, 2]
    assert_same(Graph.from_pyg(data), kite(np.eye(4)))


def test_an_edge_index_of_the_wrong_shape() -> None:
    data = kite().to_pyg()
    data.edge_index = data.edge_index.T
    with pytest.raises(InputError, match=r"^edge_index must have shape \(2, num_edges\), got \(8, 2\)$"):
        Graph.from_pyg(data)


def test_without_pyg_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["torch"] = None
from bmpaudit.util.errors import InputError
from bmpaudit import datasets
try:
    datasets.load("demo").to_pyg()
except InputError as refusal:
    print(refusal)
"""
    message = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install 'bmpaudit[torch]'" in message
    assert message.count("\n") == 1
