import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmpaudit.errors import InputError
from bmpaudit.files import atomic_write, folder_lock, remove_leftovers


def test_the_file_is_there_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_the_temporary_file_is_beside_and_has_the_same_suffix(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "table.parquet") as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".parquet"
        assert temporary.name.startswith(".")


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_the_old_file_and_nothing_else(failure: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half() -> None:
        with atomic_write(path) as temporary:
            temporary.write_text("half of the n")
            raise failure

    with pytest.raises(failure):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_removes_the_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def remove() -> None:
        with atomic_write(path) as temporary:
            temporary.unlink()

    with pytest.raises(FileNotFoundError):
        remove()
    assert path.read_text() == "old"


def test_a_folder_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()

    def write() -> None:
        with atomic_write(tmp_path / "a.txt") as temporary:
            temporary.write_text("new")

    with pytest.raises(OSError, match=r"a\.txt"):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_permissions_are_those_of_any_new_file(umask: int, tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with atomic_write(tmp_path / "atomic") as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600  # nobody reads along
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "atomic").stat().st_mode & 0o777 == 0o666 & ~umask


def test_two_writers_at_once_do_not_share_a_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with atomic_write(path) as one, atomic_write(path) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"  # whose block ended last
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_can_be_taken_again_by_its_holder_and_by_nobody_else(tmp_path: Path) -> None:
    refused: list[str] = []

    def try_it() -> None:
        try:
            with folder_lock(tmp_path):
                refused.append("")
        except InputError as refusal:
            refused.append(str(refusal))

    with folder_lock(tmp_path):
        with folder_lock(tmp_path / "." / "new" / ".."):
            pass
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    try_it()
    assert refused == [f"{tmp_path} is in use by another process", ""]


def test_leftovers_are_removed_and_links_are_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    for place in (folder / "deep", outside):
        place.mkdir(parents=True)
        (place / "a.1234.partial").write_text("half")
    (folder / "link").symlink_to(outside)
    (folder / "linked.partial").symlink_to(outside / "a.1234.partial")
    (folder / ".plan-abcd1234.toml").write_text("half")
    (folder / ".plan-mine.toml").write_text("mine")
    remove_leftovers(folder)
    remove_leftovers(folder, "plan.toml")
    remove_leftovers(folder / "missing")
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir())
    assert names == ["folder/.plan-mine.toml", "folder/linked.partial", "outside/a.1234.partial"]
