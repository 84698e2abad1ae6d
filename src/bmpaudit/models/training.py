"""How a model is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from bmpaudit.models.gnn import MAX_HOPS, check_choice
from bmpaudit.registry import title
from bmpaudit.util.errors import InputError, check_at_least_one

Schedule = Literal["constant", "cosine", "step"]

ALL_NEIGHBORS = -1


@dataclass(frozen=True)
class Training:
    """Training on the subgraph induced by a sample, and on nothing else: on all of it at once, or by mini-batches.

    Attributes:
        epochs: Number of passes over the sample; without mini-batches, of optimiser steps.
        learning_rate: Learning rate.
        weight_decay: L2 penalty on all parameters, added to the gradient.
        optimizer: Optimiser: adam (β = 0.9, 0.999; ε = 1e-8) or sgd.
        schedule: How the learning rate goes on, constant by default: cosine (down to 0 by half a cosine) or step (a
            tenth after half of the epochs, a hundredth after three quarters).
        label_smoothing: Share of each label that all classes get in equal parts, 0 by default.
        drop_edge: Share of the sample's edges that each epoch leaves out, drawn anew, 0 by default (DropEdge).
        validation_share: Share of the sample's nodes kept out of the loss, none by default; the weights with the lowest
            loss on them are taken in the end (early stopping).
        patience: Number of epochs without a lower validation loss after which training stops; by default all epochs
            are trained. Needs `validation_share`.
        batch_size: Number of nodes in a mini-batch, by default all; order drawn anew each epoch.
        neighbors: Number of neighbours sampled per node, hop by hop, as by PyTorch Geometric's `NeighborLoader`; -1 for
            all. Needs `batch_size`.
    """

    epochs: int = 100
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    optimizer: Literal["adam", "sgd"] = "adam"
    schedule: Schedule | None = None
    label_smoothing: float | None = None
    drop_edge: float | None = None
    validation_share: float | None = None
    patience: int | None = None
    batch_size: int | None = None
    neighbors: tuple[int, ...] | None = None

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
        if self.drop_edge is not None and not 0 <= self.drop_edge < 1:
            raise InputError(f"drop_edge must be in [0, 1), got drop_edge={self.drop_edge}")
        self._check_validation()
        self._check_batches()

    def _check_validation(self) -> None:
        if self.validation_share is not None and not 0 < self.validation_share < 1:
            raise InputError(f"validation_share must be in (0, 1), got validation_share={self.validation_share}")
        if self.patience is not None:
            check_at_least_one(patience=self.patience)
            if self.validation_share is None:
                raise InputError(f"patience needs validation_share, got patience={self.patience} alone")

    def _check_batches(self) -> None:
        if self.batch_size is not None:
            check_at_least_one(batch_size=self.batch_size)
        if self.neighbors is None:
            return
        object.__setattr__(self, "neighbors", tuple(self.neighbors))
        shown = " ".join(map(str, self.neighbors))
        if self.batch_size is None:
            raise InputError(f"neighbors needs batch_size, got neighbors={shown} alone")
        if not 0 < len(self.neighbors) <= MAX_HOPS:
            raise InputError(f"neighbors must be given for 1 to {MAX_HOPS} hops, got {len(self.neighbors)}")
        for most in self.neighbors:
            if most != ALL_NEIGHBORS:
                check_at_least_one(neighbors=most)

    def check_model(self, model: Any) -> None:
        """Raises `InputError` if a model cannot be trained this way."""
        if getattr(model, "sees_edges", True):
            if self.batch_size is not None and self.neighbors is None:
                raise InputError(
                    f"{title(model)} needs neighbors with batch_size={self.batch_size}: "
                    "how many neighbours each hop takes of a node"
                )
            return
        for name in ("drop_edge", "neighbors"):
            if getattr(self, name):
                raise InputError(f"{title(model)} sees no edges, and takes no {name}, got {name}={getattr(self, name)}")
