import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planetoid_files import files_at_hand, python2_pickle, write_small_planetoid
from torch_geometric.datasets import Planetoid
from torch_geometric.utils import remove_self_loops, to_undirected

from bmpaudit import datasets
from bmpaudit.datasets.catalog import read_planetoid
from bmpaudit.graph.graph import GraphCleanedWarning
from bmpaudit.util.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::bmpaudit.GraphCleanedWarning")


@pytest.mark.parametrize(("name", "pyg_name"), [("cora", "Cora"), ("citeseer", "CiteSeer"), ("pubmed", "PubMed")])
def test_same_as_pyg_reads_the_same_files(name: str, pyg_name: str, tmp_path: Path) -> None:
    folder, form = files_at_hand(name)
    if form.reader != "planetoid":
        pytest.skip(f"{name} is at hand in its other form, which PyG does not read; test_content.py compares that")
    raw = tmp_path / pyg_name / "raw"
    raw.mkdir(parents=True)
    for file_name in form.sha256:
        shutil.copy(folder / file_name, raw)
    data: Any = Planetoid(str(tmp_path), pyg_name)[0]
    graph = datasets.load(name)
    np.testing.assert_array_equal(graph.dense_features, data.x.numpy())
    np.testing.assert_array_equal(graph.labels, data.y.numpy())
    edge_index = to_undirected(remove_self_loops(data.edge_index)[0])
    assert edge_index.shape[1] == 2 * graph.num_edges
    assert {(u, v) for u, v in edge_index.T.tolist() if u < v} == {(u, v) for u, v in graph.edges.tolist()}


def test_small_files_by_hand(tmp_path: Path) -> None:
    write_small_planetoid(tmp_path)
    graph = read_planetoid(tmp_path, "tiny")
    expected = np.eye(7, dtype=np.float32)
    expected[5] = 0  # test id 5 is skipped: a node without features, of class 0
    np.testing.assert_array_equal(graph.dense_features, expected)
    np.testing.assert_array_equal(graph.labels, [0, 1, 2, 2, 1, 0, 1])
    np.testing.assert_array_equal(graph.edges, [(0, 1), (0, 6), (3, 4)])


def test_cleaning_is_warned_about(tmp_path: Path) -> None:
    write_small_planetoid(tmp_path)
    with pytest.warns(GraphCleanedWarning, match="1 self-loops and 1 duplicates dropped"):
        read_planetoid(tmp_path, "tiny")


@pytest.mark.parametrize("part", ["x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"])
def test_a_missing_part(part: str, tmp_path: Path) -> None:
    write_small_planetoid(tmp_path)
    (tmp_path / f"ind.tiny.{part}").unlink()
    with pytest.raises(DataError, match=rf"ind\.tiny\.{part}: no such file$"):
        read_planetoid(tmp_path, "tiny")


@pytest.mark.parametrize("part", ["x", "tx", "allx", "y", "ty", "ally", "graph"])
def test_a_truncated_part(part: str, tmp_path: Path) -> None:
    write_small_planetoid(tmp_path)
    path = tmp_path / f"ind.tiny.{part}"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=rf"ind\.tiny\.{part}: truncated or damaged"):
        read_planetoid(tmp_path, "tiny")


@pytest.mark.parametrize(
    "changes",
    [
        {"test_index": ""},
        {"test_index": "3\nfour\n"},
        {"test_index": "4\n5\n6\n"},
        {"test_index": "3\n4\n5\n6\n"},
        {"allx": np.eye(3)},
        {"allx": {}},
        {"ty": np.zeros((3, 2))},
        {"ally": np.zeros((9, 3))},
        {"graph": {0: [99]}},
    ],
)
def test_parts_that_do_not_fit_together(changes: dict[str, Any], tmp_path: Path) -> None:
    write_small_planetoid(tmp_path, **changes)
    with pytest.raises(DataError, match=r"the files ind\.tiny\.\* do not fit together") as refusal:
        read_planetoid(tmp_path, "tiny")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"tx": [1, 2]},
        {"ally": python2_pickle([["a", "b", "c"]] * 3)},
        {"graph": [[1], [0]]},
        {"graph": {0: 1}},
        {"graph": {"zero": ["one"]}},
    ],
)
def test_parts_that_hold_something_else(changes: dict[str, Any], tmp_path: Path) -> None:
    write_small_planetoid(tmp_path, **changes)
    with pytest.raises(DataError, match=rf"ind\.tiny\.{next(iter(changes))}: refused: the pickle must hold an array, "):
        read_planetoid(tmp_path, "tiny")


def test_a_bomb_among_the_parts(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    write_small_planetoid(tmp_path, graph=f"cposix\nsystem\n(Vtouch '{evidence}'\ntR.".encode())
    with pytest.raises(DataError, match=r"ind\.tiny\.graph: refused: the pickle asks for posix\.system"):
        read_planetoid(tmp_path, "tiny")
    assert not evidence.exists()
