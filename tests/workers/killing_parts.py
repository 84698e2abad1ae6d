"""Parts of a plan that kill the first worker they run on, found as `killing_parts:Name`; and one that only fails."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bmpaudit.attack import Evidence, Gaussian, Scores
from bmpaudit.estimation.definitions import BMPRight
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats


def die_once(mark: str, spared: int) -> None:
    """Ends this process, unless it is the one to be spared or another has ended before: exactly one gets the mark."""
    if os.getpid() != spared:
        with suppress(FileExistsError):
            Path(mark).touch(exist_ok=False)
            os._exit(1)


@dataclass(frozen=True)
class Killing:
    """Cross-fitted, as it cannot leave models out."""

    fuses_queries: ClassVar[bool] = False

    mark: str
    spared: int

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:
        die_once(self.mark, self.spared)
        return Gaussian().score(fitting, challenged, num_threads=num_threads)


@dataclass(frozen=True)
class KillingRight(BMPRight):
    """BMP-R, once a worker has died of it."""

    mark: str = ""
    spared: int = 0

    def epsilons(self, epsilon_right: Floats) -> tuple[float, Floats]:
        die_once(self.mark, self.spared)
        return super().epsilons(epsilon_right)


@dataclass(frozen=True)
class Refusing(BMPRight):
    """A definition that has no ε."""

    def epsilons(self, epsilon_right: Floats) -> tuple[float, Floats]:
        raise InputError(f"there is no ε for {epsilon_right.dtype}")
