"""Tables as graphs without edges, from memory and from files."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.util.errors import DataError, InputError

FEATURES = np.array([[0.5, 1.0], [0.1, 2.0], [0.9, 3.0]])


@pytest.mark.parametrize(
    ("labels", "classes", "names"),
    [
        ([0, 1, 0], [0, 1, 0], None),
        (np.array([1.0, 0.0, 1.0]), [1, 0, 1], None),
        ([5, 2, 5], [1, 0, 1], ("2", "5")),
        ([-1, 1, 1], [0, 1, 1], ("-1", "1")),
        (["yes", "no", "no"], [1, 0, 0], ("no", "yes")),
        ([True, False, True], [1, 0, 1], ("False", "True")),
        (pd.Series(["b", "a", "a"], dtype="category"), [1, 0, 0], ("a", "b")),
    ],
)
def test_labels_of_any_kind_are_classes(labels: Any, classes: list[int], names: tuple[str, ...] | None) -> None:
    graph = Graph.from_table(FEATURES, labels)
    assert graph.num_edges == 0
    assert graph.labels.tolist() == classes
    assert graph.class_names == names


def test_features_come_from_arrays_pandas_and_sparse_matrices() -> None:
    plain = Graph.from_table(FEATURES, [0, 1, 0])
    assert plain == Graph.from_table(scipy.sparse.csr_array(FEATURES), [0, 1, 0])
    named = Graph.from_table(pd.DataFrame(FEATURES, index=["ann", "bob", "cy"]), [0, 1, 0])
    assert named == plain
    assert named.node_names == ("ann", "bob", "cy")
    assert Graph.from_table(pd.DataFrame(FEATURES), [0, 1, 0]).node_names is None


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (FEATURES, [0.5, 1.2, 3.1], "labels must be classes, got numbers that are not whole; a regression cannot be"),
        (FEATURES, [0.0, float("nan"), 1.0], "labels must be classes"),
        (FEATURES, [[0], [1], [0]], r"labels must have shape \(num_rows,\) .*, got \(3, 1\)"),
        (FEATURES, [], "with at least one row"),
        (FEATURES, [0, 1], "features must have one row for each of 2 labels, got 3 rows"),
        (pd.DataFrame({"a": ["x", "y", "z"]}), [0, 1, 0], "features must be numbers, got 'x'"),
    ],
)
def test_what_is_no_table_is_refused(features: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graph.from_table(features, labels)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_is_read_from_one_file_or_a_folder_without_edges(suffix: str, tmp_path: Path) -> None:
    rows = pd.DataFrame({"label": ["no", "yes", "no"], "age": [30.5, 41.0, 28.0], "height": [1.7, 1.8, 1.6]})
    path = tmp_path / f"nodes.{suffix}"
    rows.to_csv(path, index=False) if suffix == "csv" else rows.to_parquet(path, index=False)
    expected = Graph.from_table(rows[["age", "height"]], rows["label"])
    for where in (path, tmp_path):
        graph = datasets.load(where)
        assert graph == expected
        assert graph.class_names == ("no", "yes")


def test_edges_of_another_name_are_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("label,a\n0,1.0\n1,2.0\n")
    (tmp_path / "edges.txt").write_text("source,target\n0,1\n")
    with pytest.raises(DataError, match=r"must have one of edges\.csv and edges\.parquet, has neither"):
        datasets.load(tmp_path)


def test_an_archive_of_features_and_labels_is_a_table(tmp_path: Path) -> None:
    np.savez(tmp_path / "table.npz", x=FEATURES, y=[0, 1, 0])
    assert Graph.from_npz(tmp_path / "table.npz") == Graph.from_table(FEATURES, [0, 1, 0])
