from pathlib import Path

import platformdirs
import pytest

from bmpaudit import datasets
from bmpaudit.datasets import NAMED_DATASETS
from bmpaudit.datasets.catalog import FileSet, find_archive, find_files, search_path
from bmpaudit.util.errors import DataError


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The three places, in the order in which they are searched."""
    first, named, cache = (tmp_path / name for name in ("first", "named", "cache"))
    monkeypatch.setenv("BMPAUDIT_DATA", str(named))
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_, **__: str(cache))
    return [first, named, cache]


def _plant(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_search_path(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    first, named, cache = folders
    assert datasets.search_path(first) == [first, named, cache]
    assert datasets.search_path() == [named, cache]
    monkeypatch.setenv("BMPAUDIT_DATA", "")
    assert datasets.search_path() == [cache]
    monkeypatch.delenv("BMPAUDIT_DATA")
    assert datasets.search_path() == [cache] == [datasets.user_cache()]


def test_the_user_cache_is_the_tool_s_own_folder() -> None:
    assert datasets.user_cache().name == "bmpaudit"
    assert datasets.user_cache().is_absolute()


@pytest.mark.parametrize("file_name", ["planetoid/ind.cora.x", "ind.cora.graph", "planetoid/cora.content"])
def test_files_are_found_in_order(file_name: str, folders: list[Path]) -> None:
    assert find_files(NAMED_DATASETS["cora"], search_path(folders[0])) is None
    for folder in reversed(folders):  # the last is found until an earlier one has it
        _plant(folder / file_name)
        found = find_files(NAMED_DATASETS["cora"], search_path(folders[0]))
        assert found is not None
        assert found[0] == (folder / file_name).parent


def test_the_preferred_form_comes_first(tmp_path: Path, folders: list[Path]) -> None:
    assert folders
    _plant(tmp_path / "cora.content")
    _plant(tmp_path / "ind.cora.x")
    found = find_files(NAMED_DATASETS["cora"], [tmp_path])
    assert found is not None
    assert found[1].reader == "planetoid"


@pytest.mark.parametrize("file_name", ["npz/mine.npz", "mine.npz"])
def test_archives_are_found_in_order(file_name: str, folders: list[Path]) -> None:
    assert find_archive("mine", folders[0]) is None
    for folder in reversed(folders):
        _plant(folder / file_name)
        assert find_archive("mine", folders[0]) == folder / file_name


def test_at_hand(folders: list[Path]) -> None:
    first, named, cache = folders
    assert datasets.at_hand() == ["demo"]
    _plant(cache / "npz" / "b.npz")
    _plant(named / "a.npz")
    _plant(named / "planetoid" / "ind.pubmed.x")
    _plant(first / "c.npz")
    assert datasets.at_hand() == ["pubmed", "demo", "a", "b"]
    assert datasets.at_hand(first) == ["pubmed", "demo", "a", "b", "c"]


def test_an_archive_that_is_called_like_a_named_data_set_is_not_that_data_set(folders: list[Path]) -> None:
    _plant(folders[1] / "npz" / "cora.npz")
    assert datasets.at_hand() == ["demo"]


def test_verify(tmp_path: Path) -> None:
    wrong, right = (
        FileSet("content", {"abc": sha256})
        for sha256 in ("00", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")  # FIPS 180-2, B.1
    )
    with pytest.raises(DataError, match="abc: no such file"):
        wrong.verify(tmp_path)
    (tmp_path / "abc").write_text("abc")
    right.verify(tmp_path)
    with pytest.raises(
        DataError, match=r"abc: not the published file \(SHA-256 must be 00…, got ba7816bf8f01… of 3 bytes\)$"
    ):
        wrong.verify(tmp_path)
