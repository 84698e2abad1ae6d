"""Writing to the store while the next models are trained."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Writer:
    """Calls what writes, one after another, in a thread; at most one call waits for another."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> Writer:
        return self

    def submit(self, write: Callable[..., None], *arguments: Any) -> None:
        """Has something written; raises what the call before has raised."""
        # Handed over before anything that a stop could interrupt; one worker keeps the order.
        before, self._pending = self._pending, self._pool.submit(write, *arguments)
        if before is not None:
            before.result()

    def wait(self) -> None:
        """Waits until everything is written."""
        if self._pending is not None:
            self._pending.result()

    def __exit__(self, *_: object) -> None:
        try:
            self.wait()
        finally:
            self._pool.shutdown()
