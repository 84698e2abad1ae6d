import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from small_graphs import DENSE, assert_same, graphs, kite, sparse_rows
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from bmpaudit import Graph, GraphCleanedWarning, InputError


@given(graphs())
def test_there_and_back(graph: Graph) -> None:
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


def test_directed_edges_are_made_undirected_and_told() -> None:
    data = Data(
        x=torch.tensor(DENSE), edge_index=torch.tensor([[0, 0, 1, 2], [1, 2, 2, 3]]), y=torch.tensor([0, 1, 1, 2])
    )
    with pytest.warns(GraphCleanedWarning, match=r"^edges: 4 one-way edges made two-way$"):
        assert_same(Graph.from_pyg(data), kite())


@pytest.mark.parametrize("part", ["x", "edge_index", "y"])
def test_a_missing_part(part: str) -> None:
    data = kite().to_pyg()
    data[part] = None
    with pytest.raises(InputError, match=f"^the PyG data must have {part}, got none$"):
        Graph.from_pyg(data)


def test_unlabelled_nodes_are_refused() -> None:
    data = kite().to_pyg()
    data.y[1] = -1
    with pytest.raises(InputError, match=r"got -1 at node 1$"):
        Graph.from_pyg(data)


def test_without_pyg_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["torch"] = None
from bmpaudit import InputError, datasets
try:
    datasets.load("demo").to_pyg()
except InputError as refusal:
    print(refusal)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install 'bmpaudit[torch]'" in told
    assert told.count("\n") == 1
