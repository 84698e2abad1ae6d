"""Graphs as two tables in a folder, `nodes` and `edges`, CSV or Parquet (docs/formats.md)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

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
    names = nodes["node"].astype(str) if "node" in nodes else pd.Series([str(row) for row in range(len(nodes))])
    repeated = names[names.duplicated()]
    if len(repeated):
        raise DataError(f"{nodes_path}: row {repeated.index[0] + 2}: node {repeated.iloc[0]!r} was named before")
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
            features.to_numpy(dtype=np.float32),
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
    names = np.array(graph.node_names or range(graph.num_nodes))
    described = pd.DataFrame({"node": names, "label": graph.labels})
    if graph.class_names is not None:
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
            write: Callable[..., object] = table.to_csv if table_format == "csv" else table.to_parquet
            write(temporary, index=False)


def _find_table(folder: Path, name: str) -> Path:
    found = [path for path in (folder / f"{name}.{suffix}" for suffix in FORMATS) if path.exists()]
    if len(found) != 1:
        have = "has both" if found else "has neither"
        raise DataError(f"{folder}: must have one of {name}.csv and {name}.parquet, {have}")
    return found[0]


def _read_table(path: Path) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        # Names stay text, so that "007" is not node 7 and "NA" is not a missing value.
        text_columns = dict.fromkeys(("node", "source", "target"), str)
        return pd.read_csv(path, dtype=text_columns, keep_default_na=False, na_values=[""])
    except (
        ValueError,
        OSError,
    ) as damage:  # pandas' and pyarrow's parsing errors are ValueErrors or OSErrors
        raise DataError(f"{path}: damaged or not a {path.suffix[1:]} table: {str(damage).splitlines()[0]}") from None


def _read_labels(path: Path, nodes: pd.DataFrame) -> tuple[npt.NDArray[np.int64], list[str] | None]:
    column = nodes["label"]
    if column.isna().any():
        raise DataError(f"{path}: row {int(column.isna().to_numpy().argmax()) + 2}: label is missing")
    if not pd.api.types.is_integer_dtype(column):
        column = column.astype(str)
    values, codes = np.unique(column.to_numpy(), return_inverse=True)
    if "class_name" in nodes:
        pairs = nodes[["label", "class_name"]].drop_duplicates().sort_values("label")
        if len(pairs) != len(values):
            label = pairs["label"][pairs["label"].duplicated()].iloc[0]
            raise DataError(f"{path}: label {label} has more than one class_name")
        return codes.astype(np.int64), [str(name) for name in pairs["class_name"]]
    is_numbered = np.array_equal(values, np.arange(len(values)))
    return codes.astype(np.int64), None if is_numbered else [str(value) for value in values]


def _rows_of(path: Path, ends: "pd.Series[Any]", row_of: "pd.Series[int]") -> npt.NDArray[np.int64]:
    rows = row_of.reindex(ends.astype(str)).to_numpy()
    unknown = np.isnan(rows)
    if unknown.any():
        row = int(unknown.argmax())
        raise DataError(f"{path}: row {row + 2}: {ends.name} {ends.iloc[row]!r} is not a node")
    return rows.astype(np.int64)
