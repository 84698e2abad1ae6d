"""A layer as C++ has it: of these a built-in model is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Shape = tuple[int, ...]
Norm = Literal["none", "layer", "batch"]

VECTORS = {"gat": ("att_src", "att_dst")}
"""By kind of layer, parameters of one number for each unit, beside weight and bias."""

NORM_NAMES: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "layer": ("weight", "bias"),
    "batch": ("weight", "bias", "running_mean", "running_var"),
}
"""By normalisation, what PyTorch calls its parameters and statistics, in the order of C++."""


@dataclass(frozen=True)
class LayerSpec:
    """The arguments of `_native.LayerSettings`.

    Attributes:
        kind: Name of the layer, as in `native/layer_kinds.cpp`.
        channels: Units of a head.
        heads: Attention heads.
        initialisation: Law of the initial values: glorot (Glorot and Bengio 2010, with biases of 0), or fan_in
            (uniform within ±1/√inputs, as `torch.nn.Linear` has it).
        drops_input: Whether dropout goes on its input.
        drops_attention: Whether dropout goes on its attention.
        aggregation: What SAGE takes of a node's neighbours: mean or max.
        root_weight: Whether a SAGE layer has a weight of its own for a node's own input.
        hops: Steps along the edges, of SGC and APPNP.
        alpha: What each step of APPNP takes of the first predictions.
        norm: Normalisation of its output: none, layer or batch.
        residual: What is added to its activated output: 1 for its own input, 2 for that of the layer before, 0 for
            nothing.
    """

    kind: str
    channels: int
    heads: int = 1
    initialisation: Literal["glorot", "fan_in"] = "glorot"
    drops_input: bool = False
    drops_attention: bool = False
    aggregation: str = "mean"
    root_weight: bool = False
    hops: int = 1
    alpha: float = 1.0
    norm: Norm = "none"
    residual: int = 0

    @property
    def units(self) -> int:
        """Units of all heads."""
        return self.channels * self.heads

    def parameter_shapes(self, inputs: int) -> list[Mapping[str, Shape]]:
        """Shapes of its parameters, and of those of its normalisation, by short names, in the order of C++."""
        shapes: dict[str, Shape] = {"weight": (self.units, inputs)}
        if self.root_weight:
            shapes["root_weight"] = (self.units, inputs)
        shapes |= dict.fromkeys(VECTORS.get(self.kind, ()), (1, self.heads, self.channels))
        parts: list[Mapping[str, Shape]] = [shapes | {"bias": (self.units,)}]
        if self.norm != "none":
            parts.append(dict.fromkeys(NORM_NAMES[self.norm], (self.units,)))
        return parts
