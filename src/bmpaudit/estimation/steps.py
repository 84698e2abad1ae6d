"""Progress through a search of which nobody knows beforehand how long it takes."""

from __future__ import annotations

from bmpaudit.interfaces import Progress

PARTS = 1_000
"""What an exact posterior reports when it is done."""


class Steps:
    """Each step takes a share of what is left, so that progress never goes back and never stands still.

    Args:
        progress: Called with the number of thousandths done.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress, self._reached, self._begun = progress, 0.0, 0.0

    def step(self, share: float, total: int) -> Progress:
        """Begins the next step, which takes a share of what is left; it is told how much of its total it has done."""
        start = self._begun
        self._begun = start + share * (1 - start)
        end = self._begun

        def update(done: int) -> None:
            self._reached = max(self._reached, start + (end - start) * min(1.0, done / max(total, 1)))
            self._progress(int(PARTS * self._reached))

        return update
