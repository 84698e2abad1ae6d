"""GraphSAGE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bmpaudit.errors import InputError
from bmpaudit.shadow.models.base import NativeModel, check_choice
from bmpaudit.shadow.models.layer_spec import LayerSpec

Aggregation = Literal["mean", "max"]


@dataclass(frozen=True)
class SAGE(NativeModel):
    """GraphSAGE (Hamilton, Ying and Leskovec 2017), as PyTorch Geometric's `SAGEConv` layers.

    x_i ← σ(W_l · mean_{j ∈ N(i)} x_j + W_r x_i + b), or with the largest x_j instead of their mean, unit by unit; a
    node with no neighbours has 0 there. No activation after the last layer. Weights and biases start uniform within
    ±1/√inputs.

    Attributes:
        aggregation: What a layer takes of a node's neighbours: mean or max.
        root_weight: Whether a layer has the matrix W_r, for the node itself.
    """

    aggregation: Aggregation = "mean"
    root_weight: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("aggregation", self.aggregation, ("mean", "max"))
        if self.aggregation == "max" and "input" in self.dropout_on:
            raise InputError("dropout_on must be hidden for aggregation='max', got dropout_on='input'")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """See `NativeModel.parameter_names`."""
        return ("lin_l.weight", *(["lin_r.weight"] if self.root_weight else []), "lin_l.bias")

    def native_layer(self, channels: int, heads: int) -> LayerSpec:
        """See `NativeModel.native_layer`."""
        return LayerSpec(
            "sage",
            channels,
            heads,
            initialisation="fan_in",
            aggregation=self.aggregation,
            root_weight=self.root_weight,
        )

    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:  # noqa: ARG002
        """See `NativeModel.torch_layer`."""
        from torch_geometric.nn import SAGEConv

        return SAGEConv(inputs, units, aggr=self.aggregation, root_weight=self.root_weight)
