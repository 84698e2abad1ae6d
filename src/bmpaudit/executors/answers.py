"""Answers on their way back: a worker that sees the files of the process that asks leaves large arrays there."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bmpaudit.executors.pickling import SMALLEST_PART, dumps

ALIGNMENT = 64
"""Arrays start at multiples of so many bytes."""


class Inbox(NamedTuple):
    """A temporary folder that answers are read from.

    Attributes:
        folder: Its name is random, so that a worker of another machine has none of that name.
        reader: Number of the process that reads.
    """

    folder: str
    reader: int


@contextmanager
def new_inbox() -> Iterator[Inbox]:
    """An inbox, which goes with whatever was not read: answers that were lost, or that nobody wants any more."""
    with tempfile.TemporaryDirectory(prefix="bmpaudit-", ignore_cleanup_errors=True) as folder:
        yield Inbox(folder, os.getpid())


@dataclass(frozen=True)
class Filed:
    """An answer whose large arrays are in a file.

    Attributes:
        content: The answer without them, pickled.
        path: The file.
        places: Start and end of each array in it.
    """

    content: bytes
    path: str
    places: tuple[tuple[int, int], ...]

    def read(self) -> Any:
        """The answer; its file is then gone."""
        whole = np.fromfile(self.path, np.uint8)
        Path(self.path).unlink()
        return pickle.loads(self.content, buffers=[whole[slice(*place)].data for place in self.places])  # noqa: S301 - from a worker, as all answers


def call_and_file(value: Any, function: Callable[..., Any], inbox: Inbox, *arguments: Any) -> Any:
    """Calls a function on a worker; the answer, or `Filed` if it is large and this worker sees the inbox."""
    answer = function(value, *arguments)
    if os.getpid() == inbox.reader or not Path(inbox.folder).is_dir():
        return answer
    arrays: list[memoryview] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= SMALLEST_PART:
            arrays.append(raw)
        return raw.nbytes < SMALLEST_PART

    content = dumps(answer, is_small)
    if not arrays:
        return answer
    try:
        return _filed(content, arrays, inbox.folder)
    except OSError:  # it is full, or not for this user to write to
        return answer


def _filed(content: bytes, arrays: list[memoryview], folder: str) -> Filed:
    places, end = [], 0
    handle, path = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            for array in arrays:
                start = -(-end // ALIGNMENT) * ALIGNMENT
                end = start + array.nbytes
                places.append((start, end))
                file.seek(start)
                while array:
                    array = array[file.write(array) :]
    except OSError:
        with suppress(OSError):
            Path(path).unlink()
        raise
    return Filed(content, path, tuple(places))
