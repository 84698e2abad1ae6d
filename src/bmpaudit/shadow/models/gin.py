"""Graph isomorphism network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bmpaudit.shadow.models.base import NativeModel
from bmpaudit.shadow.models.layer_spec import NORM_NAMES, LayerSpec, Norm


@dataclass(frozen=True)
class GIN(NativeModel):
    """Graph isomorphism network (Xu et al. 2019), as PyTorch Geometric's `GINConv` with ε = 0.

    x_i ← σ(MLP(x_i + Σ_{j ∈ N(i)} x_j)), where the MLP is a linear map to `hidden` units, normalisation, activation
    and a second linear map; no activation after the last layer. `norm` is the one within the MLP. Weights and biases
    start uniform within ±1/√inputs. Noise on the last layer goes on the last linear map.
    """

    @property
    def norm_within(self) -> Norm:
        """Normalisation within the MLP of each layer."""
        return self.norm or "batch"

    @property
    def norm_between(self) -> Norm:
        """See `NativeModel.norm_between`."""
        return "none"

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """See `NativeModel.parameter_names`."""
        of_norm = [f"nn.1.{name}" for name in NORM_NAMES[self.norm_within]]
        return ("nn.0.weight", "nn.0.bias", *of_norm, *self.last_layer_names)

    @property
    def last_layer_names(self) -> tuple[str, ...]:
        """See `NativeModel.last_layer_names`."""
        return ("nn.3.weight", "nn.3.bias")

    def native_layer(self, channels: int, heads: int) -> LayerSpec:
        """See `NativeModel.native_layer`: the second linear map of a layer."""
        return LayerSpec("mlp", channels, heads, initialisation="fan_in")

    def native_layers(self, num_classes: int) -> list[LayerSpec]:
        """See `NativeModel.native_layers`."""
        layers = []
        for second in super().native_layers(num_classes):
            first = replace(second, kind="gin", channels=self.hidden, norm=self.norm_within, residual=0)
            layers += [first, replace(second, drops_input=False, residual=2 * second.residual)]
        return layers

    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:  # noqa: ARG002
        """See `NativeModel.torch_layer`."""
        from torch import nn
        from torch_geometric.nn import GINConv

        from bmpaudit.shadow.models.layered_module import new_norm

        activation = nn.ReLU() if self.activation == "relu" else nn.ELU()
        norm = new_norm(self.norm_within, self.hidden)
        return GINConv(nn.Sequential(nn.Linear(inputs, self.hidden), norm, activation, nn.Linear(self.hidden, units)))
