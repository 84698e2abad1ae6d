from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from small_graphs import DENSE, assert_same, graphs, kite, sparse_rows

from bmpaudit.graph.graph import Graph, GraphCleanedWarning
from bmpaudit.util.errors import DataError, InputError

FORMATS = ("csv", "parquet")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {table_format: tmp_path_factory.mktemp(table_format) for table_format in FORMATS}


def _keeps_its_names(graph: Graph) -> bool:
    """A class without nodes has no place in a table, and nodes called 0, 1, 2, … are nodes without names."""
    if graph.class_names is not None and len(np.unique(graph.labels)) < graph.num_classes:
        return False
    return graph.node_names != tuple(str(node) for node in range(graph.num_nodes))


@pytest.mark.parametrize("table_format", FORMATS)
@given(graph=graphs())
def test_round_trip(graph: Graph, table_format: str, scratch: dict[str, Path]) -> None:
    assume(_keeps_its_names(graph))
    graph.to_folder(scratch[table_format], table_format)
    assert_same(Graph.from_folder(scratch[table_format]), graph)


@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize("features", [DENSE, sparse_rows()])
@pytest.mark.parametrize("named", [False, True])
def test_round_trip_by_hand(features: np.ndarray, named: bool, table_format: str, tmp_path: Path) -> None:
    kite(features, named=named).to_folder(tmp_path / "kite", table_format)
    assert_same(Graph.from_folder(tmp_path / "kite"), kite(features, named=named))
    assert sorted(path.name for path in (tmp_path / "kite").iterdir()) == [
        f"edges.{table_format}",
        f"nodes.{table_format}",
    ]


@pytest.mark.parametrize("table_format", FORMATS)
def test_names_with_ends_of_lines_in_them(table_format: str, tmp_path: Path) -> None:
    names = ["\r", "a\rb", "\r\n", '\n,"']
    graph = Graph.from_edges([(0, 1), (2, 3)], DENSE, [0, 1, 2, 3], node_names=names, class_names=names)
    graph.to_folder(tmp_path, table_format)
    assert_same(Graph.from_folder(tmp_path), graph)


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_class_without_nodes_stays_a_class(table_format: str, tmp_path: Path) -> None:
    graph = Graph.from_edges([(0, 1)], [[1.0], [2.0]], [0, 2])
    graph.to_folder(tmp_path, table_format)
    assert_same(Graph.from_folder(tmp_path), graph)


def test_the_name_of_a_class_without_nodes_has_no_place(tmp_path: Path) -> None:
    graph = Graph.from_edges([(0, 1)], [[1.0], [2.0]], [0, 1], class_names=["a", "b", "c"])
    with pytest.raises(InputError, match=r"use to_npz$"):
        graph.to_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^format must be one of csv, parquet, got 'xlsx'$"):
        kite().to_folder(tmp_path, "xlsx")


def test_tables_of_one_format_are_not_put_beside_those_of_another(tmp_path: Path) -> None:
    kite().to_folder(tmp_path, "csv")
    with pytest.raises(InputError, match=r"nodes.csv already exists"):
        kite().to_folder(tmp_path, "parquet")
    assert_same(Graph.from_folder(tmp_path), kite())


# Tables written by others.

NODES = "node,label,weight\na,0,0.1\nb,1,2\nc,1,3\n"
EDGES = "source,target\na,b\nc,b\n"


def _read(folder: Path, nodes: str = NODES, edges: str = EDGES) -> Graph:
    (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
    (folder / "edges.csv").write_text(edges, encoding="utf-8")
    return Graph.from_folder(folder)


def test_csv_by_hand(tmp_path: Path) -> None:
    graph = _read(tmp_path)
    np.testing.assert_array_equal(graph.edges, [(0, 1), (1, 2)])
    np.testing.assert_array_equal(graph.dense_features, np.array([[0.1], [2], [3]], dtype=np.float32))
    assert graph.node_names == ("a", "b", "c")
    assert graph.class_names is None


def test_without_names_nodes_are_numbered_by_their_rows(tmp_path: Path) -> None:
    graph = _read(tmp_path, "label,weight\n0,0.1\n1,2\n1,3\n", "source,target\n0,1\n2,1\n")
    assert graph == _read(tmp_path)
    assert graph.node_names is None


def test_numbered_names_in_order_are_not_names(tmp_path: Path) -> None:
    in_order = _read(tmp_path, "node,label,weight\n0,0,0.1\n1,1,2\n2,1,3\n", "source,target\n0,1\n2,1\n")
    assert in_order == _read(tmp_path)
    assert in_order.node_names is None


def test_numbered_names_out_of_order_are_names(tmp_path: Path) -> None:
    graph = _read(tmp_path, "node,label,weight\n2,0,0.1\n1,1,2\n0,1,3\n", "source,target\n2,1\n0,1\n")
    assert graph == _read(tmp_path)
    assert graph.node_names == ("2", "1", "0")


def test_names_are_text(tmp_path: Path) -> None:
    graph = _read(tmp_path, "node,label,weight\n007,0,1\n7,1,2\nNA,1,3\n", "source,target\n007,7\nNA,7\n")
    assert graph.node_names == ("007", "7", "NA")


def test_text_labels_are_class_names(tmp_path: Path) -> None:
    graph = _read(tmp_path, NODES.replace(",0,", ",red,").replace(",1,", ",blue,"))
    np.testing.assert_array_equal(graph.labels, [1, 0, 0])
    assert graph.class_names == ("blue", "red")


def test_columns_in_any_order_and_features_of_several_types(tmp_path: Path) -> None:
    graph = _read(tmp_path, "big,flag,label,node\n1e3,True,0,a\n2,False,1,b\n3,True,1,c\n")
    np.testing.assert_array_equal(graph.dense_features, [[1000, 1], [2, 0], [3, 1]])


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path: Path) -> None:
    assert _read(tmp_path, "\N{BYTE ORDER MARK}" + NODES) == _read(tmp_path)


def test_no_edges(tmp_path: Path) -> None:
    assert _read(tmp_path, edges="source,target\n").num_edges == 0


def test_csv_nodes_and_parquet_edges(tmp_path: Path) -> None:
    expected = _read(tmp_path)
    (tmp_path / "edges.csv").unlink()
    pd.DataFrame({"source": ["a", "c"], "target": ["b", "b"]}).to_parquet(tmp_path / "edges.parquet")
    assert Graph.from_folder(tmp_path) == expected


def test_parquet_with_whole_numbers_for_names(tmp_path: Path) -> None:
    nodes = pd.DataFrame({"node": [30, 10, 20], "label": [0, 1, 1], "weight": [0.1, 2, 3]})
    nodes.to_parquet(tmp_path / "nodes.parquet", index=False)
    pd.DataFrame({"source": [30, 20], "target": [10, 10]}).to_parquet(tmp_path / "edges.parquet", index=False)
    graph = Graph.from_folder(tmp_path)
    np.testing.assert_array_equal(graph.edges, [(0, 1), (1, 2)])
    assert graph.node_names == ("30", "10", "20")


def test_parquet_with_the_names_in_pandas_index(tmp_path: Path) -> None:
    nodes = pd.DataFrame({"node": [2, 0, 1], "label": [0, 1, 1], "weight": [0.1, 2, 3]})
    nodes.set_index("node").to_parquet(tmp_path / "nodes.parquet")
    pd.DataFrame({"source": [2, 1], "target": [0, 0]}).to_parquet(tmp_path / "edges.parquet")
    graph = Graph.from_folder(tmp_path)
    np.testing.assert_array_equal(graph.edges, [(0, 1), (1, 2)])
    assert graph.node_names == ("2", "0", "1")


def test_cleaning_is_warned_about(tmp_path: Path) -> None:
    with pytest.warns(GraphCleanedWarning, match="1 self-loops and 1 duplicates dropped"):
        _read(tmp_path, edges="source,target\na,b\na,b\nc,c\n")


HEADER = "node,label,weight\n"
AT_B = "in column 'weight' of node 'b'"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("node,weight\na,1\n", "/nodes.csv: column 'label' is missing; the first columns are node, weight"),
        (f"{HEADER}a,0,1\nb,1,2\na,1,3\n", "/nodes.csv: line 4: node 'a' is already on line 2"),
        (f"{HEADER}a,0,1\n,1,2\n", "/nodes.csv: line 3: node is missing"),
        (f"{HEADER}a,0,1\nb,,2\n", "/nodes.csv: line 3: label is missing"),
        (
            f"{HEADER}a,0,1\nb,-1,2\nc,1,2\n",
            "/nodes.csv: line 3: labels must not be negative (every node needs a class), got -1 at node 'b'",
        ),
        (f"{HEADER}a,0,1\nb,0,2\nc,0,2\n", "/nodes.csv: labels must name at least two classes, got only class 0"),
        (f"{HEADER}a,0,1\nb,1,\nc,1,2\n", "/nodes.csv: line 3: weight is missing"),
        (f"{HEADER}a,0,1\nb,1,nan\nc,1,2\n", "/nodes.csv: line 3: weight must be a number, got 'nan'"),
        (f"{HEADER}a,0,1\nb,1,inf\nc,1,2\n", f"/nodes.csv: line 3: features must be finite, got inf {AT_B}"),
        (
            f"{HEADER}a,0,1\nb,1,1e99\nc,1,2\n",
            f"/nodes.csv: line 3: features must be finite in single precision, got 1e+99 {AT_B}",
        ),
        (f"{HEADER}a,0,1\nb,1,two\nc,1,2\n", "/nodes.csv: line 3: weight must be a number, got 'two'"),
        (
            "node,label\na,0\nb,1\nc,1\n",
            "/nodes.csv: a graph must have at least one feature column, the table has none",
        ),
        (HEADER, "/nodes.csv: a graph must have at least one node, the table has none"),
        ("", "/nodes.csv: damaged or not a csv table: "),
        # Rows longer than the header: pandas would shift all columns by one.
        (f"{HEADER}a,0,1,9\nb,1,2,9\nc,1,3,9\n", "/nodes.csv: damaged or not a csv table: "),
        (f"{HEADER}a,0,1\nb,1,2,9\n", "/nodes.csv: damaged or not a csv table: "),
        (
            "label,class_name,w\n0,x,1\n1,y,2\n1,z,3\n",
            "/nodes.csv: line 4: label 1 must have one class_name, got 'z' after 'y'",
        ),
        ("label,class_name,w\n0,x,1\n1,,2\n", "/nodes.csv: line 3: class_name is missing"),
        ("label,class_name,w\n0,x,1\n2,y,2\n", "/nodes.csv: with class_name, labels must be numbered without gaps"),
    ],
)
def test_bad_nodes_are_refused_in_one_line(nodes: str, message: str, tmp_path: Path) -> None:
    edges = EDGES if nodes.startswith("node") else "source,target\n0,1\n"
    with pytest.raises(DataError) as refusal:
        _read(tmp_path, nodes, edges)
    assert str(refusal.value).startswith(f"{tmp_path}{message}")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("source,to\na,b\n", "column 'target' is missing; the first columns are source, to"),
        ("source,target\na,b\na,d\n", "line 3: target 'd' is not a node"),
        ("source,target\na,b\nd,a\n", "line 3: source 'd' is not a node"),
        ("source,target\na,\n", "line 2: target is missing"),
    ],
)
def test_bad_edges_are_refused_in_one_line(edges: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refusal:
        _read(tmp_path, edges=edges)
    assert str(refusal.value) == f"{tmp_path}/edges.csv: {message}"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({"node": ["a", None, "c"]}, "row 1: node is missing"),
        ({"label": [0, None, 1]}, "row 1: label is missing"),
        ({"weight": ["1", "2", "3"]}, "column 'weight' must hold numbers, got str"),
    ],
)
def test_bad_parquet_tables(nodes: dict[str, list[Any]], message: str, tmp_path: Path) -> None:
    good: dict[str, list[Any]] = {"node": ["a", "b", "c"], "label": [0, 1, 1], "weight": [1.0, 2.0, 3.0]}
    pd.DataFrame({**good, **nodes}).to_parquet(tmp_path / "nodes.parquet")
    pd.DataFrame({"source": ["a"], "target": ["b"]}).to_parquet(tmp_path / "edges.parquet")
    with pytest.raises(DataError) as refusal:
        Graph.from_folder(tmp_path)
    assert str(refusal.value) == f"{tmp_path}/nodes.parquet: {message}"


def test_tables_that_are_not_there_or_there_twice(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such folder$"):
        Graph.from_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"must have one of nodes.csv and nodes.parquet, has neither$"):
        Graph.from_folder(tmp_path)
    _read(tmp_path)
    (tmp_path / "nodes.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"must have one of nodes.csv and nodes.parquet, has both$"):
        Graph.from_folder(tmp_path)


@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize("table", ["nodes", "edges"])
def test_files_that_are_not_tables(table: str, table_format: str, tmp_path: Path) -> None:
    kite().to_folder(tmp_path, table_format)
    (tmp_path / f"{table}.{table_format}").write_bytes(b"\xff\xfe\x00PAR1")
    with pytest.raises(DataError) as refusal:
        Graph.from_folder(tmp_path)
    assert "\n" not in str(refusal.value)


def test_truncated_parquet(tmp_path: Path) -> None:
    kite().to_folder(tmp_path, "parquet")
    whole = (tmp_path / "nodes.parquet").read_bytes()
    for length in range(0, len(whole), 97):
        (tmp_path / "nodes.parquet").write_bytes(whole[:length])
        with pytest.raises(DataError, match="damaged or not a parquet table"):
            Graph.from_folder(tmp_path)


# Lines are counted as an editor counts them.


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ('node,label,weight\n"a\nand\r\nb",0,1\nb,1,inf\nc,1,2\n', 5),
        ("node,label,weight\n\na,0,1\n\n \nb,1,inf\nc,1,2\n", 6),
        ("\nnode,label,weight\na,0,1\nb,1,inf\nc,1,2\n", 4),
        ("node,label,weight\r\na,0,1\r\nb,1,inf\r\nc,1,2\r\n", 3),
        ('\N{BYTE ORDER MARK}"node","label","weight"\na,0,1\nb,1,inf\nc,1,2', 3),
    ],
)
def test_lines_are_those_of_the_file(nodes: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(nodes, encoding="utf-8", newline="")
    (tmp_path / "edges.csv").write_text("source,target\nb,c\n")
    with pytest.raises(
        DataError, match=rf"nodes\.csv: line {line}: features must be finite, got inf in column 'weight'"
    ):
        Graph.from_folder(tmp_path)


def test_rows_of_parquet_tables_are_counted_from_zero(tmp_path: Path) -> None:
    nodes = pd.DataFrame({"node": ["a", "b"], "label": [0, 1], "age": [1.0, 2.0], "weight": [1.0, np.inf]})
    nodes.to_parquet(tmp_path / "nodes.parquet")
    pd.DataFrame({"source": ["a"], "target": ["b"]}).to_parquet(tmp_path / "edges.parquet")
    with pytest.raises(
        DataError, match=r"nodes\.parquet: row 1: features must be finite, got inf in column 'weight' of node 'b'$"
    ):
        Graph.from_folder(tmp_path)


def test_a_folder_in_the_place_of_a_table(tmp_path: Path) -> None:
    _read(tmp_path)
    (tmp_path / "nodes.csv").unlink()
    (tmp_path / "nodes.csv").mkdir()
    with pytest.raises(DataError, match=r"nodes\.csv: Is a directory$"):
        Graph.from_folder(tmp_path)
