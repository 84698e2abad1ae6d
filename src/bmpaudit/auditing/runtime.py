"""What changes how an audit runs and what it shows on the way, but not its answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from bmpaudit.interfaces import Progress
from bmpaudit.progress import progress_bar


def _print_notice(message: str) -> None:
    print(f"bmpaudit: {message}", file=sys.stderr)


@dataclass(frozen=True)
class Runtime:
    """How to run.

    Attributes:
        num_threads: Number of threads; all cores if None.
        quiet: Whether to hide progress bars. They show on terminals and in notebooks only.
        notice: Called with messages, such as about damage that was found and repaired; prints to stderr by default.
        executor: Workers that train the shadow models, score them in blocks of nodes (attack, proof and exposure), and
            compute a posterior each: any `concurrent.futures.Executor`, such as a process pool or what
            `distributed.Client.get_executor()` returns. Everything runs in this process if None (docs/scaling.md).
    """

    num_threads: int | None = None
    quiet: bool = False
    notice: Callable[[str], None] = _print_notice
    executor: Executor | None = None

    def progress(self, what: str, total: int) -> AbstractContextManager[Progress]:
        """A context in which progress is shown; it gives a function to be called with the number of items done."""
        return nullcontext(lambda _: None) if self.quiet else progress_bar(what, total)
