from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from small_graphs import DENSE, assert_same, graphs, kite

from bmpaudit.graph.graph import Graph, GraphCleanedWarning
from bmpaudit.util.errors import InputError

LABELS = [0, 1, 1, 2]


@given(graphs())
def test_round_trip(graph: Graph) -> None:
    assert_same(Graph.from_scipy(graph.adjacency, graph.features, graph.labels), graph, names=False)


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_matrix", "lil_array", "dok_matrix"])
def test_any_sparse_form(form: str) -> None:
    adjacency = getattr(scipy.sparse, form)(kite().adjacency)
    assert_same(Graph.from_scipy(adjacency, DENSE, LABELS), kite())


def test_weights_do_not_count_and_stored_zeros_are_not_edges() -> None:
    adjacency = scipy.sparse.coo_array(kite().adjacency)
    adjacency.data[:] = np.array([2, -1, 2, 0.5, -1, 0.5, 7, 7])
    with_zero = scipy.sparse.coo_array(
        (np.append(adjacency.data, 0.0), (np.append(adjacency.row, 0), np.append(adjacency.col, 3))), shape=(4, 4)
    )
    assert_same(Graph.from_scipy(with_zero, DENSE, LABELS), kite())


def test_one_way_entries_and_a_diagonal_are_warned_about() -> None:
    upper = scipy.sparse.triu(kite().adjacency) + scipy.sparse.eye_array(4)
    with pytest.warns(GraphCleanedWarning, match=r"^edges: 4 self-loops dropped, 4 one-way edges made two-way$"):
        assert_same(Graph.from_scipy(upper, DENSE, LABELS), kite())


@pytest.mark.parametrize(
    ("adjacency", "labels", "message"),
    [
        (np.eye(4), LABELS, "adjacency must be a SciPy sparse matrix, got ndarray"),
        (scipy.sparse.eye_array(3, 4), LABELS, "one row for each of 4 labels, got 3 × 4"),
        (scipy.sparse.eye_array(4), LABELS[:3], "one row for each of 3 labels, got 4 × 4"),
        (scipy.sparse.eye_array(4), 0, "one row for each of 1 labels, got 4 × 4"),
    ],
)
def test_bad_input(adjacency: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graph.from_scipy(adjacency, DENSE, labels)


def test_a_matrix_that_points_outside_itself() -> None:
    adjacency = scipy.sparse.csr_array(kite().adjacency)
    adjacency.indices = np.array([1, 2, 0, 2, 0, 1, 99, 2], dtype=np.int32)
    with pytest.raises(InputError, match=r"^adjacency must be a valid sparse matrix: "):
        Graph.from_scipy(adjacency, DENSE, LABELS)
