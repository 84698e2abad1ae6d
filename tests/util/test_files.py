import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmpaudit.util.errors import InputError
from bmpaudit.util.files import atomic_write, folder_lock, remove_leftovers, sha256_of, write_text


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


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "a.txt", "ε_R\r\nε_L\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == "ε_R\r\nε_L\n".encode()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.txt"]


def test_sha256_of(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    # FIPS 180-2, example B.1
    assert sha256_of(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(FileNotFoundError):
        sha256_of(tmp_path / "nowhere")


# What a killed process leaves behind.


def test_what_a_killed_process_leaves_is_removed(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from bmpaudit.util.files import atomic_write
with atomic_write(Path({str(tmp_path)!r}) / "sub" / "table.parquet") as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    outcome = subprocess.run([sys.executable, "-c", program], check=False)
    assert outcome.returncode == -signal.SIGKILL
    (leftover,) = (tmp_path / "sub").iterdir()
    assert leftover.suffix == ".parquet"
    assert remove_leftovers(tmp_path) == [leftover]
    assert list((tmp_path / "sub").iterdir()) == []
    assert remove_leftovers(tmp_path) == []


@pytest.mark.parametrize(
    "name", ["plan", ".hidden", "a.tar.gz", "with space.csv", "new\nline.txt", "ind.cora.test.index"]
)
def test_temporary_files_are_recognised_whatever_the_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / name) as temporary:
        assert remove_leftovers(tmp_path) == [temporary]


def test_what_zarr_leaves_when_it_is_killed_is_removed(tmp_path: Path) -> None:
    program = f"""
import os
from pathlib import Path
import zarr
array = zarr.create_array({str(tmp_path)!r}, shape=(4,), chunks=(2,), dtype="float32")
Path.replace = lambda *_: os._exit(9)
array[:] = 1
"""
    outcome = subprocess.run([sys.executable, "-c", program], check=False)
    assert outcome.returncode == 9
    leftovers = sorted(path for path in tmp_path.rglob("*.partial"))
    assert leftovers
    assert remove_leftovers(tmp_path) == leftovers
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize(
    "name",
    ["a.partial", ".a-abcd1234.txt", "a.partial-abcd1234.txt", ".partial-abcd", ".a.partial-ABCD1234", "x.123.partial"],
)
def test_files_of_others_stay(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    assert remove_leftovers(tmp_path) == []
    assert (tmp_path / name).exists()


def test_links_are_neither_followed_nor_removed(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "folder"
    name = ".a.partial-abcd1234.txt"
    for path in (elsewhere, folder, folder / name.replace("a", "folder", 1)):
        path.mkdir()
    (elsewhere / name).touch()
    (folder / "linked").symlink_to(elsewhere)
    (folder / name).symlink_to(elsewhere / name)
    assert remove_leftovers(folder) == []
    assert (elsewhere / name).exists()
    assert (folder / name).is_symlink()


def test_recent_files_can_be_spared(tmp_path: Path) -> None:
    old, recent = tmp_path / ".a.partial-abcd1234.txt", tmp_path / ".b.partial-abcd1234.txt"
    old.touch()
    recent.touch()
    os.utime(old, (0, 0))
    assert remove_leftovers(tmp_path, min_age_seconds=3_600) == [old]
    assert recent.exists()


def test_a_folder_that_does_not_exist_has_no_leftovers(tmp_path: Path) -> None:
    assert remove_leftovers(tmp_path / "nowhere") == []


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
