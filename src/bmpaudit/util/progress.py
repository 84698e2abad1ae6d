"""Progress bars with the rate: on stderr in a terminal, below the cell in a notebook, silent otherwise."""

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TextIO, cast

from bmpaudit.interfaces import Progress

_REFRESH_SECONDS = 0.2


def progress_bar(what: str, total: int, *, quiet: bool = False) -> AbstractContextManager[Progress]:
    """Gives a function to call with the number of items done so far; the bar disappears when the block ends."""
    if quiet:
        return nullcontext(lambda _: None)
    return _notebook_bar(what, total) if in_notebook() else _terminal_bar(what, total)


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel, found out without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None  # IPython in a terminal has no kernel


class Rate:
    """Items per second since the first call, as text."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start, self._first = clock, clock(), -1

    def __call__(self, done: int) -> str:
        """The rate with `done` items done; items done before the first call, such as a resumed run's, do not count."""
        if self._first < 0:
            self._start, self._first = self._clock(), done
        seconds = self._clock() - self._start
        rate = (done - self._first) / seconds if seconds > 0 else 0.0
        return "" if rate == 0 else f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


class _Tolerant:
    """A stream that loses what cannot be written, as on a full disk: a bar that is not drawn must not end the work."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


@contextmanager
def _terminal_bar(what: str, total: int) -> Iterator[Progress]:
    from rich.console import Console

    console = Console(file=cast(TextIO, _Tolerant(sys.stderr)))
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich import progress as rich_progress

    rate = Rate()
    columns = (
        rich_progress.TextColumn(what, markup=False),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn("{task.fields[rate]}"),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")
        yield lambda done: bar.update(task, completed=done, rate=rate(done))


@contextmanager
def _notebook_bar(what: str, total: int) -> Iterator[Progress]:
    """A display that is updated in place, which every notebook can do; Rich needs ipywidgets for it."""
    from IPython.display import display

    rate, next_refresh = Rate(), 0.0
    handle: Any = display(_notebook_text(what, 0, total, ""), raw=True, display_id=True)

    def update(done: int) -> None:
        nonlocal next_refresh
        speed, now = rate(done), time.monotonic()
        if now >= next_refresh or done >= total:
            next_refresh = now + _REFRESH_SECONDS
            handle.update(_notebook_text(what, done, total, speed), raw=True)

    try:
        yield update
    finally:
        handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _notebook_text(what: str, done: int, total: int, rate: str) -> dict[str, str]:
    figures = f"{done:,}/{total:,} {rate}".rstrip()
    return {
        "text/plain": f"{what} {figures}",
        "text/html": f'{html.escape(what)} <progress value="{done}" max="{total}"></progress> {figures}',
    }
