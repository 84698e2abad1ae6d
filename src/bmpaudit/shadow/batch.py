"""Some shadow models on their way from an engine to the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from bmpaudit.graph import Graph
from bmpaudit.samplers import draw_memberships
from bmpaudit.samplers.draw import training_edges
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.values import Flags, Floats32, Ints

BY_VIEW = (
    "statistics",
    "is_right",
    "logits",
    "view_train_accuracy",
    "view_held_out_accuracy",
    "weights",
    "rows",
    "norms",
)
"""Arrays of a batch whose first dimension counts views, repeats or sets of rows, and whose second counts models."""


class ModelState(IntEnum):
    """How far a shadow model has come."""

    UNTRAINED = 0
    TRAINED = 1
    FAILED = 2


@dataclass(frozen=True, eq=False)
class ShadowBatch:
    """Arrays that an engine fills, one row for each of B models; rows of models that are not trained hold NaN."""

    indices: Ints  # of each model in the plan, shape (B,)
    memberships: Flags  # who is in each sample, shape (B, num_nodes)
    statistics: Floats32  # of every node, shape (num_views, B, num_nodes)
    state: npt.NDArray[np.uint8]  # `ModelState`, shape (B,)
    train_accuracy: Floats32  # on the sample, asked with full edges, shape (B,)
    held_out_accuracy: Floats32  # on all other nodes, asked with full edges, shape (B,)
    view_train_accuracy: Floats32  # of what each view gives out, on the sample, shape (num_views, B)
    view_held_out_accuracy: Floats32  # of what each view gives out, on all other nodes, shape (num_views, B)
    # Whether the likeliest class (the first of equals) is the true one, shape (num_views, B, num_nodes), if it is kept.
    is_right: Flags | None = None
    # What each view gives out, shape (num_views, B, num_nodes, num_classes), if it is kept.
    logits: Floats32 | None = None
    # Parameters of each model and of its repeats, shape (num_repeats, B, num_weights), if they are kept. A model that
    # has its parameters here is asked, and not trained again.
    weights: Floats32 | None = None
    # Node pairs that each model is trained on, shape (num_edges, 2), if these are not all edges among its nodes.
    edges: npt.NDArray[np.object_] | None = None
    # Class rows, shape (num_row_sets, B, num_features, num_classes), if any are kept, and the lengths that tell whether
    # a feature was learnt from, shape (num_row_sets, B, num_features).
    rows: Floats32 | None = None
    norms: Floats32 | None = None

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
        views, models, nodes, sets = len(plan.views), len(indices), graph.num_nodes, len(plan.row_sets)
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
            is_right=np.zeros((views, models, nodes), dtype=np.bool_) if plan.keeps_labels else None,
            weights=nothing(plan.num_repeats, models, num_weights) if num_weights else None,
            edges=training_edges(graph, plan.sampler, indices, plan.seed),
            rows=nothing(sets, models, graph.num_features, graph.num_classes) if sets else None,
            norms=nothing(sets, models, graph.num_features) if sets else None,
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
        arrays = {name: [getattr(batch, name) for batch in batches] for name in vars(batches[0])}
        there = {name: each for name, each in arrays.items() if each[0] is not None}
        return cls(**{name: np.concatenate(each, axis=int(name in BY_VIEW)) for name, each in there.items()})

    @property
    def is_done(self) -> Flags:
        """Which models were trained or have failed for good, shape (B,)."""
        return self.state != ModelState.UNTRAINED

    def part(self, rows: slice | Ints | Flags) -> ShadowBatch:
        """Some of the models; with a slice the arrays are shared."""
        there = {name: array for name, array in vars(self).items() if array is not None}
        return ShadowBatch(**{name: a[:, rows] if name in BY_VIEW else a[rows] for name, a in there.items()})

    def fail(self, row: int) -> None:
        """Marks a model as failed and forgets whatever it gave."""
        for name, array in vars(self.part(slice(row, row + 1))).items():
            if array is not None and (array.dtype == np.float32 or name == "is_right"):
                array[...] = False if name == "is_right" else np.nan
        self.state[row] = ModelState.FAILED


def nothing(*shape: int) -> Floats32:
    """NaN, where nothing is known yet."""
    return np.full(shape, np.nan, dtype=np.float32)
