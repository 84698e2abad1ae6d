"""Graphs as two tables in a folder, `nodes` and `edges`, CSV or Parquet (docs/formats.md)."""

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet

from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.graph.graph import Graph

FORMATS = ("csv", "parquet")
NOT_FEATURES = ("node", "label", "class_name")


def read_folder(folder: Path) -> Graph:
    """See `Graph.from_folder`."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    nodes_path, edges_path = _find_table(folder, "nodes"), _find_table(folder, "edges")
    nodes, edges = _read_table(nodes_path), _read_table(edges_path)
    for path, table, columns in ((nodes_path, nodes, ["label"]), (edges_path, edges, ["source", "target"])):
        for column in columns:
            if column not in table:
                raise DataError(f"{path}: column {column!r} is missing; found {', '.join(map(str, table.columns[:8]))}")
    if nodes.empty:
        raise DataError(f"{nodes_path}: a graph must have at least one node, the table has none")
    names = _read_names(nodes_path, nodes)
    labels, class_names = _read_labels(nodes_path, nodes)
    features = nodes.drop(columns=[c for c in NOT_FEATURES if c in nodes])
    for feature in features:
        if not pd.api.types.is_numeric_dtype(features[feature]):
            raise DataError(f"{nodes_path}: feature column {feature!r} must hold numbers only")
    row_of = pd.Series(np.arange(len(names)), index=pd.Index(names))
    ends = [_rows_of(edges_path, edges[column], row_of) for column in ("source", "target")]
    is_numbered = "node" not in nodes or list(names) == [str(row) for row in range(len(names))]
    try:
        return Graph.from_edges(
            np.column_stack(ends),
            features.to_numpy(dtype=np.float64),
            labels,
            node_names=None if is_numbered else list(names),
            class_names=class_names,
        )
    except InputError as wrong:
        raise DataError(f"{folder}: {wrong}") from None


def write_folder(graph: Graph, folder: Path, table_format: str) -> None:
    """See `Graph.to_folder`."""
    if table_format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, got {table_format!r}")
    for other in (folder / f"{name}.{suffix}" for name in ("nodes", "edges") for suffix in FORMATS):
        if other.exists() and other.suffix != f".{table_format}":
            raise InputError(f"{other} is there already; {table_format} tables beside it would be ambiguous")
    names = np.array(graph.node_names or range(graph.num_nodes))
    described = pd.DataFrame({"node": names, "label": graph.labels})
    if graph.class_names is not None:
        if len(np.unique(graph.labels)) != graph.num_classes:
            raise InputError("a class without a node has no place for its name in a table; use to_npz")
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


def _find_table(folder: Path, name: str) -> Path:
    found = [path for path in (folder / f"{name}.{suffix}" for suffix in FORMATS) if path.exists()]
    if len(found) != 1:
        have = "has both" if found else "has neither"
        raise DataError(f"{folder}: must have one of {name}.csv and {name}.parquet, {have}")
    return found[0]


def _read_table(path: Path) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            # Without pandas' metadata, which would hide a column that was once an index.
            return pyarrow.parquet.read_table(path).to_pandas(ignore_metadata=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                # Names stay text, so that "007" is not node 7 and "NA" is not a missing value.
                dtype=dict.fromkeys(("node", "class_name", "source", "target"), str),
                keep_default_na=False,
                na_values=[""],
                index_col=False,  # else rows longer than the header would shift all columns
            )
    # pandas' and pyarrow's parsing errors are ValueErrors or OSErrors
    except (ValueError, OSError, pd.errors.ParserWarning) as damage:
        raise DataError(f"{path}: damaged or not a {path.suffix[1:]} table: {str(damage).splitlines()[0]}") from None


def _read_names(path: Path, nodes: pd.DataFrame) -> "pd.Series[str]":
    if "node" not in nodes:
        return pd.Series([str(row) for row in range(len(nodes))])
    _refuse_missing(path, nodes["node"])
    names = nodes["node"].astype(str)
    repeated = names.duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        raise DataError(f"{_place(path, row)}: node {names.iloc[row]!r} was named before")
    return names


def _read_labels(path: Path, nodes: pd.DataFrame) -> tuple[npt.NDArray[np.int64], list[str] | None]:
    """Whole numbers are class numbers, as everywhere; anything else names classes, numbered in alphabetical order."""
    column = nodes["label"]
    _refuse_missing(path, column)
    class_names: list[str] | None = None
    if pd.api.types.is_integer_dtype(column):
        labels = column.to_numpy(dtype=np.int64)
    else:
        values, labels = np.unique(column.astype(str).to_numpy(dtype=object), return_inverse=True)
        class_names = [str(value) for value in values]
    if "class_name" in nodes:
        class_names = _read_class_names(path, labels, nodes["class_name"])
    return labels, class_names


def _read_class_names(path: Path, labels: npt.NDArray[np.int64], names: "pd.Series[str]") -> list[str]:
    _refuse_missing(path, names)
    pairs = pd.DataFrame({"label": labels, "name": names.astype(str)}).drop_duplicates().sort_values("label")
    twice = pairs["label"].duplicated().to_numpy()
    if twice.any():
        raise DataError(f"{path}: label {pairs['label'].iloc[int(twice.argmax())]} has more than one class_name")
    if labels.min() >= 0 and len(pairs) != labels.max() + 1:
        raise DataError(
            f"{path}: with class_name, labels must be numbered without gaps, got {len(pairs)} up to {labels.max()}"
        )
    return [str(name) for name in pairs["name"]]


def _refuse_missing(path: Path, column: "pd.Series[Any]") -> None:
    missing = column.isna().to_numpy()
    if missing.any():
        raise DataError(f"{_place(path, int(missing.argmax()))}: {column.name} is missing")


def _rows_of(path: Path, ends: "pd.Series[Any]", row_of: "pd.Series[int]") -> npt.NDArray[np.int64]:
    _refuse_missing(path, ends)
    rows = row_of.reindex(ends.astype(str)).to_numpy()
    unknown = np.isnan(rows)
    if unknown.any():
        row = int(unknown.argmax())
        raise DataError(f"{_place(path, row)}: {ends.name} {str(ends.iloc[row])!r} is not a node")
    return rows.astype(np.int64)


def _place(path: Path, row: int) -> str:
    """Where to look: editors count lines from 1, and the first is the header; Parquet has rows only."""
    return f"{path}: line {row + 2}" if path.suffix == ".csv" else f"{path}: row {row}"
