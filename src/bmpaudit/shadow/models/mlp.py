"""Multilayer perceptron."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bmpaudit.shadow.models.base import Activation, DropoutPlace, NativeModel


@dataclass(frozen=True)
class MLP(NativeModel):
    """Multilayer perceptron: the baseline that sees no edges. Glorot weights, zero biases.

    Attributes:
        hidden: Units of a hidden layer.
        layers: Number of layers.
        dropout: Dropout probability; the native engine rounds it to 16 binary digits.
        dropout_on: Where dropout goes: input, hidden.
        activation: Activation function: relu or elu.
    """

    hidden: int = 16
    layers: int = 2
    dropout: float = 0.5
    dropout_on: tuple[DropoutPlace, ...] = ("hidden",)
    activation: Activation = "relu"

    architecture = "mlp"
    uses_edges = False
    parameter_names = ("weight", "bias")

    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:  # noqa: ARG002
        """See `NativeModel.torch_layer`."""
        from torch import nn

        return nn.Linear(inputs, units)
