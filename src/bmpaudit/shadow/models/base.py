"""What the models that C++ trains have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError

DropoutPlace = Literal["input", "attention", "hidden"]
Activation = Literal["relu", "elu"]

MAX_UNITS = 65_536


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raises `InputError` unless a setting has one of the values allowed."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}, got {name}={value!r}")


@dataclass(frozen=True)
class NativeModel(ABC):
    """A stack of layers of one kind, which both engines can train.

    A subclass is a frozen dataclass that says what one layer is, for C++ by name and for PyTorch by `torch_layer`.

    Attributes:
        hidden: Units of a hidden layer.
        layers: Number of layers.
        dropout: Dropout probability; the native engine rounds it to 32 binary digits.
        dropout_on: Where dropout goes: input, hidden.
        activation: Activation function: relu or elu.
    """

    hidden: int = 16
    layers: int = 2
    dropout: float = 0.5
    dropout_on: tuple[DropoutPlace, ...] = ("hidden",)
    activation: Activation = "relu"

    architecture: ClassVar[str]
    """Name of the layer in C++."""
    dropout_places: ClassVar[tuple[DropoutPlace, ...]] = ("input", "hidden")
    """Where dropout can go."""
    uses_edges: ClassVar[bool] = True
    """Whether PyTorch's layer is called with `edge_index`."""
    parameter_names: ClassVar[tuple[str, ...]] = ("lin.weight", "bias")
    """Parameters of PyTorch's layer in the order in which C++ lists them."""

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

    @property
    def hidden_heads(self) -> int:
        """Attention heads of a hidden layer; 1 for layers without heads."""
        return 1

    def native_settings(self) -> dict[str, Any]:
        """Arguments of `_native.ModelSettings`."""
        return {
            "architecture": self.architecture,
            "hidden": self.hidden,
            "heads": self.hidden_heads,
            "layers": self.layers,
            "activation": self.activation,
            "dropout": self.dropout,
            "drops_input": "input" in self.dropout_on,
            "drops_attention": "attention" in self.dropout_on,
            "drops_hidden": "hidden" in self.dropout_on,
        }

    @abstractmethod
    def torch_layer(self, inputs: int, units: int, heads: int) -> Any:
        """One layer as a PyTorch module; imports torch."""

    def torch_module(self, num_features: int, num_classes: int) -> Any:
        """The model as a PyTorch module; imports torch."""
        from bmpaudit.shadow.models.layered_module import LayeredModule

        return LayeredModule(self, num_features, num_classes)
