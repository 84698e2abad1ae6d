"""Built-in graph neural networks, as layers that C++ and PyTorch both have; and how a model is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from bmpaudit.registry import title
from bmpaudit.util.errors import InputError, check_at_least_one

Shape = tuple[int, ...]
Norm = Literal["none", "layer", "batch"]
Initialisation = Literal["glorot", "fan_in"]
DropoutPlace = Literal["input", "attention", "hidden"]
Activation = Literal["relu", "elu"]
Aggregation = Literal["mean", "max"]
Schedule = Literal["constant", "cosine", "step"]

MAX_UNITS = 65_536
MAX_HOPS = 1_024
MIN_RESIDUAL_LAYERS = 3
ALL_NEIGHBORS = -1

NORM_NAMES: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "layer": ("weight", "bias"),
    "batch": ("weight", "bias", "running_mean", "running_var"),
}
"""By normalisation, what PyTorch calls its parameters and statistics, in the order of C++."""


@dataclass(frozen=True)
class LayerSpec:
    """The arguments of `_native.LayerSettings`."""

    kind: str  # name of the layer, as in `native/gnn/layer_kinds.cpp`
    channels: int  # units of a head
    heads: int = 1
    # Glorot and Bengio 2010, with biases of 0, or uniform within ±1/√inputs, as `torch.nn.Linear` has it.
    initialisation: Initialisation = "glorot"
    drops_input: bool = False  # whether dropout goes on its input
    drops_attention: bool = False
    aggregation: str = "mean"  # what SAGE takes of a node's neighbours: mean or max
    root_weight: bool = False  # whether a SAGE layer has a weight of its own for a node's own input
    hops: int = 1  # of SGC and APPNP
    alpha: float = 1.0  # what each step of APPNP takes of the first predictions
    norm: Norm = "none"  # normalisation of its output
    residual: int = 0  # added to its activated output: 1 for its own input, 2 for that of the layer before, 0 nothing

    @property
    def units(self) -> int:
        """Units of all heads."""
        return self.channels * self.heads

    def parameter_shapes(self, inputs: int) -> list[Mapping[str, Shape]]:
        """Shapes of its parameters, and of those of its normalisation, by short names, in the order of C++."""
        shapes: dict[str, Shape] = {"weight": (self.units, inputs)}
        if self.root_weight:
            shapes["root_weight"] = (self.units, inputs)
        if self.kind == "gat":
            shapes |= dict.fromkeys(("att_src", "att_dst"), (1, self.heads, self.channels))
        parts: list[Mapping[str, Shape]] = [shapes | {"bias": (self.units,)}]
        if self.norm != "none":
            parts.append(dict.fromkeys(NORM_NAMES[self.norm], (self.units,)))
        return parts


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raises `InputError` unless a setting has one of the values allowed."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}, got {name}={value!r}")


@dataclass(frozen=True)
class NativeModel:
    """A stack of layers of one kind, which both engines can train.

    A subclass is a frozen dataclass that says what one layer is in C++; `torch_modules.new_layer` has it in PyTorch.

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

    dropout_places: ClassVar[tuple[DropoutPlace, ...]] = ("input", "hidden")  # where dropout can go
    layer_kind: ClassVar[str]
    initialisation: ClassVar[Initialisation] = "glorot"
    layer_settings: ClassVar[tuple[str, ...]] = ()  # fields that are also those of each `LayerSpec`
    sees_edges: ClassVar[bool] = True  # whether what it computes depends on the edges

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
        hops = getattr(self, "hops", 1)
        check_at_least_one(hops=hops)
        if hops > MAX_HOPS:
            raise InputError(f"hops must be at most {MAX_HOPS}, got hops={hops}")
        if self.residual and self.layers < MIN_RESIDUAL_LAYERS:
            least = f"at least {MIN_RESIDUAL_LAYERS}, two of them hidden"
            raise InputError(f"residual needs layers of {least}, got layers={self.layers}")

    @property
    def hidden_heads(self) -> int:
        """Attention heads of a hidden layer; 1 for layers without heads."""
        return int(getattr(self, "heads", 1))

    def native_layers(self, num_classes: int) -> list[LayerSpec]:
        """The model as C++ has it, layer by layer."""
        last = self.layers - 1
        return [
            LayerSpec(
                self.layer_kind,
                *self.layer_width(number, num_classes),
                self.initialisation,
                drops_input=("hidden" if number > 0 else "input") in self.dropout_on,
                drops_attention="attention" in self.dropout_on,
                norm="none" if number == last else self.norm_between,
                residual=int(bool(self.residual) and 0 < number < last),
                **{name: getattr(self, name) for name in self.layer_settings},
            )
            for number in range(self.layers)
        ]

    @property
    def norm_between(self) -> Norm:
        """Normalisation after each layer but the last."""
        return self.norm or "none"

    def layer_width(self, number: int, num_classes: int) -> tuple[int, int]:
        """Channels and heads of a layer."""
        return (num_classes, 1) if number + 1 == self.layers else (self.hidden, self.hidden_heads)

    def torch_module(self, num_features: int, num_classes: int) -> Any:
        """The model as a PyTorch module; imports torch."""
        from bmpaudit.models.torch_modules import LayeredModule

        return LayeredModule(self, num_features, num_classes)


@dataclass(frozen=True)
class GCN(NativeModel):
    """Graph convolutional network (Kipf and Welling 2017), as PyTorch Geometric's `GCNConv` layers.

    x_i ← σ(Σ_{j ∈ N(i) ∪ {i}} W x_j / √(d̃_i d̃_j) + b), with d̃ the degree plus one; no activation after the last
    layer. Glorot weights, zero biases. The defaults are the paper's settings as far as they are known.
    """

    layer_kind = "gcn"


@dataclass(frozen=True)
class GAT(NativeModel):
    """Graph attention network (Veličković et al. 2018), as PyTorch Geometric's `GATConv` layers.

    Attention α_ij = softmax_j LeakyReLU(a_srcᵀ W x_j + a_dstᵀ W x_i) with slope 0.2 over N(i) ∪ {i}; hidden layers
    concatenate their heads, the last layer has one. Glorot weights and attention vectors, zero biases. The defaults
    are the paper's settings as far as they are known.

    Attributes:
        hidden: Units of each attention head of a hidden layer.
        dropout_on: Where dropout goes: input, attention, hidden.
        heads: Attention heads of a hidden layer.
    """

    hidden: int = 4
    dropout_on: tuple[DropoutPlace, ...] = ("input", "attention", "hidden")
    activation: Activation = "elu"
    heads: int = 8

    dropout_places = ("input", "attention", "hidden")
    layer_kind = "gat"


@dataclass(frozen=True)
class SAGE(NativeModel):
    """GraphSAGE (Hamilton, Ying and Leskovec 2017), as PyTorch Geometric's `SAGEConv` layers.

    x_i ← σ(W_l · mean_{j ∈ N(i)} x_j + W_r x_i + b), or with the largest x_j instead of their mean, unit by unit; a
    node with no neighbours has 0 there. No activation after the last layer. Weights and biases start uniform within
    ±1/√inputs.

    Attributes:
        aggregation: What a layer takes of a node's neighbours: mean or max.
        root_weight: Whether a layer has the matrix W_r, for the node itself.
    """

    aggregation: Aggregation = "mean"
    root_weight: bool = True

    layer_kind = "sage"
    initialisation = "fan_in"
    layer_settings = ("aggregation", "root_weight")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("aggregation", self.aggregation, ("mean", "max"))
        if self.aggregation == "max" and "input" in self.dropout_on:
            raise InputError("dropout_on must be hidden for aggregation='max', got dropout_on='input'")


@dataclass(frozen=True)
class GIN(NativeModel):
    """Graph isomorphism network (Xu et al. 2019), as PyTorch Geometric's `GINConv` with ε = 0.

    x_i ← σ(MLP(x_i + Σ_{j ∈ N(i)} x_j)), where the MLP is a linear map to `hidden` units, normalisation, activation
    and a second linear map; no activation after the last layer. `norm` is the one within the MLP. Weights and biases
    start uniform within ±1/√inputs. Noise on the last layer goes on the last linear map.
    """

    layer_kind = "mlp"
    initialisation = "fan_in"

    @property
    def norm_within(self) -> Norm:
        """Normalisation within the MLP of each layer."""
        return self.norm or "batch"

    @property
    def norm_between(self) -> Norm:
        """See `NativeModel.norm_between`."""
        return "none"

    def native_layers(self, num_classes: int) -> list[LayerSpec]:
        """See `NativeModel.native_layers`."""
        layers = []
        for second in super().native_layers(num_classes):
            first = replace(second, kind="gin", channels=self.hidden, norm=self.norm_within, residual=0)
            layers += [first, replace(second, drops_input=False, residual=2 * second.residual)]
        return layers


@dataclass(frozen=True)
class SGC(NativeModel):
    """Simplified graph convolution (Wu et al. 2019), as PyTorch Geometric's `SGConv`.

    One layer, S^K X W + b: the K-th power of a GCN's matrix S, and no activation in between. With more layers each is
    of this kind. Weights and biases start uniform within ±1/√inputs.

    Attributes:
        hops: Steps along the edges in each layer.
    """

    layers: int = 1
    hops: int = 2

    layer_kind = "sgc"
    initialisation = "fan_in"
    layer_settings = ("hops",)


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

    layer_kind = "mlp"
    initialisation = "fan_in"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha <= 1:
            raise InputError(f"alpha must be in (0, 1], got alpha={self.alpha}")

    def native_layers(self, num_classes: int) -> list[LayerSpec]:
        """See `NativeModel.native_layers`."""
        *hidden, last = super().native_layers(num_classes)
        return [*hidden, replace(last, kind="appnp", hops=self.hops, alpha=self.alpha)]


@dataclass(frozen=True)
class MLP(NativeModel):
    """Multilayer perceptron: the baseline that sees no edges. Glorot weights, zero biases."""

    sees_edges = False
    layer_kind = "mlp"


@dataclass(frozen=True)
class Training:
    """Training on the subgraph induced by a sample, and on nothing else: on all of it at once, or by mini-batches.

    Attributes:
        epochs: Number of passes over the sample; without mini-batches, of optimiser steps.
        learning_rate: Learning rate.
        weight_decay: L2 penalty on all parameters, added to the gradient.
        optimizer: Optimiser: adam (β = 0.9, 0.999; ε = 1e-8) or sgd.
        schedule: How the learning rate goes on, constant by default: cosine (down to 0 by half a cosine) or step (a
            tenth after half of the epochs, a hundredth after three quarters).
        label_smoothing: Share of each label that all classes get in equal parts, 0 by default.
        drop_edge: Share of the sample's edges that each epoch leaves out, drawn anew, 0 by default (DropEdge).
        validation_share: Share of the sample's nodes kept out of the loss, none by default; the weights with the lowest
            loss on them are taken in the end (early stopping).
        patience: Number of epochs without a lower validation loss after which training stops; by default all epochs
            are trained. Needs `validation_share`.
        batch_size: Number of nodes in a mini-batch, by default all; order drawn anew each epoch.
        neighbors: Number of neighbours sampled per node, hop by hop, as by PyTorch Geometric's `NeighborLoader`; -1 for
            all. Needs `batch_size`.
    """

    epochs: int = 100
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    optimizer: Literal["adam", "sgd"] = "adam"
    schedule: Schedule | None = None
    label_smoothing: float | None = None
    drop_edge: float | None = None
    validation_share: float | None = None
    patience: int | None = None
    batch_size: int | None = None
    neighbors: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_at_least_one(epochs=self.epochs)
        if not 0 < self.learning_rate < float("inf"):
            raise InputError(f"learning_rate must be positive, got learning_rate={self.learning_rate}")
        if not 0 <= self.weight_decay < float("inf"):
            raise InputError(f"weight_decay must be at least 0, got weight_decay={self.weight_decay}")
        check_choice("optimizer", self.optimizer, ("adam", "sgd"))
        if self.schedule is not None:
            check_choice("schedule", self.schedule, get_args(Schedule))
        for name, share in {"label_smoothing": self.label_smoothing, "drop_edge": self.drop_edge}.items():
            if share is not None and not 0 <= share < 1:
                raise InputError(f"{name} must be in [0, 1), got {name}={share}")
        if self.validation_share is not None and not 0 < self.validation_share < 1:
            raise InputError(f"validation_share must be in (0, 1), got validation_share={self.validation_share}")
        if self.patience is not None:
            check_at_least_one(patience=self.patience)
            if self.validation_share is None:
                raise InputError(f"patience needs validation_share, got patience={self.patience} alone")
        if self.batch_size is not None:
            check_at_least_one(batch_size=self.batch_size)
        if self.neighbors is None:
            return
        neighbors = tuple(self.neighbors)
        object.__setattr__(self, "neighbors", neighbors)
        if self.batch_size is None:
            raise InputError(f"neighbors needs batch_size, got neighbors={' '.join(map(str, neighbors))} alone")
        if not 0 < len(neighbors) <= MAX_HOPS:
            raise InputError(f"neighbors must be given for 1 to {MAX_HOPS} hops, got {len(neighbors)}")
        for most in neighbors:
            if most != ALL_NEIGHBORS:
                check_at_least_one(neighbors=most)

    def check_model(self, model: Any) -> None:
        """Raises `InputError` if a model cannot be trained this way."""
        if getattr(model, "sees_edges", True):
            if self.batch_size is not None and self.neighbors is None:
                what = "how many neighbours each hop takes of a node"
                raise InputError(f"{title(model)} needs neighbors with batch_size={self.batch_size}: {what}")
            return
        for name in ("drop_edge", "neighbors"):
            if getattr(self, name):
                raise InputError(f"{title(model)} sees no edges, and takes no {name}, got {name}={getattr(self, name)}")
