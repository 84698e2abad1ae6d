"""Simplified graph convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bmpaudit.shadow.models.base import NativeModel, check_hops
from bmpaudit.shadow.models.layer_spec import LayerSpec


@dataclass(frozen=True)
class SGC(NativeModel):
    """Simplified graph convolution (Wu et al. 2019), as PyTorch Geometric's `SGConv`.

    One layer, S^K X W + b: the K-th power of a GCN's matrix S, and no activation in between. With more layers each is
    of this kind. Weights and biases start uniform within ±1/√inputs.

    Attributes:
        hops: Steps along the edges in each layer.
    """

    layers: int = 1
    hops: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_hops(self.hops)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """See `NativeModel.parameter_names`."""
        return ("lin.weight", "lin.bias")

    def native_layer(self, channels: int, heads: int) -> LayerSpec:
        """See `NativeModel.native_layer`."""
        return LayerSpec("sgc", channels, heads, initialisation="fan_in", hops=self.hops)

    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:  # noqa: ARG002
        """See `NativeModel.torch_layer`."""
        from torch_geometric.nn import SGConv

        return SGConv(inputs, units, K=self.hops)
