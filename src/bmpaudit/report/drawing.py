"""Pictures drawn side by side, here and in helper processes: matplotlib keeps one core busy at a time."""

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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_HELPERS = 3  # each takes half a second to import matplotlib


@dataclass(frozen=True)
class Picture:
    """A picture to be drawn by any process.

    Attributes:
        function: Name of what draws it in `report.figures`.
        values: Arguments of that function: arrays, numbers and texts, for which a helper needs no other code.
    """

    function: str
    values: Mapping[str, Any]

    def draw(self) -> Figure:
        """Draws it here."""
        from bmpaudit.report import figures

        figure: Figure = getattr(figures, self.function)(**self.values)
        return figure


class Drawing:
    """Draws pictures in helper processes while this process does something else, until `finish` draws with them.

    A helper is a Python of its own that is sent plain values, so it does not matter which threads run here or whether
    the user's script can be imported. A picture whose helper died is drawn here.

    Args:
        pictures: By name; those that are no `Picture` are drawn in this process.
        formats: In which to render them.
        num_helpers: How many other processes may draw.
        advance: Called after each picture.
    """

    def __init__(
        self,
        pictures: Mapping[str, Picture | Callable[[], Figure]],
        formats: Collection[str],
        num_helpers: int,
        advance: Callable[[], None],
    ) -> None:
        self._pictures, self._formats, self._advance = pictures, tuple(formats), advance
        self._lock = threading.Lock()
        self._files: dict[str, bytes] = {}
        self._here = deque(name for name, each in pictures.items() if not isinstance(each, Picture))
        self._anywhere = deque(name for name, each in pictures.items() if isinstance(each, Picture))
        self._num_helpers = min(num_helpers, MOST_HELPERS, len(self._anywhere)) if sys.executable else 0
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads = ThreadPoolExecutor(max(self._num_helpers, 1))
        self._helpers: list[Future[None]] = []

    def __enter__(self) -> Drawing:
        self._helpers = [self._threads.submit(self._help) for _ in range(self._num_helpers)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._anywhere.clear()
        for process in self._processes:
            process.kill()
        self._threads.shutdown()

    def finish(self) -> dict[str, bytes]:
        """Draws what is left; the content of all files, such as `roc.png`."""
        while self._here or self._anywhere:
            self._draw_next_here()
        for helper in self._helpers:
            helper.result()
        while self._anywhere:  # what a helper that died gave back
            self._draw_next_here()
        return dict(sorted(self._files.items()))

    def _draw_next_here(self) -> None:
        from bmpaudit.report.figures import render

        try:
            name = self._here.popleft() if self._here else self._anywhere.pop()
        except IndexError:  # a helper was faster
            return
        picture = self._pictures[name]
        self._keep(name, render(picture.draw() if isinstance(picture, Picture) else picture(), self._formats))

    def _help(self) -> None:
        """Feeds one helper, in a thread."""
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        name = None
        try:
            pipe = subprocess.PIPE
            command = [sys.executable, "-c", program]
            with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:  # noqa: S603
                self._processes.append(process)
                assert process.stdin is not None  # noqa: S101
                assert process.stdout is not None  # noqa: S101
                while self._anywhere:
                    name = self._anywhere.popleft()
                    pickle.dump((self._pictures[name], self._formats), process.stdin)
                    process.stdin.flush()
                    self._keep(name, pickle.load(process.stdout))  # noqa: S301 - from our own process
                    name = None
        except (OSError, EOFError, pickle.UnpicklingError, IndexError):  # no process, a dead one, or nothing left
            if name is not None:
                self._anywhere.append(name)

    def _keep(self, name: str, files: Mapping[str, bytes]) -> None:
        with self._lock:
            self._files |= {f"{name}.{suffix}": content for suffix, content in files.items()}
            self._advance()


def serve() -> None:
    """Draws the pictures that come in on stdin, until it is closed: the main program of a helper."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for us
    from bmpaudit.report.figures import render

    while True:
        try:
            picture, formats = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
        except EOFError:
            return
        pickle.dump(render(picture.draw(), formats), sys.stdout.buffer)
        sys.stdout.buffer.flush()
