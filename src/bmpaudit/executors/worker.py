"""What runs on a worker: a function of a value that all tasks share, which is loaded once."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_KEPT = 2
"""Values that a worker keeps; older ones are of work that is over."""

_values: dict[str, Any] = {}
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


def call(function: Callable[..., Any], key: str, source: Any, arguments: tuple[Any, ...]) -> Any:
    """Calls `function` with the shared value and the arguments.

    Args:
        function: What to call.
        key: Of the shared value.
        source: The value's pickle, or the path of a file with it.
        arguments: All but the first.

    Returns:
        What the function returns, or `Missing` if the value cannot be had from here.
    """
    with _lock:
        if key not in _values:
            if isinstance(source, bytes):
                content = source
            else:
                try:
                    content = Path(source).read_bytes()
                except OSError:
                    return Missing()
            # From the process that has submitted the task, as the task itself.
            _keep(key, pickle.loads(content))  # noqa: S301
        value = _values[key]
    return function(value, *arguments)
