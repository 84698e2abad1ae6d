"""Opening files that anybody may have written."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bmpaudit.errors import DataError, UntrustedCodeError

LARGEST_UNPACKED = 2**30
"""Bytes that a small file may take in memory."""

MOST_EXPANSION = 200
"""Bytes that a large file may take in memory, for each of its own."""


@contextmanager
def damage_in(path: Path | str, what: str, remedy: str = "") -> Iterator[None]:
    """Whatever cannot be read in the block is reported as damage of the file, in one line.

    A damaged file can make a parser raise nearly anything; only a lack of memory is not the file's.

    Args:
        path: The file.
        what: What it should have been, such as "an .npz archive".
        remedy: What to do, such as "; remove it to have it made again".
    """
    try:
        yield
    except (DataError, UntrustedCodeError):
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (PermissionError, IsADirectoryError) as failure:
        raise DataError(f"{path}: {failure.strerror}") from None
    except RecursionError:
        raise DataError(f"{path}: damaged or not {what}: it is nested too deep{remedy}") from None
    except Exception as damage:
        if isinstance(damage, MemoryError):
            raise
        raise DataError(f"{path}: damaged or not {what}: {_reason(damage)}{remedy}") from None


def _reason(damage: Exception) -> str:
    """What a parser has said, in one line and not without end."""
    text = " ".join(str(damage).split()) or type(damage).__name__
    if isinstance(damage, KeyError):
        text = f"{text} is missing"
    return text if len(text) <= 300 else f"{text[:300]}…"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading: not a device or a pipe, which may have no end."""
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # opening a folder says what is wrong with it
        raise DataError(f"{path}: not a regular file")
    with path.open("rb") as file:
        yield file


def check_unpacked(path: Path, what: str, num_bytes: int) -> None:
    """Raises `DataError` if what is to be read from a file would take far more memory than its size tells."""
    most = max(LARGEST_UNPACKED, MOST_EXPANSION * path.stat().st_size)
    if num_bytes > most:
        raise DataError(f"{path}: {what} must take at most {most:,} bytes of memory, got {num_bytes:,}")
