"""How a model is trained."""

from dataclasses import dataclass
from typing import Literal, get_args

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.shadow.models.base import check_choice

Schedule = Literal["constant", "cosine", "step"]


@dataclass(frozen=True)
class Training:
    """Full-batch training on the subgraph induced by a sample, and on nothing else.

    Attributes:
        epochs: Number of optimiser steps.
        learning_rate: Learning rate.
        weight_decay: L2 penalty on all parameters, added to the gradient.
        optimizer: Optimiser: adam (β = 0.9, 0.999; ε = 1e-8) or sgd.
        schedule: How the learning rate goes on, constant by default: cosine (down to 0 by half a cosine) or step (a
            tenth after half of the epochs, a hundredth after three quarters).
        label_smoothing: Share of each label that all classes get in equal parts, 0 by default.
    """

    epochs: int = 100
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    optimizer: Literal["adam", "sgd"] = "adam"
    schedule: Schedule | None = None
    label_smoothing: float | None = None

    def __post_init__(self) -> None:
        check_at_least_one(epochs=self.epochs)
        if not 0 < self.learning_rate < float("inf"):
            raise InputError(f"learning_rate must be positive, got learning_rate={self.learning_rate}")
        if not 0 <= self.weight_decay < float("inf"):
            raise InputError(f"weight_decay must be at least 0, got weight_decay={self.weight_decay}")
        check_choice("optimizer", self.optimizer, ("adam", "sgd"))
        if self.schedule is not None:
            check_choice("schedule", self.schedule, get_args(Schedule))
        if self.label_smoothing is not None and not 0 <= self.label_smoothing < 1:
            raise InputError(f"label_smoothing must be in [0, 1), got label_smoothing={self.label_smoothing}")
