"""What the models that C++ trains have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.shadow.models.layer_spec import LayerSpec, Norm

DropoutPlace = Literal["input", "attention", "hidden"]
Activation = Literal["relu", "elu"]

MAX_UNITS = 65_536
MAX_HOPS = 1_024
MIN_RESIDUAL_LAYERS = 3


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raises `InputError` unless a setting has one of the values allowed."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}, got {name}={value!r}")


def check_hops(hops: int) -> None:
    """Raises `InputError` unless a model can take so many steps along the edges."""
    check_at_least_one(hops=hops)
    if hops > MAX_HOPS:
        raise InputError(f"hops must be at most {MAX_HOPS}, got hops={hops}")


@dataclass(frozen=True)
class NativeModel(ABC):
    """A stack of layers of one kind, which both engines can train.

    A subclass is a frozen dataclass that says what one layer is, for C++ by `native_layer` and for PyTorch by
    `torch_layer`.

    Attributes:
        hidden: Units of a hidden layer.
        layers: Number of layers.
        dropout: Dropout probability; the native engine rounds it to 32 binary digits.
        dropout_on: Where dropout goes: input, hidden.
        activation: Activation function: relu or elu.
        norm: Normalisation of the hidden layers before their activation: none, layer (over the units of a node) or
            batch (over the nodes of the sample; running statistics when asked). By default batch for GIN, none for
            other models.
        residual: Whether a hidden layer's input is added to its output, after activation and before dropout, as in
            PyTorch Geometric's `DeepGCNLayer` with `block="res"`; for all but the first. Off by default.
    """

    hidden: int = 16
    layers: int = 2
    dropout: float = 0.5
    dropout_on: tuple[DropoutPlace, ...] = ("hidden",)
    activation: Activation = "relu"
    norm: Norm | None = None
    residual: bool | None = None

    dropout_places: ClassVar[tuple[DropoutPlace, ...]] = ("input", "hidden")
    """Where dropout can go."""
    uses_edges: ClassVar[bool] = True
    """Whether PyTorch's layer is called with `edge_index`."""
    sees_edges: ClassVar[bool] = True
    """Whether what it computes depends on the edges."""

    def __post_init__(self) -> None:
        check_at_least_one(hidden=self.hidden, heads=self.hidden_heads, layers=self.layers)
        units = self.hidden * self.hidden_heads
        if units > MAX_UNITS:
            raise InputError(f"a layer must have at most {MAX_UNITS} units, got {units}")
        object.__setattr__(self, "dropout_on", tuple(self.dropout_on))
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be in [0, 1), got dropout={self.dropout}")
        for place in self.dropout_on:
            check_choice("dropout_on", place, self.dropout_places)
        check_choice("activation", self.activation, ("relu", "elu"))
        if self.norm is not None:
            check_choice("norm", self.norm, get_args(Norm))
        if self.residual and self.layers < MIN_RESIDUAL_LAYERS:
            raise InputError(
                f"residual needs layers of at least {MIN_RESIDUAL_LAYERS}, two of them hidden, got layers={self.layers}"
            )

    @property
    def hidden_heads(self) -> int:
        """Attention heads of a hidden layer; 1 for layers without heads."""
        return 1

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Parameters of PyTorch's layer in the order in which C++ lists them."""
        return ("lin.weight", "bias")

    @abstractmethod
    def native_layer(self, channels: int, heads: int) -> LayerSpec:
        """One layer as C++ has it, dropout aside."""

    def native_layers(self, num_classes: int) -> list[LayerSpec]:
        """The model as C++ has it, layer by layer."""
        layers = []
        for number in range(self.layers):
            channels, heads = self.layer_width(number, num_classes)
            place: DropoutPlace = "hidden" if number > 0 else "input"
            layer = self.native_layer(channels, heads)
            drops_input, drops_attention = (each in self.dropout_on for each in (place, "attention"))
            norm: Norm = "none" if number + 1 == self.layers else self.norm_between
            is_residual = bool(self.residual) and 0 < number < self.layers - 1
            layer = replace(layer, norm=norm, residual=int(is_residual))
            layers.append(replace(layer, drops_input=drops_input, drops_attention=drops_attention))
        return layers

    @property
    def norm_between(self) -> Norm:
        """Normalisation after each layer but the last."""
        return self.norm or "none"

    @property
    def last_layer_names(self) -> tuple[str, ...]:
        """Those of `parameter_names` on which a noisy release puts noise."""
        return self.parameter_names

    def layer_width(self, number: int, num_classes: int) -> tuple[int, int]:
        """Channels and heads of a layer."""
        return (num_classes, 1) if number + 1 == self.layers else (self.hidden, self.hidden_heads)

    @abstractmethod
    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:
        """One layer as a PyTorch module; imports torch."""

    def torch_propagation(self) -> Any:
        """What comes after the last layer, as a PyTorch module without parameters, or None; imports torch."""
        return None

    def torch_module(self, num_features: int, num_classes: int) -> Any:
        """The model as a PyTorch module; imports torch."""
        from bmpaudit.shadow.models.layered_module import LayeredModule

        return LayeredModule(self, num_features, num_classes)
