import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest
import scipy.sparse.csgraph
from planetoid_files import files_at_hand

from bmpaudit import datasets
from bmpaudit.datasets import NAMED_DATASETS, catalog
from bmpaudit.graph.graph import Graph
from bmpaudit.util.errors import DataError

SIZES = {
    "cora": (2_708, 5_278, 1_433, 7),
    "citeseer": (3_327, 4_552, 3_703, 6),
    "pubmed": (19_717, 44_324, 500, 3),
    "demo": (1_000, 1_977, 600, 5),
    "amazon_photo": (7_650, 119_081, 745, 8),
    "coauthor_cs": (18_333, 81_894, 6_805, 15),
}


def _sizes(graph: Graph) -> tuple[int, int, int, int]:
    return graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes


def _num_components(graph: Graph) -> int:
    return int(scipy.sparse.csgraph.connected_components(graph.adjacency)[0])


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed", "demo"])
def test_named_data_sets_have_their_published_size(name: str) -> None:
    assert _sizes(datasets.load(name)) == SIZES[name]


def test_everything_at_hand_loads() -> None:
    at_hand = datasets.at_hand()
    assert {"cora", "citeseer", "pubmed", "demo"} <= set(at_hand)
    for name in at_hand:
        graph = datasets.load(name)
        assert _sizes(graph) == SIZES.get(name, _sizes(graph))


def test_facts_about_cora() -> None:
    cora = datasets.load("cora")
    assert _num_components(cora) == 78
    assert np.count_nonzero(cora.dense_features) == 49_216


def test_facts_about_citeseer() -> None:
    citeseer = datasets.load("citeseer")
    assert _num_components(citeseer) == 438
    assert np.count_nonzero(citeseer.degrees == 0) == 48
    assert np.count_nonzero(~citeseer.dense_features.any(axis=1)) == 15


def test_what_was_cleaned_is_kept_though_not_warned_about() -> None:
    cleaning = datasets.load("citeseer").cleaning
    assert (cleaning.num_self_loops, cleaning.num_duplicates) == (248, 112)


# Other ways to name a graph.


def test_an_archive_or_a_folder_by_its_path(tmp_path: Path) -> None:
    demo = datasets.load("demo")
    demo.to_npz(tmp_path / "mine.npz")
    demo.to_folder(tmp_path / "tables", "parquet")
    assert datasets.load(tmp_path / "mine.npz") == demo
    assert datasets.load(str(tmp_path / "mine.npz")) == demo
    assert datasets.load(tmp_path / "tables") == demo


def test_an_archive_by_its_name(tmp_path: Path) -> None:
    demo = datasets.load("demo")
    demo.to_npz(tmp_path / "npz" / "mine.npz")
    assert datasets.load("mine", tmp_path) == demo


def test_a_name_that_means_nothing() -> None:
    with pytest.raises(
        DataError, match=r"^no data set, archive or folder 'coar'; at hand: cora, citeseer, pubmed, demo"
    ):
        datasets.load("coar")


# Files that are not what they should be.


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to put data into, which is the only one searched."""
    monkeypatch.delenv("BMPAUDIT_DATA", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    data = tmp_path / "data"
    data.mkdir()
    return data


def _copy(name: str, folder: Path) -> None:
    source, form = files_at_hand(name)
    for file_name in form.sha256:
        shutil.copyfile(source / file_name, folder / file_name)


@pytest.fixture
def citeseer_copy(tmp_path: Path) -> Path:
    """Made before the real data is out of reach."""
    folder = tmp_path / "citeseer"
    folder.mkdir()
    _copy("citeseer", folder)
    return folder


def test_a_data_set_that_is_not_there(alone: Path) -> None:
    with pytest.raises(DataError, match=r"^cora is not in .*; to download it: bmpaudit data get cora$"):
        datasets.load("cora", alone)


def test_a_copy_loads(citeseer_copy: Path) -> None:
    assert datasets.load("citeseer", citeseer_copy) == datasets.load("citeseer")


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _change_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [_truncate, _change_a_byte])
@pytest.mark.parametrize("part", catalog.PLANETOID_PARTS)
def test_a_damaged_file(part: str, damage: Callable[[Path], None], citeseer_copy: Path) -> None:
    damage(citeseer_copy / f"ind.citeseer.{part}")
    with pytest.raises(DataError, match=rf"ind\.citeseer\.{part}: not the published file \(SHA-256 "):
        datasets.load("citeseer", citeseer_copy)


def test_a_file_that_is_missing_among_the_others(citeseer_copy: Path) -> None:
    (citeseer_copy / "ind.citeseer.graph").unlink()
    with pytest.raises(
        DataError, match=r"ind\.citeseer\.graph: no such file, though other files of the data set are there$"
    ):
        datasets.load("citeseer", citeseer_copy)


@pytest.mark.parametrize("what", ["num_nodes", "num_edges", "num_features", "num_classes"])
@pytest.mark.parametrize("name", ["citeseer", "demo"])
def test_counts_that_are_not_the_published_ones(name: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: dict[str, Any] = {what: 3}
    monkeypatch.setitem(NAMED_DATASETS, name, dataclasses.replace(NAMED_DATASETS[name], **wrong))
    with pytest.raises(DataError, match=rf"^{name}: {what} must be 3, got "):
        datasets.load(name)


def test_nothing_is_downloaded_without_being_asked(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("load must not start a download")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("subprocess.run", refuse)
    with pytest.raises(DataError, match="to download it"):
        datasets.load("pubmed", alone)
