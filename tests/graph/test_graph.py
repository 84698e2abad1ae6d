import dataclasses
import hashlib
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from small_graphs import DENSE, assert_same, graphs, kite, sparse_rows

from bmpaudit.graph.graph import Graph, GraphCleanedWarning
from bmpaudit.util.errors import InputError

EDGES = [(0, 1), (0, 2), (1, 2), (2, 3)]
LABELS = [0, 1, 1, 2]


def test_kite_by_hand() -> None:
    graph = kite()
    np.testing.assert_array_equal(graph.indptr, [0, 2, 4, 7, 8])
    np.testing.assert_array_equal(graph.indices, [1, 2, 0, 2, 0, 1, 3, 2])
    np.testing.assert_array_equal(graph.degrees, [2, 2, 3, 1])
    np.testing.assert_array_equal(graph.edges, EDGES)
    np.testing.assert_array_equal(graph.labels, LABELS)
    np.testing.assert_array_equal(graph.dense_features, DENSE)
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (4, 4, 2, 3)
    assert str(graph) == "4 nodes, 4 edges, 2 features, 3 classes"
    assert repr(graph) == f"<Graph {graph}>"


def test_adjacency_is_symmetric_and_zero_or_one() -> None:
    adjacency = kite().adjacency.toarray()
    np.testing.assert_array_equal(adjacency, [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])


def test_a_graph_without_edges_is_a_graph() -> None:
    graph = Graph.from_edges([], [[1.0], [2.0]], [0, 1])
    assert graph.num_edges == 0
    assert graph.edges.shape == (0, 2)


def test_class_names_may_name_classes_without_nodes() -> None:
    assert Graph.from_edges([], [[1.0], [2.0]], [0, 1], class_names=["a", "b", "c"]).num_classes == 3


@pytest.mark.parametrize("features", [DENSE, sparse_rows()])
@pytest.mark.parametrize("storage", [np.array, scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
def test_storage_follows_the_share_of_non_zeros(features: np.ndarray, storage: Any) -> None:
    graph = kite(storage(features))
    np.testing.assert_array_equal(graph.dense_features, features)
    assert graph.dense_features.dtype == np.float32
    assert isinstance(graph.features, np.ndarray) == (np.mean(features != 0) >= 0.25)


# What was changed is reported.


def test_cleaning_is_reported_and_warned_about() -> None:
    with pytest.warns(GraphCleanedWarning, match=r"^edges: 1 self-loops and 2 duplicates dropped$"):
        graph = Graph.from_edges([(0, 1), (0, 1), (0, 1), (2, 2)], DENSE, LABELS)
    assert graph.cleaning.num_pairs == 4
    assert graph.num_edges == 1


def test_an_edge_in_both_directions_is_nothing_to_warn_about() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Graph.from_edges([(0, 1), (1, 0)], DENSE, LABELS)


def test_one_way_edges_among_two_way_edges_are_warned_about() -> None:
    with pytest.warns(GraphCleanedWarning, match=r"^edges: 1 one-way edges made two-way$"):
        Graph.from_edges([(0, 1), (1, 0), (2, 3)], DENSE, LABELS)


# Frozen.


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Graph)])
def test_no_part_can_be_replaced(field: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(kite(), field, None)


def _arrays(graph: Graph) -> list[Any]:
    features = graph.features
    parts = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
    return [graph.indptr, graph.indices, graph.labels, *parts]


@pytest.mark.parametrize("features", [DENSE, sparse_rows()])
def test_no_array_can_be_written(features: np.ndarray) -> None:
    for array in _arrays(kite(features)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_what_is_done_to_the_adjacency_stays_there() -> None:
    graph = kite()
    adjacency, degrees, edges = graph.adjacency, graph.degrees, graph.edges
    adjacency *= 0
    degrees[:] = 0
    edges[:] = 0
    assert_same(graph, kite())


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("position", [(0, 1), (0, 0)])  # a stored entry, and one that is not
def test_sparse_features_cannot_be_assigned_to(position: tuple[int, int]) -> None:
    graph = kite(sparse_rows())
    with pytest.raises(ValueError, match="read-only"):
        graph.features[position] = 5
    np.testing.assert_array_equal(graph.dense_features, sparse_rows())


@pytest.mark.parametrize("storage", [np.array, scipy.sparse.csr_array])
@pytest.mark.parametrize("features", [DENSE, sparse_rows()])
def test_what_the_caller_holds_stays_theirs(features: np.ndarray, storage: Any) -> None:
    edges, given, labels = np.array(EDGES), storage(features), np.array(LABELS)
    graph = Graph.from_edges(edges, given, labels)
    edges[:] = 0
    labels[:] = 7
    (given if isinstance(given, np.ndarray) else given.data)[:] = 99
    assert_same(graph, kite(features))


def test_the_caller_s_matrix_is_not_tidied_up_behind_their_back() -> None:
    # Unsorted, with a duplicate and a stored zero.
    given = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 3.0, 0.0], dtype=np.float32), np.array([4, 0, 4, 2]), np.array([0, 3, 4, 4, 4])),
        shape=(4, 5),
    )
    graph = kite(given)
    np.testing.assert_array_equal(given.indices, [4, 0, 4, 2])
    np.testing.assert_array_equal(given.data, [1, 2, 3, 0])
    np.testing.assert_array_equal(graph.dense_features[0], [2, 0, 0, 0, 4])
    assert not isinstance(graph.features, np.ndarray)
    assert graph.features.nnz == 2


# Content hash.

KITE_HASH = "022da015c46afd7336ef951ee698512df50657d9f32b175578b5ae74a404c21e"


def test_content_hash_of_a_graph_made_by_hand_is_pinned() -> None:
    assert kite().content_hash == KITE_HASH


def test_content_hash_is_what_it_says() -> None:
    parts = [
        (np.array([0, 2, 4, 7, 8]), "<i8"),
        (np.array([1, 2, 0, 2, 0, 1, 3, 2]), "<i4"),
        (np.array(LABELS), "<i8"),
        (np.array([0, 2, 4, 6, 7]), "<i8"),
        (np.array([0, 1, 0, 1, 0, 1, 1]), "<i4"),
        (DENSE[DENSE != 0], "<f4"),
    ]
    content = b"".join(array.astype(dtype).tobytes() for array, dtype in parts)
    assert kite().content_hash == hashlib.sha256(b"bmpaudit graph 1" + content + b"4 2 3").hexdigest()


@pytest.mark.parametrize("features", [DENSE, sparse_rows()])
def test_content_hash_ignores_storage_names_order_and_direction(features: np.ndarray) -> None:
    expected = kite(features).content_hash
    assert kite(scipy.sparse.csc_array(features)).content_hash == expected
    assert kite(features.astype(np.float64)).content_hash == expected
    assert kite(np.asfortranarray(features)).content_hash == expected
    assert kite(features, named=True).content_hash == expected
    assert Graph.from_edges([(2, 1), (3, 2), (2, 0), (0, 1)], features, LABELS).content_hash == expected
    both = [*EDGES, *((v, u) for u, v in EDGES)]
    assert Graph.from_edges(both, features, np.array(LABELS, dtype=np.int8)).content_hash == expected


def test_content_hash_knows_no_negative_zero() -> None:
    assert kite(np.where(DENSE == 0, -0.0, DENSE)).content_hash == kite().content_hash


@pytest.mark.parametrize(
    "other",
    [
        Graph.from_edges(EDGES[:-1], DENSE, LABELS),
        Graph.from_edges([*EDGES[:-1], (1, 3)], DENSE, LABELS),
        Graph.from_edges(EDGES, DENSE, [0, 1, 1, 1]),
        Graph.from_edges(EDGES, DENSE, [0, 1, 2, 1]),
        Graph.from_edges(EDGES, np.nextafter(DENSE, np.float32(9)), LABELS),
        Graph.from_edges(EDGES, DENSE[:, ::-1], LABELS),
        Graph.from_edges(EDGES, np.pad(DENSE, ((0, 0), (0, 1))), LABELS),
        Graph.from_edges(EDGES, np.pad(DENSE, ((0, 1), (0, 0))), [*LABELS, 0]),
        Graph.from_edges(EDGES, DENSE, LABELS, class_names=["a", "b", "c", "d"]),
    ],
)
def test_content_hash_changes_with_the_content(other: Graph) -> None:
    assert other.content_hash != kite().content_hash
    assert other != kite()


@given(graphs(), graphs())
def test_equal_hash_means_equal_content(one: Graph, other: Graph) -> None:
    same = (
        one.num_classes == other.num_classes
        and np.array_equal(one.edges, other.edges)
        and np.array_equal(one.labels, other.labels)
        and np.array_equal(one.dense_features, other.dense_features)
    )
    assert (one == other) == same


def test_equal_graphs_are_one_key() -> None:
    assert len({kite(), kite(named=True), kite(sparse_rows())}) == 2
    assert kite() != "kite"


# Bad input: one line that names the thing, the bound and the value.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 1, 1]}, "features must have one row for each of 3 labels, got 4 rows"),
        ({"features": DENSE[:3]}, "features must have one row for each of 4 labels, got 3 rows"),
        (
            {"features": scipy.sparse.csr_array(DENSE[:3])},
            "features must have one row for each of 4 labels, got 3 rows",
        ),
        ({"features": DENSE[:, 0]}, "features must have shape (num_nodes, num_features), got (4,)"),
        (
            {"features": DENSE[:, :0]},
            "features must have at least one column, got 0: "
            "models learn from features, and a graph without any may take its nodes' degrees",
        ),
        ({"features": None}, "features must not be None: models learn from features, and a graph without any may take"),
        ({"features": [["a"]] * 4}, "features must be numbers, got 'a' at node 0, feature column 0"),
        ({"features": [[1], [None], [2], [3]]}, "features must be finite, got None at node 1, feature column 0"),
        ({"features": [[1], [2], [10**400], [3]]}, "features must be numbers, got '1000"),
        ({"labels": ["a", "b", "b", "c"]}, "labels must be whole numbers, got text"),
        ({"edges": [("a", "b")]}, "edges must be whole numbers, got text"),
        ({"features": [[1], [1, 2], [3], [4]]}, "features must be an array: "),
        ({"features": DENSE * 1j}, "features must be real numbers, got complex numbers"),
        ({"edges": [(0, 1), (1, 4)]}, "edge 1 joins nodes 1 and 4, but node ids must be in [0, 4)"),
        ({"edges": [(0, 1), (-1, 2)]}, "edge 1 joins nodes -1 and 2, but node ids must be in [0, 4)"),
        ({"edges": [(0, 1), (1,)]}, "edges must be an array: "),
        ({"labels": []}, "a graph must have at least one node, got 0 labels"),
        ({"labels": [1, 1, 1, 1]}, "labels must name at least two classes, got only class 1"),
        ({"labels": [0, 1, -1, 1]}, "labels must not be negative (every node needs a class), got -1 at node 2"),
        (
            {"labels": [0, 1, 2**40, 1]},
            "labels must be below 65536 (classes are numbered from 0), got 1099511627776 at node 2",
        ),
        ({"labels": [0.0, 1.0, 1.0, 2.0]}, "labels must be whole numbers, got float64"),
        ({"labels": [[0], [1], [1], [2]]}, "labels must have shape (num_nodes,), got (4, 1)"),
        ({"node_names": ["a", "b"]}, "node_names must have one name for each of 4 nodes, got 2"),
        ({"node_names": ["a", "b", "a", "c"]}, "node_names must be distinct, got 'a' for nodes 0 and 2"),
        ({"node_names": ["a", "b", 3, "c"]}, "node_names must be text, got int 3 at 2"),
        (
            {"node_names": list("abcd"), "labels": [0, 1, -1, 1]},
            "labels must not be negative (every node needs a class), got -1 at node 'c'",
        ),
        ({"class_names": ["a", "b"]}, "class_names must have one name for each of 3 classes, got 2"),
    ],
)
def test_bad_input_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"edges": EDGES, "features": DENSE, "labels": LABELS}
    with pytest.raises(InputError) as refusal:
        Graph.from_edges(**{**good, **change})
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("storage", [np.array, scipy.sparse.csr_array])
@pytest.mark.parametrize("features", [DENSE, sparse_rows()])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])  # the last is infinite in single precision
def test_features_that_are_not_finite(features: np.ndarray, storage: Any, value: float) -> None:
    broken = features.astype(np.float64)
    broken[2, 1] = value
    with pytest.raises(InputError, match=r"^features must be finite.*, got .* at node 2, feature column 1$"):
        kite(storage(broken))


def test_duplicates_that_add_up_to_infinity() -> None:
    largest = np.finfo(np.float32).max
    twice = scipy.sparse.coo_array(([largest, largest], ([1, 1], [0, 0])), shape=(4, 9), dtype=np.float32)
    with pytest.raises(InputError, match=r"^features must be finite, got inf at node 1, feature column 0$"):
        kite(twice)


def test_a_sparse_matrix_that_points_outside_itself() -> None:
    features = scipy.sparse.csr_array(sparse_rows())
    features.indices = np.array([1, 99, 0], dtype=np.int32)
    with pytest.raises(InputError, match=r"^features must be a valid sparse matrix: "):
        kite(features)
