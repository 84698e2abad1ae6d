"""Some shadow models on their way from an engine to the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bmpaudit.graph import Graph
from bmpaudit.shadow.plan import ShadowPlan

Progress = Callable[[int], object]
"""Is told how many models are done."""


class ModelState(IntEnum):
    """How far a shadow model has come."""

    UNTRAINED = 0
    TRAINED = 1
    FAILED = 2


@dataclass(frozen=True, eq=False)
class ShadowBatch:
    """Arrays that an engine fills, one row a model; rows of models that are not trained hold NaN.

    Attributes:
        indices: Number of each model in the plan, shape (B,).
        memberships: Who is in each sample, shape (B, num_nodes).
        statistics: Label margins, shape (num_views, B, num_nodes).
        logits: Shape (num_views, B, num_nodes, num_classes), if they are kept.
        state: `ModelState`, shape (B,).
        train_accuracy: On the sample, asked with full edges, shape (B,).
        held_out_accuracy: On all other nodes, asked with full edges, shape (B,).
    """

    indices: npt.NDArray[np.int64]
    memberships: npt.NDArray[np.bool_]
    statistics: npt.NDArray[np.float32]
    logits: npt.NDArray[np.float32] | None
    state: npt.NDArray[np.uint8]
    train_accuracy: npt.NDArray[np.float32]
    held_out_accuracy: npt.NDArray[np.float32]

    @classmethod
    def empty(
        cls,
        graph: Graph,
        plan: ShadowPlan,
        indices: npt.NDArray[np.int64],
        memberships: npt.NDArray[np.bool_],
        keep_logits: bool = False,
    ) -> ShadowBatch:
        """A batch with nothing trained."""
        shape = (len(plan.views), len(indices), graph.num_nodes)
        return cls(
            indices=indices,
            memberships=memberships,
            statistics=np.full(shape, np.nan, dtype=np.float32),
            logits=np.full((*shape, graph.num_classes), np.nan, dtype=np.float32) if keep_logits else None,
            state=np.zeros(len(indices), dtype=np.uint8),
            train_accuracy=np.full(len(indices), np.nan, dtype=np.float32),
            held_out_accuracy=np.full(len(indices), np.nan, dtype=np.float32),
        )

    @property
    def is_done(self) -> npt.NDArray[np.bool_]:
        """Which models were trained or have failed for good, shape (B,)."""
        return self.state != ModelState.UNTRAINED


class Engine(Protocol):
    """Trains shadow models."""

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """Trains and scores the batch's models, writing into its arrays.

        If it is interrupted (Ctrl-C, an exception of `progress`), models already finished stay in the batch.
        """
        ...
