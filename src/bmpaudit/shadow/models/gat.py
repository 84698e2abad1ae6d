"""Graph attention network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bmpaudit.shadow.models.base import Activation, DropoutPlace, NativeModel
from bmpaudit.shadow.models.layer_spec import LayerSpec


@dataclass(frozen=True)
class GAT(NativeModel):
    """Graph attention network (Veličković et al. 2018), as PyTorch Geometric's `GATConv` layers.

    Attention α_ij = softmax_j LeakyReLU(a_srcᵀ W x_j + a_dstᵀ W x_i) with slope 0.2 over N(i) ∪ {i}; hidden layers
    concatenate their heads, the last layer has one. Glorot weights and attention vectors, zero biases. The defaults
    are the paper's settings as far as they are known.

    Attributes:
        hidden: Units of each attention head of a hidden layer.
        dropout_on: Where dropout goes: input, attention, hidden.
        heads: Attention heads of a hidden layer.
    """

    hidden: int = 4
    dropout_on: tuple[DropoutPlace, ...] = ("input", "attention", "hidden")
    activation: Activation = "elu"
    heads: int = 8

    dropout_places = ("input", "attention", "hidden")

    @property
    def hidden_heads(self) -> int:
        """See `NativeModel.hidden_heads`."""
        return self.heads

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """See `NativeModel.parameter_names`."""
        return ("lin.weight", "att_src", "att_dst", "bias")

    def native_layer(self, channels: int, heads: int) -> LayerSpec:
        """See `NativeModel.native_layer`."""
        return LayerSpec("gat", channels, heads)

    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:
        """See `NativeModel.torch_layer`."""
        from torch_geometric.nn import GATConv

        return GATConv(inputs, units, heads=heads, dropout=self.dropout if "attention" in self.dropout_on else 0.0)
