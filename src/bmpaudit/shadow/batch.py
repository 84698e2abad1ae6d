"""Some shadow models on their way from an engine to the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Floats32, Ints
from bmpaudit.graph import Graph
from bmpaudit.samplers import draw_memberships
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

    @classmethod
    def drawn(
        cls, graph: Graph, plan: ShadowPlan, indices: Ints, keep_logits: bool, *, num_threads: int
    ) -> ShadowBatch:
        """Models with their samples and nothing trained; `indices` are ascending."""
        first = int(indices[0])
        span = int(indices[-1]) - first + 1
        drawn = draw_memberships(graph, plan.sampler, span, plan.seed, first=first, num_threads=num_threads)
        memberships = np.ascontiguousarray(drawn[indices - first])
        return cls.empty(graph, plan, indices.astype(np.int64), memberships, keep_logits)

    @classmethod
    def joined(cls, batches: Sequence[ShadowBatch]) -> ShadowBatch:
        """The models of several batches, one after the other."""
        logits = [batch.logits for batch in batches if batch.logits is not None]
        return cls(
            indices=np.concatenate([batch.indices for batch in batches]),
            memberships=np.concatenate([batch.memberships for batch in batches]),
            statistics=np.concatenate([batch.statistics for batch in batches], axis=1),
            logits=np.concatenate(logits, axis=1) if logits else None,
            state=np.concatenate([batch.state for batch in batches]),
            train_accuracy=np.concatenate([batch.train_accuracy for batch in batches]),
            held_out_accuracy=np.concatenate([batch.held_out_accuracy for batch in batches]),
        )

    @property
    def is_done(self) -> Flags:
        """Which models were trained or have failed for good, shape (B,)."""
        return self.state != ModelState.UNTRAINED

    def part(self, rows: slice | Ints | Flags) -> ShadowBatch:
        """Some of the models; with a slice the arrays are shared."""
        return ShadowBatch(
            indices=self.indices[rows],
            memberships=self.memberships[rows],
            statistics=self.statistics[:, rows],
            logits=None if self.logits is None else self.logits[:, rows],
            state=self.state[rows],
            train_accuracy=self.train_accuracy[rows],
            held_out_accuracy=self.held_out_accuracy[rows],
        )

    def fail(self, row: int) -> None:
        """Marks a model as failed and forgets whatever it gave."""
        self.state[row] = ModelState.FAILED
        self.statistics[:, row] = np.nan
        if self.logits is not None:
            self.logits[:, row] = np.nan
        self.train_accuracy[row] = self.held_out_accuracy[row] = np.nan
