"""Graphs in files: NumPy archives without pickles, and folders of tables (docs/formats.md)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse

from bmpaudit.graph.graph import Graph, NodeError
from bmpaudit.io.readers import CSV, Arrays, archive_names, read_archive, read_table
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import atomic_write
from bmpaudit.util.values import Ints

SPARSE = ("x_indptr", "x_indices", "x_shape")
NAMES = ("node_names", "class_names")
SOMETIMES = ("edges", "num_nodes", "x_data", *NAMES)


def read_npz(path: Path) -> Graph:
    """See `Graph.from_npz`."""
    there = archive_names(path, all_members=True)
    required = ("y", *(SPARSE if "x" not in there and not set(SPARSE).isdisjoint(there) else ("x",)))
    # Without edges, an array of another name might be the edges.
    is_whole = "edges" in there or set(there) <= {*required, *SOMETIMES}
    arrays = read_archive(path, SOMETIMES, required=required if is_whole else (*required, "edges"))
    try:
        labels = arrays["y"]
        num_nodes = arrays.get("num_nodes", np.array(labels.size))
        if num_nodes.size != 1 or num_nodes.item() != labels.size:
            got = " ".join(str(num_nodes).split())
            raise InputError(f"num_nodes must be {labels.size}, the length of y, got {got}")
        features = arrays["x"] if "x" in arrays else _sparse_features(arrays)
        names: dict[str, Any] = {key: [str(name) for name in arrays[key].ravel()] for key in NAMES if key in arrays}
        return Graph.from_edges(arrays.get("edges", ()), features, labels, **names)
    except InputError as wrong:
        raise DataError(f"{path}: {wrong}") from None


def write_npz(graph: Graph, path: Path) -> None:
    """See `Graph.to_npz`."""
    edges, num_nodes, x = graph.edges.astype(np.int32), np.array(graph.num_nodes), graph.features
    arrays: Arrays = {"edges": edges, "y": graph.labels, "num_nodes": num_nodes}
    if isinstance(x, np.ndarray):
        arrays["x"] = x
    else:
        arrays |= {"x_indptr": x.indptr, "x_indices": x.indices, "x_shape": np.array(x.shape)}
        if (x.data != 1).any():
            arrays["x_data"] = x.data
    for name in NAMES:
        if getattr(graph, name) is not None:
            arrays[name] = np.array(getattr(graph, name))
    with atomic_write(path) as temporary, temporary.open("wb") as archive:
        np.savez_compressed(archive, allow_pickle=False, **arrays)


def _sparse_features(arrays: Arrays) -> scipy.sparse.csr_array:
    indices, indptr, shape = arrays["x_indices"], arrays["x_indptr"], arrays["x_shape"]
    data = arrays.get("x_data", np.ones(indices.shape, dtype=np.float32))
    for name, array in (("x_indices", indices), ("x_indptr", indptr), ("x_shape", shape)):
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise InputError(f"{name} must be a list of whole numbers, got {array.dtype} of shape {array.shape}")
    try:
        return scipy.sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    except ValueError as failure:
        raise InputError(f"features must be a valid sparse matrix: {failure}") from None


FORMATS = ("csv", "parquet")
TEXT_COLUMNS = ("node", "class_name", "source", "target")


@dataclass(frozen=True)
class Table:
    """A table and the file it was read from."""

    path: Path
    rows: pd.DataFrame

    def place(self, row: int) -> str:
        """Where to look for a row: the line of a CSV file, counted from 1, or the row of a Parquet file, from 0."""
        if self.path.suffix == CSV:
            return f"{self.path}: line {_line_of(self.path, row)}"
        return f"{self.path}: row {row}"

    def column(self, name: str) -> pd.Series[Any]:
        """A column without missing values."""
        column = self.rows[name]
        is_missing = column.isna().to_numpy()
        if is_missing.any():
            raise DataError(f"{self.place(int(is_missing.argmax()))}: {name} is missing")
        return column

    def numbers(self, name: str) -> pd.Series[Any]:
        """A column of numbers, none of them missing."""
        column = self.column(name)
        if pd.api.types.is_numeric_dtype(column):
            return column
        is_text = pd.to_numeric(column, errors="coerce").isna().to_numpy()
        if not is_text.any():  # digits, stored as text
            raise DataError(f"{self.path}: column {name!r} must hold numbers, got {column.dtype}")
        row = int(is_text.argmax())
        raise DataError(f"{self.place(row)}: {name} must be a number, got {str(column.iloc[row])!r}")


def _find_table(folder: Path, name: str, *required: str) -> Table:
    """Reads `<name>.csv` or `<name>.parquet`, exactly one of which must be there, with the required columns."""
    paths = [path for path in (folder / f"{name}.{suffix}" for suffix in FORMATS) if path.exists()]
    if len(paths) != 1:
        raise DataError(
            f"{folder}: must have one of {name}.csv and {name}.parquet, has {'both' if paths else 'neither'}"
        )
    return Table(paths[0], read_table(paths[0], text=TEXT_COLUMNS, required=required))


def _line_of(path: Path, row: int) -> int:
    """The line on which a row of a CSV file begins: names may hold line breaks, and blank lines are skipped."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        records = csv.reader(file)
        number, line = -1, 1  # the header is the first record
        for record in records:
            is_blank = not record or (len(record) == 1 and not record[0].strip())
            if not is_blank and number == row:
                return line
            number += not is_blank
            line = records.line_num + 1
    return row + 2


NOT_FEATURES = ("node", "label", "class_name")


def read_folder(folder: Path) -> Graph:
    """See `Graph.from_folder`."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    # What is named like the edges otherwise, such as edges.tsv, is not taken for none.
    edges = _find_table(folder, "edges", "source", "target") if any(folder.glob("edges*")) else None
    return _graph_of(_find_table(folder, "nodes", "label"), edges)


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
    pairs: Any = ()
    if edges is not None:
        row_of = pd.Series(np.arange(len(names)), index=pd.Index(names))
        pairs = np.column_stack([_rows_of(edges, column, row_of) for column in ("source", "target")])
    node_names = None if names == [str(row) for row in range(len(names))] else names
    try:
        return Graph.from_edges(pairs, features, labels, node_names=node_names, class_names=class_names)
    except NodeError as wrong:
        place = "at" if wrong.column is None else f"in column {columns[wrong.column]!r} of"
        raise DataError(f"{nodes.place(wrong.node)}: {wrong.what} {place} node {names[wrong.node]!r}") from None
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
    features = pd.DataFrame(graph.dense_features, columns=[f"feature_{i}" for i in range(graph.num_features)])
    nodes = pd.concat([described, features], axis=1)
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
    if "class_name" not in nodes.rows:
        return labels, class_names
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
    return labels, [name_of[label] for label in sorted(name_of)]


def _rows_of(edges: Table, column: str, row_of: pd.Series[int]) -> Ints:
    ends = edges.column(column).astype(str)
    rows = row_of.reindex(ends).to_numpy()
    is_unknown = np.isnan(rows)
    if is_unknown.any():
        row = int(is_unknown.argmax())
        raise DataError(f"{edges.place(row)}: {column} {ends.iloc[row]!r} is not a node")
    return rows.astype(np.int64)
