"""A built-in model as a PyTorch module. Importing this imports torch."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own name for it
from torch import nn

from bmpaudit.arrays import Floats32
from bmpaudit.shadow.models.base import NativeModel


class LayeredModule(nn.Module):
    """The layers of a `NativeModel` with activation and dropout between them."""

    def __init__(self, model: NativeModel, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.model = model
        layers, width = [], num_features
        for number in range(model.layers):
            units, heads = model.layer_width(number, num_classes)
            layers.append(model.torch_layer(width, units, heads))
            width = units * heads
        self.layers = nn.ModuleList(layers)
        self.propagation = model.torch_propagation()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, shape (num_nodes, num_classes)."""
        activation = F.relu if self.model.activation == "relu" else F.elu
        for number, layer in enumerate(self.layers):
            if number > 0:
                x = activation(x)
            if ("hidden" if number > 0 else "input") in self.model.dropout_on:
                x = F.dropout(x, self.model.dropout, self.training)
            x = layer(x, edge_index) if self.model.uses_edges else layer(x)
        return x if self.propagation is None else self.propagation(x, edge_index)

    def layer_parameters(self, layer: nn.Module) -> list[nn.Parameter]:
        """Parameters of one layer in the order in which C++ lists them."""
        named = dict(layer.named_parameters())
        return [named[name] for name in self.model.parameter_names]

    def ordered_parameters(self) -> list[nn.Parameter]:
        """All parameters in the order in which C++ lists them."""
        return [parameter for layer in self.layers for parameter in self.layer_parameters(layer)]

    def last_layer_parameters(self) -> list[nn.Parameter]:
        """The parameters that a noisy release changes."""
        return self.layer_parameters(self.layers[-1])

    @torch.no_grad()
    def load_flat(self, flat: Floats32) -> None:
        """Sets all parameters from a flat array as C++ gives it."""
        start = 0
        for parameter in self.ordered_parameters():
            values = torch.from_numpy(flat[start : start + parameter.numel()])
            parameter.copy_(values.view_as(parameter))
            start += parameter.numel()
