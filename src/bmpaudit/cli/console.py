"""A Rich console that shows control characters instead of obeying them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from bmpaudit.characters import visible


class VisibleConsole(Console):
    """Whatever a name holds, it cannot move the cursor, change colours or answer for the user."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of something to print; only Rich's own control codes stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
