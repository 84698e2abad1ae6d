"""Some shadow models on their way from an engine to the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.graph import Graph
from bmpaudit.samplers import draw_memberships
from bmpaudit.samplers.draw import training_edges
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.values import Flags, Floats32, Ints

BY_VIEW = ("statistics", "logits", "view_train_accuracy", "view_held_out_accuracy", "weights")
"""Arrays of a batch whose first dimension counts views or repeats, and whose second dimension counts models."""


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
        view_train_accuracy: Of what each view gives out, on the sample, shape (num_views, B).
        view_held_out_accuracy: Of what each view gives out, on all other nodes, shape (num_views, B).
        weights: Parameters of each model and of its repeats, shape (num_repeats, B, num_weights), if they are kept. A
            model that has its parameters here is asked, and not trained again.
        edges: Node pairs that each model is trained on, shape (B,) of arrays of shape (num_edges, 2), if these are not
            all edges among its nodes.
    """

    indices: Ints
    memberships: Flags
    statistics: Floats32
    logits: Floats32 | None
    state: npt.NDArray[np.uint8]
    train_accuracy: Floats32
    held_out_accuracy: Floats32
    view_train_accuracy: Floats32
    view_held_out_accuracy: Floats32
    weights: Floats32 | None = None
    edges: npt.NDArray[np.object_] | None = None

    @classmethod
    def empty(
        cls,
        graph: Graph,
        plan: ShadowPlan,
        indices: Ints,
        memberships: Flags,
        keep_logits: bool = False,
        num_weights: int = 0,
    ) -> ShadowBatch:
        """A batch with nothing trained; weights are kept if their number is given."""
        views, models, nodes = len(plan.views), len(indices), graph.num_nodes
        return cls(
            indices=indices,
            memberships=memberships,
            statistics=nothing(views, models, nodes),
            logits=nothing(views, models, nodes, graph.num_classes) if keep_logits else None,
            state=np.zeros(models, dtype=np.uint8),
            train_accuracy=nothing(models),
            held_out_accuracy=nothing(models),
            view_train_accuracy=nothing(views, models),
            view_held_out_accuracy=nothing(views, models),
            weights=nothing(plan.num_repeats, models, num_weights) if num_weights else None,
            edges=training_edges(graph, plan.sampler, indices, plan.seed),
        )

    @classmethod
    def drawn(
        cls, graph: Graph, plan: ShadowPlan, indices: Ints, keep_logits: bool, num_weights: int = 0, *, num_threads: int
    ) -> ShadowBatch:
        """Models with their samples and nothing trained; `indices` are ascending."""
        first = int(indices[0])
        span = int(indices[-1]) - first + 1
        drawn = draw_memberships(graph, plan.sampler, span, plan.seed, first=first, num_threads=num_threads)
        memberships = np.ascontiguousarray(drawn[indices - first])
        return cls.empty(graph, plan, indices.astype(np.int64), memberships, keep_logits, num_weights)

    @classmethod
    def joined(cls, batches: Sequence[ShadowBatch]) -> ShadowBatch:
        """The models of several batches, one after the other."""
        joined: dict[str, Any] = {}
        for name, first in vars(batches[0]).items():
            parts = [getattr(batch, name) for batch in batches]
            joined[name] = None if first is None else np.concatenate(parts, axis=int(name in BY_VIEW))
        return cls(**joined)

    @property
    def is_done(self) -> Flags:
        """Which models were trained or have failed for good, shape (B,)."""
        return self.state != ModelState.UNTRAINED

    def part(self, rows: slice | Ints | Flags) -> ShadowBatch:
        """Some of the models; with a slice the arrays are shared."""
        part: dict[str, Any] = {}
        for name, array in vars(self).items():
            part[name] = None if array is None else array[:, rows] if name in BY_VIEW else array[rows]
        return ShadowBatch(**part)

    def fail(self, row: int) -> None:
        """Marks a model as failed and forgets whatever it gave."""
        for array in vars(self.part(slice(row, row + 1))).values():
            if array is not None and array.dtype == np.float32:
                array[...] = np.nan
        self.state[row] = ModelState.FAILED


def nothing(*shape: int) -> Floats32:
    """NaN, where nothing is known yet."""
    return np.full(shape, np.nan, dtype=np.float32)
