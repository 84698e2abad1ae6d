"""Predictions that are propagated by personalised PageRank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bmpaudit.errors import InputError
from bmpaudit.shadow.models.base import DropoutPlace, NativeModel, check_hops
from bmpaudit.shadow.models.layer_spec import LayerSpec


@dataclass(frozen=True)
class APPNP(NativeModel):
    """Predict, then propagate (Gasteiger, Bojchevski and Günnemann 2019): an MLP and PyTorch Geometric's `APPNP`.

    Z ← (1 - α) S Z + α H, K times from Z = H, the MLP's logits, with S the matrix of a GCN. Weights and biases start
    uniform within ±1/√inputs. The defaults are those of PyTorch Geometric's example.

    Attributes:
        hops: Steps along the edges after the last layer.
        alpha: Teleport probability: what each step takes of the MLP's own logits.
    """

    hidden: int = 64
    dropout_on: tuple[DropoutPlace, ...] = ("input", "hidden")
    hops: int = 10
    alpha: float = 0.1

    uses_edges = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_hops(self.hops)
        if not 0 < self.alpha <= 1:
            raise InputError(f"alpha must be in (0, 1], got alpha={self.alpha}")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """See `NativeModel.parameter_names`."""
        return ("weight", "bias")

    def native_layer(self, channels: int, heads: int) -> LayerSpec:
        """See `NativeModel.native_layer`."""
        return LayerSpec("mlp", channels, heads, initialisation="fan_in")

    def native_layers(self, num_classes: int) -> list[LayerSpec]:
        """See `NativeModel.native_layers`."""
        *hidden, last = super().native_layers(num_classes)
        return [*hidden, replace(last, kind="appnp", hops=self.hops, alpha=self.alpha)]

    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:  # noqa: ARG002
        """See `NativeModel.torch_layer`."""
        from torch import nn

        return nn.Linear(inputs, units)

    def torch_propagation(self) -> Any:
        """See `NativeModel.torch_propagation`."""
        from torch_geometric.nn import APPNP as Propagation  # noqa: N811

        return Propagation(self.hops, self.alpha)
