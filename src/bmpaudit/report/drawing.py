"""Drawing the pictures of a report in other processes, in the formats that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, as_completed
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from bmpaudit.util.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bmpaudit.report.figures import Width

PICTURE_FORMATS = ("png", "pdf", "svg")
DEFAULT_PICTURES = "png,pdf"
NO_PICTURES = "none"


def picture_formats(pictures: str) -> tuple[str, ...]:
    """The formats that somebody asks for, each once; `InputError` if one of them is unknown.

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


# Pictures drawn side by side, here and in other processes: matplotlib keeps one core busy at a time.

MOST_HELPERS = 3


@dataclass(frozen=True)
class Picture:
    """A picture to be drawn by any process."""

    function: str  # name of what draws it in `report.figures`
    values: Mapping[str, Any]  # its arguments

    def __call__(self, width: Width | None = None) -> Figure:
        """Draws it here, as wide as it usually is unless told otherwise."""
        from bmpaudit.report import figures

        chosen = {} if width is None else {"width": width}
        figure: Figure = getattr(figures, self.function)(**self.values, **chosen)
        return figure

    def render(self, formats: Collection[str]) -> dict[str, bytes]:
        """The content of a file by its format."""
        from bmpaudit.report import figures

        return figures.render(self(), formats)


class Drawing:
    """Processes that draw pictures while this one does something else.

    A picture that they cannot draw, because they died or because its values cannot be sent, is drawn here. Without
    any format nothing is drawn.
    """

    def __init__(self, formats: Collection[str], num_helpers: int) -> None:
        self.formats = tuple(formats)
        self._num_helpers = min(num_helpers, MOST_HELPERS) if self.formats else 0
        from bmpaudit.workers import Processes  # a help text, which needs the formats only, does without NumPy

        self._helpers = Processes(self._num_helpers) if self._num_helpers else None
        self._pictures: dict[str, Picture] = {}
        self._sent: dict[Future[dict[str, bytes]], str] = {}

    def __enter__(self) -> Drawing:
        return self

    def __exit__(self, *_: object) -> None:
        if self._helpers is not None:
            self._helpers.shutdown()

    def start(self) -> None:
        """Starts the helpers, which take about a second of one core to import what they need."""
        for _ in range(self._num_helpers):
            self._send(_import_all)

    def draw(self, pictures: Mapping[str, Picture]) -> None:
        """Has the helpers draw pictures, each under its name; one that was given before is not drawn again."""
        for name, picture in pictures.items():
            if name not in self._pictures:
                self._pictures[name] = picture
                future = self._send(_render_quietly, picture, self.formats)
                if future is not None:
                    self._sent[future] = name

    def _send(self, function: Callable[..., Any], *arguments: Any) -> Future[Any] | None:
        with suppress(Exception):  # values that cannot be sent, or processes that have died
            return None if self._helpers is None else self._helpers.submit(function, *arguments)
        return None

    def finish(self, advance: Callable[[], None] = lambda: None) -> dict[str, bytes]:
        """Draws beside the helpers until all is done; the content of all files, such as `roc.png`.

        `advance` is called for each picture that is done.
        """
        files: dict[str, bytes] = {}

        def keep(name: str, rendered: Mapping[str, bytes] | None = None) -> None:
            drawn = self._pictures[name].render(self.formats) if rendered is None else rendered
            files.update({f"{name}.{suffix}": content for suffix, content in drawn.items()})
            advance()

        left = [name for name in self._pictures if name not in self._sent.values()]
        for future in reversed(list(self._sent)):  # the last first, until the helpers have begun all that is left
            if self._helpers is not None and self._helpers.withdraw(future):
                keep(self._sent.pop(future))
        for future in as_completed(self._sent):
            try:
                keep(self._sent[future], future.result())
            except Exception:  # whatever it is, it is told if it happens here too
                left.append(self._sent[future])
        for name in left:
            keep(name)
        return dict(sorted(files.items()))


def _import_all() -> None:
    from bmpaudit import estimation, proof  # noqa: F401 - what most pictures are made from, before the first comes
    from bmpaudit.report import figures  # noqa: F401


def _render_quietly(picture: Picture, formats: Collection[str]) -> dict[str, bytes]:
    with redirect_stderr(StringIO()):
        return picture.render(formats)
