"""However a graph is made, it is validated: compiled code trusts its indices."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from small_graphs import DENSE, assert_same, kite, sparse_rows

from bmpaudit.graph.graph import Graph
from bmpaudit.util.errors import InputError


def _changed(**changes: Any) -> Graph:
    """The kite as a direct call makes it, with some parts changed."""
    graph = kite(named=True)
    parts = {field.name: getattr(graph, field.name) for field in dataclasses.fields(graph)}
    return Graph(**{**parts, **changes})


def test_a_direct_call_and_a_replaced_part_give_a_valid_graph() -> None:
    assert_same(_changed(), kite(named=True))
    assert_same(dataclasses.replace(kite(), features=sparse_rows()), kite(sparse_rows()))
    other = dataclasses.replace(kite(), labels=np.array([2, 1, 0, 0], dtype=np.int8))
    assert other == Graph.from_edges([(0, 1), (0, 2), (1, 2), (2, 3)], DENSE, [2, 1, 0, 0])
    for array in (other.indptr, other.indices, other.labels, other.features):
        assert not array.flags.writeable


def test_a_direct_call_copies_what_the_caller_holds() -> None:
    indptr, indices, labels = kite().indptr.copy(), kite().indices.copy(), kite().labels.copy()
    graph = _changed(indptr=indptr, indices=indices, labels=labels)
    for array in (indptr, indices, labels):
        array[:] = 99
    assert_same(graph, kite(named=True))


def test_whole_numbers_of_any_type_are_taken() -> None:
    graph = _changed(indptr=kite().indptr.tolist(), indices=kite().indices.astype(np.uint64), num_classes=np.int8(3))
    assert_same(graph, kite(named=True))
    assert [graph.indptr.dtype.name, graph.indices.dtype.name] == ["int64", "int32"]
    assert type(graph.num_classes) is int


KITE_INDPTR, KITE_INDICES = [0, 2, 4, 7, 8], [1, 2, 0, 2, 0, 1, 3, 2]
DISORDER = "indices must be ascending and distinct within a row, they are not at node"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": np.array([9] * 8)}, "indices must be in [0, 4), got 9 at entry 0"),
        ({"indices": np.array([1, 2, 0, 2, 0, 1, -3, 2])}, "indices must be in [0, 4), got -3 at entry 6"),
        ({"indices": [2**32 + 1, 2, 0, 2, 0, 1, 3, 2]}, "indices must be in [0, 4), got 4294967297 at entry 0"),
        ({"indices": np.array(KITE_INDICES, dtype=np.float64)}, "indices must be a list of whole numbers, got float64"),
        ({"indices": np.array([KITE_INDICES])}, "indices must be a list of whole numbers, got int64 of shape (1, 8)"),
        ({"indices": KITE_INDICES[:-1]}, "indptr must go from 0 to 7, the length of indices, got 0 to 8"),
        ({"indices": [2, 1, 0, 2, 0, 1, 3, 2]}, f"{DISORDER} '007'"),
        ({"indices": [1, 1, 0, 2, 0, 1, 3, 2]}, f"{DISORDER} '007'"),
        ({"indices": [1, 2, 0, 1, 0, 1, 3, 2]}, "edges must join two different nodes, got a self-loop at node 'NA'"),
        ({"indices": [1, 3, 0, 2, 0, 1, 3, 2]}, "edges must be there in both directions, got only node '007' to node"),
        ({"indptr": [0, 2, 4, 7]}, "indptr must have num_nodes + 1 = 5 entries, got 4"),
        ({"indptr": [1, 2, 4, 7, 8]}, "indptr must go from 0 to 8, the length of indices, got 1 to 8"),
        ({"indptr": [0, 2, 4, 7, 2**40]}, "indptr must go from 0 to 8, the length of indices, got 0 to 1099511627776"),
        ({"indptr": [0, 9, 4, 7, 8]}, "indptr must not decrease, got 9 before 4 at entry 1"),
        ({"indptr": np.array(KITE_INDPTR) + 0.5}, "indptr must be a list of whole numbers, got float64 of shape (5,)"),
        ({"labels": [0, 1, 1]}, "node_names must have one name for each of 3 nodes, got 4"),
        ({"labels": [0, 1, 1, 3]}, "labels must be below num_classes=3, got 3 at node 'the \"fourth\"'"),
        ({"labels": [0, 1, 1, -1]}, "labels must not be negative (every node needs a class), got -1 at node"),
        ({"num_classes": 2}, "labels must be below num_classes=2, got 2 at node 'the \"fourth\"'"),
        ({"num_classes": 4}, "class_names must have one name for each of 4 classes, got 3"),
        ({"num_classes": 3.0}, "num_classes must be a whole number of at most 65536, got 3.0"),
        ({"num_classes": 10**9}, "num_classes must be a whole number of at most 65536, got 1000000000"),
        ({"features": DENSE[:3]}, "features must have one row for each of 4 labels, got 3 rows"),
        (
            {"features": np.where(DENSE == 1, np.nan, DENSE)},
            "features must be finite, got nan at node '007', feature column 1",
        ),
        ({"node_names": ("a", "b", "a", "c")}, "node_names must be distinct, got 'a' for nodes 0 and 2"),
        ({"class_names": ("a", "b", 3)}, "class_names must be text, got int 3 at 2"),
    ],
)
@pytest.mark.parametrize("make", [_changed, lambda **changes: dataclasses.replace(kite(named=True), **changes)])
def test_a_part_that_does_not_fit_is_refused(make: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refusal:
        make(**changes)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


def test_sparse_features_that_point_outside_are_refused_by_a_direct_call() -> None:
    features = scipy.sparse.csr_array(sparse_rows())
    features.indices = np.array([1, 99, 0], dtype=np.int32)
    with pytest.raises(InputError, match=r"^features must be a valid sparse matrix: "):
        dataclasses.replace(kite(), features=features)
