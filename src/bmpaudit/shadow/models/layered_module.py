"""A built-in model as a PyTorch module. Importing this imports torch."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own name for it
from torch import nn

from bmpaudit.arrays import Floats32
from bmpaudit.shadow.models.base import NativeModel
from bmpaudit.shadow.models.layer_spec import NORM_NAMES, Norm


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
        hidden = model.hidden * model.hidden_heads
        self.norms = nn.ModuleList(new_norm(model.norm_between, hidden) for _ in range(model.layers - 1))
        self.propagation = model.torch_propagation()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, shape (num_nodes, num_classes)."""
        activation = F.relu if self.model.activation == "relu" else F.elu
        entering = x
        for number, layer in enumerate(self.layers):
            if number > 0:
                x = activation(self.norms[number - 1](x))
                if self.model.residual and number > 1:
                    x = x + entering
            if ("hidden" if number > 0 else "input") in self.model.dropout_on:
                x = F.dropout(x, self.model.dropout, self.training)
            entering = x
            x = layer(x, edge_index) if self.model.uses_edges else layer(x)
        return x if self.propagation is None else self.propagation(x, edge_index)

    def ordered_tensors(self) -> list[torch.Tensor]:
        """All parameters, and the running statistics of normalisations, in the order in which C++ lists them."""
        tensors = []
        for number, layer in enumerate(self.layers):
            tensors += named_tensors(layer, self.model.parameter_names)
            if number < len(self.norms):
                tensors += named_tensors(self.norms[number], NORM_NAMES[self.model.norm_between])
        return tensors

    @property
    def last_layer(self) -> nn.Module:
        """What takes the activations of the last hidden layer: of a perceptron within a layer, its own last one."""
        layer: nn.Module = self.layers[-1]
        name = self.model.last_layer_names[0].rpartition(".")[0]
        return layer.get_submodule(name) if name.startswith("nn.") else layer

    def last_layer_parameters(self) -> list[torch.Tensor]:
        """The parameters that a noisy release changes."""
        return named_tensors(self.layers[-1], self.model.last_layer_names)

    @torch.no_grad()
    def load_flat(self, flat: Floats32) -> None:
        """Sets all parameters from a flat array as C++ gives it."""
        start = 0
        for parameter in self.ordered_tensors():
            values = torch.from_numpy(flat[start : start + parameter.numel()])
            parameter.copy_(values.view_as(parameter))
            start += parameter.numel()


def new_norm(norm: Norm, units: int) -> nn.Module:
    """A normalisation of so many units."""
    kinds = {"none": nn.Identity, "layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
    return kinds[norm](units)


def named_tensors(module: nn.Module, names: tuple[str, ...]) -> list[torch.Tensor]:
    """Parameters and buffers of a module by name."""
    named = module.state_dict(keep_vars=True)
    return [named[name] for name in names]
