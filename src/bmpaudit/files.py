"""Files that are either written whole or not at all, and folders that one process writes to at a time."""

import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from bmpaudit.errors import InputError


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside `path`, which takes its place when the block ends well and is removed otherwise.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays, because some writers choose the format by it.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder, which is made if it is missing; a thread that holds it may take it again.

    Raises:
        InputError: if another process or thread holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # One object for each place and thread, which counts how often it was taken.
    lock = filelock.FileLock(folder.resolve() / ".lock", is_singleton=True)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise InputError(f"{folder} is in use by another process") from None
    try:
        yield
    finally:
        lock.release()


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Removes temporary files that a kill left behind; only call it while holding the folder's lock.

    Args:
        folder: Where to look; links are not followed.
        name: The file that `atomic_write` was writing; if not given, all `*.partial` files of Zarr, at any depth.
    """
    if folder.is_symlink() or not folder.is_dir():
        return
    if name is None:
        found = [
            Path(place) / file for place, _, files in os.walk(folder) for file in files if file.endswith(".partial")
        ]
    else:
        path = folder / name
        found = [*folder.glob(f".{glob.escape(path.stem)}-????????{glob.escape(path.suffix)}")]
    for path in found:
        if path.is_file() and not path.is_symlink():
            path.unlink()
