"""Which arrays a folder of shadow models has, and what one digest vouches for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.graph import Graph
from bmpaudit.shadow.array_group import ArrayKind
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan

Values = Mapping[str, npt.NDArray[Any]]

FLAGS = dict.fromkeys(("failed", "done"), ArrayKind("bool", (), False))
"""What is known of a model beside its numbers; `done` vouches for all of them."""


@dataclass(frozen=True)
class Columns:
    """Arrays that are written together and have one digest for each model.

    Attributes:
        name: What they are about: empty for the models, else a view, the logits of a view, or the weights of a repeat.
        kinds: The arrays, by name.
        values: From a batch to the values of each array, in the order of its models.
    """

    name: str
    kinds: Mapping[str, ArrayKind]
    values: Callable[[ShadowBatch], Values]

    @property
    def digest(self) -> str:
        """Name of the array of digests."""
        return f"digest_{self.name}" if self.name else "digest"


def columns_of(graph: Graph, plan: ShadowPlan, *, keep_logits: bool, num_weights: int = 0) -> list[Columns]:
    """Everything that is stored of the models of a plan; no weights if their number is 0."""
    columns = [_model_columns(graph)]
    columns += [_view_columns(graph, view.name, number) for number, view in enumerate(plan.views)]
    if keep_logits:
        columns += [_logits_columns(graph, view.name, number) for number, view in enumerate(plan.views)]
    if num_weights:
        columns += [_weights_columns(num_weights, repeat) for repeat in range(plan.num_repeats)]
    return columns


def array_kinds(columns: list[Columns]) -> dict[str, ArrayKind]:
    """All arrays, `done` last."""
    kinds: dict[str, ArrayKind] = {}
    for each in columns:
        kinds |= {**each.kinds, each.digest: ArrayKind("uint64", (), 0)}
    return kinds | FLAGS


_SHARE = ArrayKind("float32", (), np.nan)


def _model_columns(graph: Graph) -> Columns:
    return Columns(
        "",
        {
            "memberships": ArrayKind("bool", (graph.num_nodes,), False),
            "train_accuracy": _SHARE,
            "held_out_accuracy": _SHARE,
        },
        lambda batch: {
            "memberships": batch.memberships,
            "train_accuracy": batch.train_accuracy,
            "held_out_accuracy": batch.held_out_accuracy,
        },
    )


def _view_columns(graph: Graph, view: str, number: int) -> Columns:
    names = f"statistic_{view}", f"train_accuracy_{view}", f"held_out_accuracy_{view}"
    kinds = ArrayKind("float32", (graph.num_nodes,), np.nan), _SHARE, _SHARE

    def values(batch: ShadowBatch) -> Values:
        tables = batch.statistics, batch.view_train_accuracy, batch.view_held_out_accuracy
        return {name: table[number] for name, table in zip(names, tables, strict=True)}

    return Columns(view, dict(zip(names, kinds, strict=True)), values)


def _logits_columns(graph: Graph, view: str, number: int) -> Columns:
    name = f"logits_{view}"
    kind = ArrayKind("float32", (graph.num_nodes, graph.num_classes), np.nan)
    return Columns(name, {name: kind}, lambda batch: {} if batch.logits is None else {name: batch.logits[number]})


def _weights_columns(num_weights: int, repeat: int) -> Columns:
    name = weights_name(repeat)
    kind = ArrayKind("float32", (num_weights,), np.nan, ("weight",))
    return Columns(name, {name: kind}, lambda batch: {} if batch.weights is None else {name: batch.weights[repeat]})


def weights_name(repeat: int) -> str:
    """The array with the weights of one repeat of every model; repeat 0 is the model itself."""
    return f"weights_{repeat}"
