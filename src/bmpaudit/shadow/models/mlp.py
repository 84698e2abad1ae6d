"""Multilayer perceptron."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bmpaudit.shadow.models.base import NativeModel


@dataclass(frozen=True)
class MLP(NativeModel):
    """Multilayer perceptron: the baseline that sees no edges. Glorot weights, zero biases."""

    architecture = "mlp"
    uses_edges = False
    parameter_names = ("weight", "bias")

    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:  # noqa: ARG002
        """See `NativeModel.torch_layer`."""
        from torch import nn

        return nn.Linear(inputs, units)
