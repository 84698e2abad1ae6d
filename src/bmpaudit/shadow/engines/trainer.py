"""What an engine that trains in several processes is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, Self, TypeVar

from bmpaudit.arrays import Floats32
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan


class Trainer(Protocol):
    """Trains models one by one in the process it is in."""

    @property
    def plan(self) -> ShadowPlan:
        """What to train; its sampler and queries are not used."""

    def for_trial(self) -> Self:
        """The same or a shorter training, enough to tell whether processes compute alike."""

    def fill(self, batch: ShadowBatch, initial: Floats32 | None) -> None:
        """Trains and scores the only model of a batch; global random generators are left as they were.

        Args:
            batch: What to train, and where the answers go.
            initial: Initial parameters in the order of the native engine, for a built-in model.
        """


AnyTrainer = TypeVar("AnyTrainer", bound=Trainer)


class Recipe(Protocol[AnyTrainer]):
    """How another process makes the trainer that this one has; it is pickled."""

    def save(self, trainer: AnyTrainer, folder: Path) -> None:
        """Writes what all processes map into their memory."""

    def load(self, folder: Path) -> AnyTrainer:
        """Makes the trainer in another process, whose settings it may change: the process trains and nothing else."""
