"""Drawing the pictures of a report in other processes, in the formats that are asked for."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bmpaudit.util.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PICTURE_FORMATS = ("png", "pdf", "svg")
DEFAULT_PICTURES = "png,pdf"
NO_PICTURES = "none"


def picture_formats(pictures: str) -> tuple[str, ...]:
    """The formats that somebody asks for, each once.

    Raises:
        InputError: if one of them is unknown.

    >>> picture_formats("svg, png"), picture_formats("none")
    (('png', 'svg'), ())
    """
    names = {name.strip() for name in pictures.lower().split(",")}
    if names == {NO_PICTURES}:
        return ()
    if not names <= set(PICTURE_FORMATS):
        known = f"{', '.join(PICTURE_FORMATS)} (several separated by commas) or {NO_PICTURES}"
        raise InputError(f"pictures must be {known}, got pictures={pictures!r}")
    return tuple(name for name in PICTURE_FORMATS if name in names)


# Pictures drawn side by side, here and in helper processes: matplotlib keeps one core busy at a time.


MOST_HELPERS = 3
WAITING_PER_HELPER = 2
"""Pictures that a helper draws while another process would still import matplotlib."""


@dataclass(frozen=True)
class Picture:
    """A picture to be drawn by any process.

    Attributes:
        function: Name of what draws it in `report.figures`.
        values: Arguments of that function.
    """

    function: str
    values: Mapping[str, Any]

    def draw(self) -> Figure:
        """Draws it here."""
        from bmpaudit.report import figures

        figure: Figure = getattr(figures, self.function)(**self.values)
        return figure


class Drawing:
    """Helper processes that draw pictures while this process does something else.

    A helper is a Python of its own that is sent pickled values, so it does not matter which threads run here. A picture
    that it cannot draw, because it died or because the values are of a class of the user's script, is drawn here.

    Args:
        formats: In which to render pictures; without any nothing is drawn.
        num_helpers: How many other processes draw.
    """

    def __init__(self, formats: Collection[str], num_helpers: int) -> None:
        self.formats = tuple(formats)
        self._num_helpers = min(num_helpers, MOST_HELPERS) if self.formats and sys.executable else 0
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads = ThreadPoolExecutor(MOST_HELPERS)
        self._feeders: list[Future[None]] = []
        self._pictures: dict[str, Picture] = {}
        self._waiting: deque[str] = deque()
        self._is_complete = False  # no more pictures will come
        self._left: list[str] = []
        self._files: dict[str, bytes] = {}
        self._num_done = 0
        self._changed = threading.Condition()
        self._advance: Callable[[], None] = lambda: None

    def __enter__(self) -> Drawing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._waiting.clear()
            self._is_complete = True
            self._changed.notify_all()
        for process in self._processes:
            process.kill()
        self._threads.shutdown()
        for process in self._processes:
            process.communicate()

    def start(self) -> None:
        """Starts the helpers, which take about a second of one core to import what they need."""
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        pipe = subprocess.PIPE
        try:
            while len(self._processes) < self._num_helpers:
                command = [sys.executable, "-c", program]
                process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)  # noqa: S603
                self._processes.append(process)
        except OSError:  # everything is drawn here
            pass
        self._feeders = [self._threads.submit(self._feed, process) for process in self._processes]

    def draw(self, pictures: Mapping[str, Picture]) -> None:
        """Has the helpers draw pictures, each under its name; one that was given before is not drawn again."""
        with self._changed:
            new = {name: picture for name, picture in pictures.items() if name not in self._pictures}
            self._pictures |= new
            self._waiting.extend(new)
            self._changed.notify_all()

    def count_with(self, advance: Callable[[], None]) -> None:
        """Calls `advance` for each picture that is done, and from now on after each."""
        with self._changed:
            self._advance = advance
            for _ in range(self._num_done):
                advance()

    def finish(self) -> dict[str, bytes]:
        """Draws beside the helpers, if it pays, until all is done; the content of all files, such as `roc.png`."""
        with self._changed:
            self._is_complete = True
            self._changed.notify_all()
        while len(self._waiting) > WAITING_PER_HELPER * len(self._feeders) and (name := self._next()):
            self._draw_here(name)
        for feeder in self._feeders:
            feeder.result()
        for name in [*self._left, *self._waiting]:  # of helpers that could not, or have died
            self._draw_here(name)
        return dict(sorted(self._files.items()))

    def _next(self) -> str | None:
        """The next picture, which may still have to come; None if none will."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_complete)
            return self._waiting.popleft() if self._waiting else None

    def _draw_here(self, name: str) -> None:
        from bmpaudit.report.figures import render

        self._keep(name, render(self._pictures[name].draw(), self.formats))

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        """Sends pictures to one helper until there are none left."""
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        while name := self._next():
            try:
                pickle.dump(pickle.dumps((self._pictures[name], self.formats)), process.stdin)
                process.stdin.flush()
                files = pickle.load(process.stdout)  # noqa: S301 - from our own process
            except (OSError, EOFError, pickle.UnpicklingError):  # a dead process
                self._left.append(name)
                return
            except (pickle.PicklingError, AttributeError, TypeError):  # values that cannot be sent
                files = None
            if files is None:
                self._left.append(name)
            else:
                self._keep(name, files)

    def _keep(self, name: str, files: Mapping[str, bytes]) -> None:
        with self._changed:
            self._files |= {f"{name}.{suffix}": content for suffix, content in files.items()}
            self._num_done += 1
            self._advance()
            self._changed.notify_all()


def serve() -> None:
    """Draws the pictures that come in on stdin, until it is closed: the main program of a helper."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for us
    from bmpaudit import estimation, proof  # noqa: F401 - what most pictures are made from, before the first comes
    from bmpaudit.report.figures import render

    while True:
        try:
            sent = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
        except EOFError:
            return
        try:
            picture, formats = pickle.loads(sent)  # noqa: S301 - likewise
            files = render(picture.draw(), formats)
        except Exception:  # the other process draws it, and tells what is wrong
            files = None
        pickle.dump(files, sys.stdout.buffer)
        sys.stdout.buffer.flush()
