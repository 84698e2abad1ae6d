import zipfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from small_graphs import DENSE, assert_same, graphs, kite, sparse_rows

from bmpaudit.graph.graph import Graph, GraphCleanedWarning
from bmpaudit.util.errors import DataError, InputError


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("npz") / "graph.npz"


@given(graph=graphs())
def test_round_trip(graph: Graph, scratch: Path) -> None:
    graph.to_npz(scratch)
    assert_same(Graph.from_npz(scratch), graph)


@pytest.mark.parametrize("features", [DENSE, sparse_rows()])
@pytest.mark.parametrize("named", [False, True])
def test_round_trip_by_hand(features: np.ndarray, named: bool, tmp_path: Path) -> None:
    kite(features, named=named).to_npz(tmp_path / "kite.npz")
    assert_same(Graph.from_npz(tmp_path / "kite.npz"), kite(features, named=named))


def test_classes_without_nodes_are_kept(tmp_path: Path) -> None:
    graph = Graph.from_edges([(0, 1)], [[1.0], [2.0]], [0, 2], class_names=["a", "b", "c", "d"])
    graph.to_npz(tmp_path / "graph.npz")
    assert_same(Graph.from_npz(tmp_path / "graph.npz"), graph)


def test_ones_need_no_data(tmp_path: Path) -> None:
    graph = kite((sparse_rows() != 0).astype(np.float32))
    graph.to_npz(tmp_path / "ones.npz")
    assert "x_data" not in np.load(tmp_path / "ones.npz")
    assert_same(Graph.from_npz(tmp_path / "ones.npz"), graph)


def test_writing_twice_gives_the_same_arrays_and_no_leftovers(tmp_path: Path) -> None:
    for _ in range(2):
        kite(named=True).to_npz(tmp_path / "new" / "kite.npz")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["kite.npz"]


PARTS: dict[str, Any] = {
    "edges": np.array([(0, 1), (0, 2), (1, 2), (2, 3)]),
    "y": np.array([0, 1, 1, 2]),
    "x": DENSE,
    "num_nodes": np.array(4),
}
SPARSE_PARTS: dict[str, Any] = {
    "x": None,
    "x_indptr": np.array([0, 1, 1, 2, 3]),
    "x_indices": np.array([1, 4, 0]),
    "x_shape": np.array([4, 5]),
    "x_data": np.array([0.1, -2.5, 1.0], dtype=np.float32),
}


def _write(path: Path, changes: dict[str, Any]) -> Path:
    arrays = {name: array for name, array in {**PARTS, **changes}.items() if array is not None}
    np.savez(path, **arrays)
    return path


def test_archives_written_by_others(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    assert_same(Graph.from_npz(_write(path, {})), kite())
    assert_same(Graph.from_npz(_write(path, {"num_nodes": None})), kite())
    assert_same(Graph.from_npz(_write(path, {"num_nodes": np.array([4])})), kite())
    assert_same(Graph.from_npz(_write(path, {"unknown": np.arange(3)})), kite())
    assert_same(Graph.from_npz(_write(path, {"edges": PARTS["edges"].astype(np.uint16)})), kite())
    assert_same(Graph.from_npz(_write(path, SPARSE_PARTS)), kite(sparse_rows()))


def test_members_that_are_not_arrays_are_ignored(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.npz", {})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("README.txt", "hello")
    assert_same(Graph.from_npz(path), kite())


def test_cleaning_is_warned_about(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.npz", {"edges": np.array([(0, 1), (0, 1), (3, 3)])})
    with pytest.warns(GraphCleanedWarning, match="1 self-loops and 1 duplicates dropped"):
        Graph.from_npz(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": None, "edge": np.array([(0, 1)])}, "key 'edges' is missing; the archive has edge, num_nodes, x, y"),
        ({"y": None}, "key 'y' is missing; the archive has edges, num_nodes, x"),
        ({"x": None}, "key 'x' is missing; the archive has edges, num_nodes, y"),
        ({"num_nodes": np.array(5)}, "num_nodes must be 4, the length of y, got 5"),
        ({"num_nodes": np.array([4, 4])}, "num_nodes must be 4, the length of y, got [4 4]"),
        ({"num_nodes": np.array("four")}, "num_nodes must be 4, the length of y, got four"),
        ({"y": np.array(1), "num_nodes": None}, "labels must have shape (num_nodes,), got ()"),
        ({"y": np.array([0, 0, 0, 0])}, "labels must name at least two classes, got only class 0"),
        ({"x": DENSE[:3]}, "features must have one row for each of 4 labels, got 3 rows"),
        ({"x": np.where(DENSE == 0, np.nan, DENSE)}, "features must be finite, got nan at node 3, feature column 0"),
        ({"x": np.array([["a"]] * 4)}, "features must be numbers, got 'a' at node 0, feature column 0"),
        ({"edges": np.array([(0, 4)])}, "edge 0 joins nodes 0 and 4, but node ids must be in [0, 4)"),
        ({"edges": np.array([(0.0, 1.0)])}, "edges must be whole numbers, got float64"),
        ({"node_names": np.array("one")}, "node_names must have one name for each of 4 nodes, got 1"),
        ({"node_names": np.array(["a", "a", "b", "c"])}, "node_names must be distinct"),
        ({"class_names": np.array(["a"])}, "class_names must have one name for each of 3 classes, got 1"),
    ],
)
def test_bad_archives_are_refused_in_one_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "bad.npz", changes)
    with pytest.raises(DataError) as refusal:
        Graph.from_npz(path)
    assert str(refusal.value).startswith(f"{path}: {message}")
    assert "\n" not in str(refusal.value)


# Each of these would make compiled code read memory that is not the matrix's.
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_indices": np.array([1, 5, 0])}, "indices must be < 5"),
        ({"x_indices": np.array([1, -1, 0])}, "indices must be >= 0"),
        ({"x_indptr": np.array([0, 9, 1, 2, 3])}, "non-decreasing"),
        ({"x_indptr": np.array([0, 1, 1, 2, 9])}, "features must be a valid sparse matrix"),
        ({"x_indptr": np.array([2, 2, 2, 2, 3])}, "should start with 0"),
        ({"x_indptr": np.array([0, 1, 3])}, "features must be a valid sparse matrix"),
        ({"x_indptr": np.array([0, 1, 1, 2, -1])}, "index pointer values must not fall"),
        (
            {"x_indptr": np.array([0, 1, 1, 2, -(2**31)], dtype=np.int32)},
            "index pointer values must not fall",
        ),
        ({"x_data": np.ones(2)}, "features must be a valid sparse matrix"),
        ({"x_data": np.ones((3, 1))}, "should be 1-D"),
        ({"x_shape": np.array([4])}, "features must be a valid sparse matrix"),
        ({"x_shape": np.array([-4, 5])}, "features must be a valid sparse matrix"),
        ({"x_shape": np.array(4)}, "x_shape must be a list of whole numbers"),
        ({"x_indices": np.array(3)}, "x_indices must be a list of whole numbers"),
        ({"x_indices": np.array([0.0, 1.5, 2.0])}, "x_indices must be a list of whole numbers, got float64"),
    ],
)
def test_compressed_rows_that_do_not_hold(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "bad.npz", {**SPARSE_PARTS, **changes})
    with pytest.raises(DataError, match=message):
        Graph.from_npz(path)


class _Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, evidence: Path) -> None:
        self.evidence = evidence

    def __reduce__(self) -> Any:
        return Path.touch, (self.evidence,)


@pytest.mark.parametrize("key", ["x", "edges", "y", "node_names"])
def test_pickled_objects_are_refused_and_never_run(key: str, tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    path = _write(tmp_path / "bomb.npz", {key: np.array([_Bomb(evidence)] * 4, dtype=object)})
    with pytest.raises(DataError, match=r"it holds pickled objects, which are never loaded$"):
        Graph.from_npz(path)
    assert not evidence.exists()
    # The bomb is a real one.
    np.load(path, allow_pickle=True)[key]
    assert evidence.exists()


def test_members_of_others_are_not_read(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.npz", {"unknown": np.array([_Bomb(tmp_path / "evidence")], dtype=object)})
    assert_same(Graph.from_npz(path), kite())
    assert not (tmp_path / "evidence").exists()


def test_a_bare_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    path = tmp_path / "bomb.npz"
    with path.open("wb") as file:
        np.save(file, np.array([_Bomb(evidence)], dtype=object))
    with pytest.raises(DataError, match=r"it holds pickled objects, which are never loaded$"):
        Graph.from_npz(path)
    assert not evidence.exists()


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with pytest.raises(DataError, match=r"no such file$"):
        Graph.from_npz(path)
    for content in (b"", b"PK", b"not an archive"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"damaged or not an .npz archive"):
            Graph.from_npz(path)
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(DataError, match="it is a single array"):
        Graph.from_npz(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("npz") / "whole.npz"
    kite(named=True).to_npz(path)
    return path.read_bytes()


def test_truncated_anywhere(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "part.npz"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"damaged or not an .npz archive"):
            Graph.from_npz(path)


@given(position=st.integers(0, 10_000), flip=st.integers(1, 255))
@settings(max_examples=300)
def test_a_flipped_byte_is_noticed_or_harmless(position: int, flip: int, whole: bytes, scratch: Path) -> None:
    damaged = bytearray(whole)
    damaged[position % len(whole)] ^= flip
    scratch.write_bytes(damaged)
    try:
        graph = Graph.from_npz(scratch)
    except InputError:
        return  # any other exception would be a traceback for the user
    # A checksum guards every array, so what still loads is the same graph; at most a name of a member was hit.
    assert_same(graph, kite(), names=False)
