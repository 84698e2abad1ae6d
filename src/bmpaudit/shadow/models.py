"""What is trained, and how: specifications of the built-in models."""

from dataclasses import dataclass
from typing import Literal

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError

DropoutPlace = Literal["input", "attention", "hidden"]

MAX_UNITS = 65_536


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}, got {name}={value!r}")


def _check_width(hidden: int, heads: int = 1) -> None:
    if hidden * heads > MAX_UNITS:
        raise InputError(f"a layer must have at most {MAX_UNITS} units, got {hidden * heads}")


def _check_dropout(dropout: float, places: tuple[DropoutPlace, ...], allowed: tuple[str, ...]) -> None:
    if not 0 <= dropout < 1:
        raise InputError(f"dropout must be in [0, 1), got dropout={dropout}")
    for place in places:
        _check_choice("dropout_on", place, allowed)


@dataclass(frozen=True)
class _OneHeaded:
    """What a GCN and an MLP have in common."""

    hidden: int = 16
    layers: int = 2
    dropout: float = 0.5
    dropout_on: tuple[DropoutPlace, ...] = ("hidden",)
    activation: Literal["relu", "elu"] = "relu"

    def __post_init__(self) -> None:
        check_at_least_one(hidden=self.hidden, layers=self.layers)
        _check_width(self.hidden)
        object.__setattr__(self, "dropout_on", tuple(self.dropout_on))
        _check_dropout(self.dropout, self.dropout_on, ("input", "hidden"))
        _check_choice("activation", self.activation, ("relu", "elu"))


@dataclass(frozen=True)
class GCN(_OneHeaded):
    """Graph convolutional network (Kipf and Welling 2017), as PyTorch Geometric's `GCNConv` layers.

    x_i ← σ(Σ_{j ∈ N(i) ∪ {i}} W x_j / √(d̃_i d̃_j) + b), with d̃ the degree plus one; no activation after the last
    layer. Glorot weights, zero biases. The defaults are the paper's settings as far as they are known.

    Attributes:
        hidden: Units of a hidden layer.
        layers: Number of layers, at least 1.
        dropout: Probability that a unit is dropped while training; the native engine rounds it to 16 binary digits.
        dropout_on: Where: `input`, `hidden`, or both.
        activation: `relu` or `elu`.
    """


@dataclass(frozen=True)
class GAT:
    """Graph attention network (Veličković et al. 2018), as PyTorch Geometric's `GATConv` layers.

    Attention α_ij = softmax_j LeakyReLU(a_srcᵀ W x_j + a_dstᵀ W x_i) with slope 0.2 over N(i) ∪ {i}; hidden layers
    concatenate their heads, the last layer has one. Glorot weights and attention vectors, zero biases. The defaults
    are the paper's settings as far as they are known.

    Attributes:
        hidden: Units of one head of a hidden layer.
        heads: Heads of a hidden layer.
        layers: Number of layers, at least 1.
        dropout: Probability that a unit, or an attention weight, is dropped while training; the native engine rounds
            it to 16 binary digits.
        dropout_on: Where: any of `input`, `attention`, `hidden`.
        activation: `relu` or `elu`.
    """

    hidden: int = 4
    heads: int = 8
    layers: int = 2
    dropout: float = 0.5
    dropout_on: tuple[DropoutPlace, ...] = ("input", "attention", "hidden")
    activation: Literal["relu", "elu"] = "elu"

    def __post_init__(self) -> None:
        check_at_least_one(hidden=self.hidden, heads=self.heads, layers=self.layers)
        _check_width(self.hidden, self.heads)
        object.__setattr__(self, "dropout_on", tuple(self.dropout_on))
        _check_dropout(self.dropout, self.dropout_on, ("input", "attention", "hidden"))
        _check_choice("activation", self.activation, ("relu", "elu"))


@dataclass(frozen=True)
class MLP(_OneHeaded):
    """Multilayer perceptron: the baseline that sees no edges. Glorot weights, zero biases.

    Attributes:
        hidden: Units of a hidden layer.
        layers: Number of layers, at least 1.
        dropout: Probability that a unit is dropped while training; the native engine rounds it to 16 binary digits.
        dropout_on: Where: `input`, `hidden`, or both.
        activation: `relu` or `elu`.
    """


BuiltInModel = GCN | GAT | MLP


@dataclass(frozen=True)
class Training:
    """How a model is trained: full-batch, on the subgraph that its sample induces and nothing else.

    Attributes:
        epochs: Steps of the optimiser.
        learning_rate: Positive.
        weight_decay: L2 penalty on all parameters, added to the gradient; at least 0.
        optimizer: `adam` (β = 0.9, 0.999; ε = 1e-8) or `sgd`.
    """

    epochs: int = 100
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    optimizer: Literal["adam", "sgd"] = "adam"

    def __post_init__(self) -> None:
        check_at_least_one(epochs=self.epochs)
        if not 0 < self.learning_rate < float("inf"):
            raise InputError(f"learning_rate must be positive, got learning_rate={self.learning_rate}")
        if not 0 <= self.weight_decay < float("inf"):
            raise InputError(f"weight_decay must be at least 0, got weight_decay={self.weight_decay}")
        _check_choice("optimizer", self.optimizer, ("adam", "sgd"))
