"""Graphs as tables in a folder, `nodes` and perhaps `edges`, CSV or Parquet (docs/formats.md)."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bmpaudit.arrays import Ints
from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.graph.graph import Graph
from bmpaudit.graph.node_error import NodeError
from bmpaudit.graph.table import FORMATS, TEXT_COLUMNS, Table, find_table
from bmpaudit.reading.table import read_table

NOT_FEATURES = ("node", "label", "class_name")


def read_folder(folder: Path) -> Graph:
    """See `Graph.from_folder`."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    nodes = find_table(folder, "nodes", "label")
    return _graph_of(nodes, find_table(folder, "edges", "source", "target", is_optional=True))


def read_nodes_file(path: Path) -> Graph:
    """See `Graph.from_nodes_file`."""
    return _graph_of(Table(path, read_table(path, text=TEXT_COLUMNS, required=("label",))), None)


def _graph_of(nodes: Table, edges: Table | None) -> Graph:
    if nodes.rows.empty:
        raise DataError(f"{nodes.path}: a graph must have at least one node, the table has none")
    names = _read_names(nodes)
    labels, class_names = _read_labels(nodes)
    columns = [str(column) for column in nodes.rows if column not in NOT_FEATURES]
    if not columns:
        raise DataError(f"{nodes.path}: a graph must have at least one feature column, the table has none")
    features = np.column_stack([nodes.numbers(column).to_numpy(dtype=np.float64) for column in columns])
    ends = [np.empty(0, dtype=np.int64)] * 2
    if edges is not None:
        row_of = pd.Series(np.arange(len(names)), index=pd.Index(names))
        ends = [_rows_of(edges, column, row_of) for column in ("source", "target")]
    is_numbered = names == [str(row) for row in range(len(names))]
    try:
        return Graph.from_edges(
            np.column_stack(ends),
            features,
            labels,
            node_names=None if is_numbered else names,
            class_names=class_names,
        )
    except NodeError as wrong:
        raise _with_place(wrong, nodes, columns, names) from None
    except InputError as wrong:
        raise DataError(f"{nodes.path}: {wrong}") from None


def write_folder(graph: Graph, folder: Path, table_format: str) -> None:
    """See `Graph.to_folder`."""
    if table_format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, got {table_format!r}")
    for other in (folder / f"{name}.{suffix}" for name in ("nodes", "edges") for suffix in FORMATS):
        if other.exists() and other.suffix != f".{table_format}":
            raise InputError(f"{other} already exists; {table_format} tables beside it would be ambiguous")
    names = np.array(graph.node_names or range(graph.num_nodes))
    described = pd.DataFrame({"node": names, "label": graph.labels})
    if graph.class_names is not None:
        num_nodes_of = np.bincount(graph.labels, minlength=graph.num_classes)
        if not num_nodes_of.all():
            empty = graph.class_names[int(num_nodes_of.argmin())]
            raise InputError(f"class {empty!r} has no nodes, so that its name has no place in a table; use to_npz")
        described["class_name"] = np.array(graph.class_names)[graph.labels]
    nodes = pd.concat(
        [
            described,
            pd.DataFrame(graph.dense_features, columns=[f"feature_{i}" for i in range(graph.num_features)]),
        ],
        axis=1,
    )
    edges = pd.DataFrame(names[graph.edges], columns=["source", "target"])
    for name, table in (("nodes", nodes), ("edges", edges)):
        with atomic_write(folder / f"{name}.{table_format}") as temporary:
            if table_format == "csv":
                # All text in quotes: a bare carriage return within a name would end the line.
                table.to_csv(temporary, index=False, quoting=csv.QUOTE_NONNUMERIC)
            else:
                table.to_parquet(temporary, index=False)


def _read_names(nodes: Table) -> list[str]:
    if "node" not in nodes.rows:
        return [str(row) for row in range(len(nodes.rows))]
    names = nodes.column("node").astype(str)
    is_repeated = names.duplicated().to_numpy()
    if is_repeated.any():
        row = int(is_repeated.argmax())
        first = int((names == names.iloc[row]).to_numpy().argmax())
        where = nodes.place(first).rpartition(": ")[2]
        raise DataError(f"{nodes.place(row)}: node {names.iloc[row]!r} is already on {where}")
    return [str(name) for name in names]


def _read_labels(nodes: Table) -> tuple[npt.NDArray[Any], list[str] | None]:
    """Whole numbers are class numbers, as everywhere; anything else names classes, numbered in alphabetical order."""
    column = nodes.column("label")
    class_names: list[str] | None = None
    if pd.api.types.is_integer_dtype(column):
        labels = column.to_numpy()
    else:
        values, labels = np.unique(column.astype(str).to_numpy(dtype=object), return_inverse=True)
        class_names = [str(value) for value in values]
    if "class_name" in nodes.rows:
        class_names = _read_class_names(nodes, labels)
    return labels, class_names


def _read_class_names(nodes: Table, labels: npt.NDArray[Any]) -> list[str]:
    names = nodes.column("class_name").astype(str)
    name_of: dict[int, str] = {}
    for row, (label, name) in enumerate(zip(labels.tolist(), names, strict=True)):
        if name_of.setdefault(label, name) != name:
            raise DataError(
                f"{nodes.place(row)}: label {label} must have one class_name, got {name!r} after {name_of[label]!r}"
            )
    absent = next((label for label in range(max(name_of) + 1) if label not in name_of), None)
    if min(name_of) >= 0 and absent is not None:
        raise DataError(
            f"{nodes.path}: with class_name, labels must be numbered without gaps, "
            f"got no label {absent} but {max(name_of)}"
        )
    return [name_of[label] for label in sorted(name_of)]


def _rows_of(edges: Table, column: str, row_of: "pd.Series[int]") -> Ints:
    ends = edges.column(column).astype(str)
    rows = row_of.reindex(ends).to_numpy()
    is_unknown = np.isnan(rows)
    if is_unknown.any():
        row = int(is_unknown.argmax())
        raise DataError(f"{edges.place(row)}: {column} {ends.iloc[row]!r} is not a node")
    return rows.astype(np.int64)


def _with_place(wrong: NodeError, nodes: Table, columns: list[str], names: list[str]) -> DataError:
    place = "at" if wrong.column is None else f"in column {columns[wrong.column]!r} of"
    return DataError(f"{nodes.place(wrong.node)}: {wrong.what} {place} node {names[wrong.node]!r}")
