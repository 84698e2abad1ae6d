"""Some shadow models on their way from an engine to the store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Floats32, Ints
from bmpaudit.graph import Graph
from bmpaudit.shadow.plan import ShadowPlan


class ModelState(IntEnum):
    """How far a shadow model has come."""

    UNTRAINED = 0
    TRAINED = 1
    FAILED = 2


@dataclass(frozen=True, eq=False)
class ShadowBatch:
    """Arrays that an engine fills, one row per model; rows of models that are not trained hold NaN.

    Attributes:
        indices: Number of each model in the plan, shape (B,).
        memberships: Who is in each sample, shape (B, num_nodes).
        statistics: The plan's statistic of every node, shape (num_views, B, num_nodes).
        logits: What each view gives out, shape (num_views, B, num_nodes, num_classes), if it is kept.
        state: `ModelState`, shape (B,).
        train_accuracy: On the sample, asked with full edges, shape (B,).
        held_out_accuracy: On all other nodes, asked with full edges, shape (B,).
    """

    indices: Ints
    memberships: Flags
    statistics: Floats32
    logits: Floats32 | None
    state: npt.NDArray[np.uint8]
    train_accuracy: Floats32
    held_out_accuracy: Floats32

    @classmethod
    def empty(
        cls, graph: Graph, plan: ShadowPlan, indices: Ints, memberships: Flags, keep_logits: bool = False
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
    def is_done(self) -> Flags:
        """Which models were trained or have failed for good, shape (B,)."""
        return self.state != ModelState.UNTRAINED

    def fail(self, row: int) -> None:
        """Marks a model as failed and forgets whatever it gave."""
        self.state[row] = ModelState.FAILED
        self.statistics[:, row] = np.nan
        if self.logits is not None:
            self.logits[:, row] = np.nan
        self.train_accuracy[row] = self.held_out_accuracy[row] = np.nan
