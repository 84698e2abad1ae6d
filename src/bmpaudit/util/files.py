"""Files that are written completely or not at all, and folders that one process writes to at a time."""

import errno
import hashlib
import math
import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import filelock

from bmpaudit.util.errors import InputError

Value = TypeVar("Value")

LOCK = ".lock"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# What a killed process may leave behind: files of `atomic_write`, and those in which Zarr writes its chunks.
_LEFTOVER = re.compile(r"\..*\.partial-[a-z0-9_]{8}(\.[^.]*)?|.+\.[0-9a-f]{32}\.partial", re.DOTALL)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Makes an error for want of room name the place, not a temporary file, and say what to do."""
    try:
        yield
    except OSError as failure:
        if failure.errno not in NO_ROOM:
            raise
        advice = "make room and run the same command again, which goes on from here"
        raise OSError(failure.errno, f"{os.strerror(failure.errno)}: {advice}", str(path)) from None


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`, which replaces it when the block succeeds and is removed otherwise.

    A process that is killed leaves the temporary file, which `remove_leftovers` recognises by its name.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("complete")
    ...     (Path(folder) / "a.txt").read_text()
    'complete'
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # The suffix stays last, because some writers choose the format by it.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.partial-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        with naming(path):
            yield temporary
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def uninterrupted(call: Callable[[], Value]) -> Value:
    """Makes a call that Ctrl-C does not cut short, which would leave half of what it writes; it is heard afterwards.

    >>> uninterrupted(lambda: 42)
    42
    """
    if threading.current_thread() is not threading.main_thread():
        return call()  # only the main thread hears of Ctrl-C
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(call).result()


def write_text(path: Path, text: str) -> None:
    """Writes a file in UTF-8 as `atomic_write` does, line ends as they are."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder, which is made if it is missing; a thread that holds it may take it again."""
    folder.mkdir(parents=True, exist_ok=True)
    # One object for each place and thread, which counts how often it was taken.
    lock = filelock.FileLock(folder.resolve() / LOCK, is_singleton=True)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise _InUseError(folder) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def shared_folder_lock(folder: Path, prepare: Callable[[], None], *, seconds: float = 60.0) -> Iterator[None]:
    """Holds the lock of a folder together with others that hold it so, and keeps out whoever takes it by `folder_lock`.

    `prepare` is called with the lock held alone if nobody else has it; whoever finds others at work goes on with what
    they have prepared, so has to check that. Waits so many `seconds` for somebody who holds it alone.
    """
    import fcntl  # as filelock does it; not every system has it

    with suppress(_InUseError), folder_lock(folder):
        prepare()
    deadline = time.monotonic() + seconds
    with (folder / LOCK).open("rb+") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise _InUseError(folder) from None
                time.sleep(0.05)
        yield  # closing the file releases the lock


class _InUseError(InputError):
    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} is in use by another process")


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_ours(name: str) -> bool:
    """Whether a file of this name is the lock of a folder, or what a killed process left half written."""
    return name == LOCK or _LEFTOVER.fullmatch(name) is not None


def remove_leftovers(folder: Path, *, min_age_seconds: float = 0.0) -> list[Path]:
    """Removes the temporary files that killed processes left in a folder and its subfolders; says which, sorted.

    Nobody else may be writing to the folder, unless `min_age_seconds` spares files changed more recently. Only
    regular files with the names that `atomic_write` and Zarr give to temporary files are removed; links inside the
    folder are neither followed nor removed. A folder that does not exist has no leftovers.
    """
    removed = []
    # A clock that was set back would spare what was written before, so only an age that is asked for is looked at.
    latest = time.time() - min_age_seconds if min_age_seconds > 0 else math.inf
    for parent, _, names in os.walk(folder, followlinks=False):
        for path in (Path(parent, name) for name in names if _LEFTOVER.fullmatch(name)):
            with suppress(FileNotFoundError):  # its writer has just finished
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_mtime <= latest:
                    path.unlink()
                    removed.append(path)
    return sorted(removed)
