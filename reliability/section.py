"""What a check leaves on the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import scipy.stats


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        text: Markdown.
        passed: Whether everything was as it has to be.
    """

    text: str
    passed: bool


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def most(number: int, share: float, level: float = 1e-3) -> int:
    """How many of `number` independent events of probability `share` are still no surprise."""
    return int(scipy.stats.binom.isf(level, number, share))


def fewest(number: int, share: float, level: float = 1e-3) -> int:
    """How few of them are still no surprise."""
    return int(scipy.stats.binom.ppf(level, number, share))
