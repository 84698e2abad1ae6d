"""A Rich console that shows control characters instead of obeying them, and breaks no line within a figure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from bmpaudit.characters import visible

# Stands for a space while lines are broken: Rich takes a no-break space for one to break at.
KEPT_SPACE = "\ue000"
IN_A_FIGURE = re.compile(r" (?=[:=≥≤] \S)|(?<= [:=≥≤]) |(?<=\d) (?=%)")


class VisibleConsole(Console):
    """Whatever a name holds, it cannot move the cursor, change colours or answer for the user.

    Odds such as 176 : 1, ε_R ≥ 5.17 and 12 % stay on one line.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of something to print; only Rich's own control codes stay."""
        if isinstance(renderable, Text):
            renderable = renderable.copy()
            renderable.plain = IN_A_FIGURE.sub(KEPT_SPACE, renderable.plain)
        for segment in super().render(renderable, options):
            text = segment.text.replace(KEPT_SPACE, " ")
            yield segment if segment.control else Segment(visible(text), segment.style)
