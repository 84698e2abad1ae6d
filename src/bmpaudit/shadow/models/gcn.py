"""Graph convolutional network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bmpaudit.shadow.models.base import NativeModel
from bmpaudit.shadow.models.layer_spec import LayerSpec


@dataclass(frozen=True)
class GCN(NativeModel):
    """Graph convolutional network (Kipf and Welling 2017), as PyTorch Geometric's `GCNConv` layers.

    x_i ← σ(Σ_{j ∈ N(i) ∪ {i}} W x_j / √(d̃_i d̃_j) + b), with d̃ the degree plus one; no activation after the last
    layer. Glorot weights, zero biases. The defaults are the paper's settings as far as they are known.
    """

    def native_layer(self, channels: int, heads: int) -> LayerSpec:
        """See `NativeModel.native_layer`."""
        return LayerSpec("gcn", channels, heads)

    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:  # noqa: ARG002
        """See `NativeModel.torch_layer`."""
        from torch_geometric.nn import GCNConv

        return GCNConv(inputs, units)
