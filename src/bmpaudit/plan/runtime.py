"""What changes the speed of an audit and what it tells on the way, but not its answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

Progress = Callable[[int], None]


def _silent(_: str, __: int) -> AbstractContextManager[Progress]:
    return nullcontext(lambda _: None)


def _nobody(_: str) -> None:
    pass


@dataclass(frozen=True)
class Runtime:
    """How to run.

    Attributes:
        num_threads: All cores if None.
        progress: Called with what is done and how many there are; gives a context in which it is told how many are
            done, such as `bmpaudit.progress.progress_bar`. Silent if not given.
        report: Is told of damage that was found and mended.
    """

    num_threads: int | None = None
    progress: Callable[[str, int], AbstractContextManager[Progress]] = _silent
    report: Callable[[str], None] = _nobody
