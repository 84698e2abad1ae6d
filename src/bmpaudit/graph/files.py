"""Graphs in files: NumPy archives without pickles, and folders of tables (docs/formats.md)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse

from bmpaudit.graph.graph import Graph, NodeError, as_array
from bmpaudit.io.readers import CSV, Arrays, archive_names, read_archive, read_table
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import atomic_write
from bmpaudit.util.values import Ints

ALWAYS = ("y",)
DENSE, SPARSE = ("x",), ("x_indptr", "x_indices", "x_shape")
SOMETIMES = ("edges", "num_nodes", "x_data", "node_names", "class_names")


def read_npz(path: Path) -> Graph:
    """See `Graph.from_npz`."""
    names = archive_names(path, all_members=True)
    features = SPARSE if "x" not in names and not set(SPARSE).isdisjoint(names) else DENSE
    # Without edges, an array of another name might be the edges.
    is_whole = "edges" in names or set(names) <= {*ALWAYS, *features, *SOMETIMES}
    arrays = read_archive(path, SOMETIMES, required=(*ALWAYS, *features, *(() if is_whole else ("edges",))))
    try:
        labels = arrays["y"]
        num_nodes = arrays.get("num_nodes", np.array(labels.size))
        if num_nodes.size != 1 or num_nodes.item() != labels.size:
            got = " ".join(str(num_nodes).split())
            raise InputError(f"num_nodes must be {labels.size}, the length of y, got {got}")
        return Graph.from_edges(
            arrays.get("edges", np.empty((0, 2), dtype=np.int64)),
            arrays["x"] if "x" in arrays else _sparse_features(arrays),
            labels,
            node_names=_names(arrays, "node_names"),
            class_names=_names(arrays, "class_names"),
        )
    except InputError as wrong:
        raise DataError(f"{path}: {wrong}") from None


def write_npz(graph: Graph, path: Path) -> None:
    """See `Graph.to_npz`."""
    arrays: Arrays = {
        "edges": graph.edges.astype(np.int32),
        "y": graph.labels,
        "num_nodes": np.array(graph.num_nodes),
    }
    if isinstance(graph.features, np.ndarray):
        arrays["x"] = graph.features
    else:
        arrays["x_indptr"] = graph.features.indptr
        arrays["x_indices"] = graph.features.indices
        arrays["x_shape"] = np.array(graph.features.shape)
        if (graph.features.data != 1).any():
            arrays["x_data"] = graph.features.data
    if graph.node_names is not None:
        arrays["node_names"] = np.array(graph.node_names)
    if graph.class_names is not None:
        arrays["class_names"] = np.array(graph.class_names)
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


def _names(arrays: Arrays, key: str) -> list[str] | None:
    return [str(name) for name in arrays[key].ravel()] if key in arrays else None


# Tables of features and labels as graphs without edges.


def from_table(features: Any, labels: npt.ArrayLike) -> Graph:
    """See `Graph.from_table`."""
    classes, class_names = _classes(as_array("labels", labels))
    return Graph.from_edges(
        np.empty((0, 2), dtype=np.int64),
        features,
        classes,
        node_names=_row_names(features),
        class_names=class_names,
    )


def _classes(labels: npt.NDArray[Any]) -> tuple[Ints, list[str] | None]:
    """Class numbers from 0, and names of the classes unless the labels were such numbers already."""
    if labels.ndim != 1 or not len(labels):
        raise InputError(f"labels must have shape (num_rows,) with at least one row, got {labels.shape}")
    if labels.dtype.kind == "f":
        if not np.array_equal(labels, np.floor(labels)):  # also of NaN
            raise InputError("labels must be classes, got numbers that are not whole; a regression cannot be audited")
        labels = labels.astype(np.int64)
    values, classes = np.unique(labels if labels.dtype.kind in "iu" else labels.astype(str), return_inverse=True)
    if values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values))):
        return classes.astype(np.int64), None
    return classes.astype(np.int64), [str(value) for value in values]


def _row_names(features: Any) -> list[str] | None:
    """The index of a pandas table, unless it only counts the rows."""
    index = getattr(features, "index", None)
    if index is None or callable(index) or list(index) == list(range(len(index))):
        return None
    return [str(name) for name in index]


# CSV and Parquet tables, and where in them a row stands.


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


@overload
def find_table(folder: Path, name: str, *required: str) -> Table: ...
@overload
def find_table(folder: Path, name: str, *required: str, is_optional: bool) -> Table | None: ...
def find_table(folder: Path, name: str, *required: str, is_optional: bool = False) -> Table | None:
    """Reads `<name>.csv` or `<name>.parquet`, which must have the required columns.

    Args:
        folder: Where they are.
        name: Name of the table.
        required: Columns it must have.
        is_optional: Whether it may be missing, which gives None; not if a file is named like it otherwise.

    Raises:
        DataError: unless exactly one of them is there and can be read.
    """
    if is_optional and not any(folder.glob(f"{name}*")):
        return None
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


# Graphs as tables in a folder, `nodes` and perhaps `edges`, CSV or Parquet (docs/formats.md).


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


def _rows_of(edges: Table, column: str, row_of: pd.Series[int]) -> Ints:
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
