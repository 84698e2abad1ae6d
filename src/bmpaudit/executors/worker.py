"""What runs on a worker: a function of a value that all tasks share, which is loaded once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from bmpaudit.executors.pickling import unpack

MOST_KEPT = 2
"""Values that a worker keeps; older ones are of work that is over."""

_values: dict[str, Any] = {}
_parts: WeakValueDictionary[str, npt.NDArray[np.uint8]] = WeakValueDictionary()  # of the values that are kept
_lock = threading.Lock()


@dataclass(frozen=True)
class Missing:
    """The answer of a worker that does not have the value and cannot read its file."""


def keep(key: str, value: Any) -> None:
    """Keeps a value for tasks that run in this process."""
    with _lock:
        _keep(key, value)


def _keep(key: str, value: Any) -> None:
    _values[key] = value
    while len(_values) > MOST_KEPT:
        del _values[next(iter(_values))]


def forget(key: str) -> None:
    """Drops a value."""
    with _lock:
        _values.pop(key, None)


def loaded(_: Any) -> None:
    """What a worker is asked to do only so that it has the value."""


def call(
    function: Callable[..., Any],
    key: str,
    source: tuple[str | bytes, dict[str, str | bytes]],
    arguments: tuple[Any, ...],
) -> Any:
    """Calls `function` with the shared value and the arguments.

    Args:
        function: What to call.
        key: Of the shared value.
        source: The value as `pack` has packed it, and its parts by digest; each as bytes, or the path of a file.
        arguments: All but the first.

    Returns:
        What the function returns, or `Missing` if the value cannot be had from here.
    """
    with _lock:
        if key not in _values:
            try:
                _keep(key, _unpacked(*source))
            except OSError:
                return Missing()
        value = _values[key]
    return function(value, *arguments)


def _unpacked(content: str | bytes, parts: dict[str, str | bytes]) -> Any:
    def part(digest: str) -> npt.NDArray[np.uint8]:
        found = _parts.get(digest)
        if found is None:
            place = parts[digest]
            # Copied: in what has come by a network, numbers need not be aligned.
            found = np.fromfile(place, np.uint8) if isinstance(place, str) else np.frombuffer(place, np.uint8).copy()
            found.flags.writeable = False  # other values have it too
            _parts[digest] = found
        return found

    return unpack(content if isinstance(content, bytes) else Path(content).read_bytes(), part)
