"""Multilayer perceptron."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bmpaudit.shadow.models.base import NativeModel
from bmpaudit.shadow.models.layer_spec import LayerSpec


@dataclass(frozen=True)
class MLP(NativeModel):
    """Multilayer perceptron: the baseline that sees no edges. Glorot weights, zero biases."""

    uses_edges = False
    sees_edges = False

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """See `NativeModel.parameter_names`."""
        return ("weight", "bias")

    def native_layer(self, channels: int, heads: int) -> LayerSpec:
        """See `NativeModel.native_layer`."""
        return LayerSpec("mlp", channels, heads)

    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:  # noqa: ARG002
        """See `NativeModel.torch_layer`."""
        from torch import nn

        return nn.Linear(inputs, units)
