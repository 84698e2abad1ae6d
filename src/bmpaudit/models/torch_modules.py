"""Built-in models as PyTorch modules. Importing this imports torch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch has it
from torch import nn
from torch_geometric.nn import APPNP as Propagation  # noqa: N811 - not the whole model
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv

from bmpaudit.models.gnn import APPNP, GAT, GCN, GIN, NORM_NAMES, SAGE, SGC, NativeModel
from bmpaudit.models.private import DPModel, PrivateSGC
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats, Floats32

NORMS: dict[str, Any] = {"none": nn.Identity, "layer": nn.LayerNorm, "batch": nn.BatchNorm1d}


def new_layer(model: NativeModel, inputs: int, units: int, heads: int) -> tuple[nn.Module, tuple[str, ...]]:
    """One layer of a model, and the names of its parameters in the order in which C++ lists them."""
    if isinstance(model, GCN):
        return GCNConv(inputs, units), ("lin.weight", "bias")
    if isinstance(model, GAT):
        dropout = model.dropout if "attention" in model.dropout_on else 0.0
        return GATConv(inputs, units, heads=heads, dropout=dropout), ("lin.weight", "att_src", "att_dst", "bias")
    if isinstance(model, SAGE):
        root = ("lin_r.weight",) if model.root_weight else ()
        layer = SAGEConv(inputs, units, aggr=model.aggregation, root_weight=model.root_weight)
        return layer, ("lin_l.weight", *root, "lin_l.bias")
    if isinstance(model, GIN):
        norm = NORMS[model.norm_within](model.hidden)
        activation = nn.ReLU() if model.activation == "relu" else nn.ELU()
        perceptron = nn.Sequential(nn.Linear(inputs, model.hidden), norm, activation, nn.Linear(model.hidden, units))
        norm_names = [f"nn.1.{name}" for name in NORM_NAMES[model.norm_within]]
        return GINConv(perceptron), ("nn.0.weight", "nn.0.bias", *norm_names, "nn.3.weight", "nn.3.bias")
    if isinstance(model, SGC):
        return SGConv(inputs, units, K=model.hops), ("lin.weight", "lin.bias")
    return nn.Linear(inputs, units), ("weight", "bias")  # MLP, and APPNP before it propagates


class LayeredModule(nn.Module):
    """The layers of a `NativeModel` with activation and dropout between them."""

    def __init__(self, model: NativeModel, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.model = model
        self.layers, width = nn.ModuleList(), num_features
        for number in range(model.layers):
            units, heads = model.layer_width(number, num_classes)
            layer, self.parameter_names = new_layer(model, width, units, heads)
            self.layers.append(layer)
            width = units * heads
        hidden = model.hidden * model.hidden_heads
        self.norms = nn.ModuleList(NORMS[model.norm_between](hidden) for _ in range(model.layers - 1))
        self.propagation = Propagation(model.hops, model.alpha) if isinstance(model, APPNP) else None

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
            x = layer(x) if isinstance(layer, nn.Linear) else layer(x, edge_index)
        return x if self.propagation is None else self.propagation(x, edge_index)

    def ordered_tensors(self) -> list[torch.Tensor]:
        """All parameters, and the running statistics of normalisations, in the order in which C++ lists them."""
        tensors = []
        for layer, norm in zip_longest(self.layers, self.norms):
            tensors += named_tensors(layer, self.parameter_names)
            tensors += [] if norm is None else named_tensors(norm, NORM_NAMES[self.model.norm_between])
        return tensors

    @property
    def last_layer(self) -> nn.Module:
        """What takes the activations of the last hidden layer: of a perceptron within a layer, its own last one."""
        layer: Any = self.layers[-1]
        return layer.nn[-1] if isinstance(self.model, GIN) else layer

    def last_layer_parameters(self) -> list[torch.Tensor]:
        """The parameters that a noisy release changes."""
        return named_tensors(self.layers[-1], self.parameter_names[-2 if isinstance(self.model, GIN) else 0 :])

    @torch.no_grad()
    def load_flat(self, flat: Floats32) -> None:
        """Sets all parameters from a flat array as C++ gives it."""
        for parameter, values in with_parts(self.ordered_tensors(), flat):
            parameter.copy_(values)


def with_parts(tensors: Sequence[torch.Tensor], flat: Floats32) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Each of some tensors with its part of a flat array, in its shape and on its device."""
    parts = torch.from_numpy(flat.copy()).split([tensor.numel() for tensor in tensors])
    return [(tensor, part.view_as(tensor).to(tensor.device)) for tensor, part in zip(tensors, parts, strict=True)]


def named_tensors(module: nn.Module, names: tuple[str, ...]) -> list[torch.Tensor]:
    """Parameters and buffers of a module by name."""
    named = module.state_dict(keep_vars=True)
    return [named[name] for name in names]


_PROJECTION_SEED = 20_250_102  # the projection is public, and the same for everybody


class PrivateModule(nn.Module):
    """A linear layer without bias on averaged features."""

    projection: torch.Tensor | None

    def __init__(self, model: PrivateSGC, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("projection", public_projection(num_features, model.dimensions))
        self.linear = nn.Linear(min(model.dimensions, num_features), num_classes, bias=False)
        nn.init.zeros_(self.linear.weight)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, shape (num_nodes, num_classes)."""
        return self.linear(self.features(x, edge_index).to(self.linear.weight.dtype))

    def features(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """H, shape (num_nodes, width), in double precision: rows of length at most 1."""
        rows = unit_rows(x, self.projection)
        source, target = edge_index[:, edge_index[0] != edge_index[1]]
        degrees = torch.bincount(source, minlength=len(rows))
        # 1 + d on the training graph; on a graph with larger degrees, averages stay averages.
        share = 1.0 / (1 + torch.maximum(degrees[source], degrees[target]).clamp(min=self.model.max_degree)).double()
        for _ in range(self.model.hops):
            flow = share[:, None] * (rows[source] - rows[target])
            rows = rows.index_add(0, target, flow)
        return rows

    @torch.no_grad()
    def fit(self, x: torch.Tensor, edge_index: torch.Tensor, labels: torch.Tensor, seed: int) -> None:
        """Sets the weights: the optimum, with noise."""
        check_degrees(edge_index, self.model.max_degree, self.model)
        features = self.features(x, edge_index)
        weights = optimum(features, labels, self.linear.out_features, self.model, self.model.gradient_tolerance)
        noise = gamma_noise(weights.numel(), self.model.noise_scale, np.random.default_rng(seed))
        self.linear.weight.copy_(weights + torch.from_numpy(noise).view_as(weights).to(weights.device))


def check_degrees(edge_index: torch.Tensor, max_degree: int, model: DPModel | PrivateSGC) -> None:
    """Raises `InputError` if a node of a training graph has more neighbours than a proof is for."""
    largest = int(torch.bincount(edge_index[0]).max()) if edge_index.shape[1] else 0
    if largest > max_degree:
        remedy = f"take samples of {type(model).__name__}.training_graph"
        raise InputError(f"nodes must have at most max_degree={max_degree} neighbours, got {largest}: {remedy}")


def public_projection(num_features: int, dimensions: int) -> torch.Tensor | None:
    """A random matrix that takes features to fewer dimensions, shape (num_features, dimensions); None for not fewer."""
    if dimensions >= num_features:
        return None
    return torch.from_numpy(np.random.default_rng(_PROJECTION_SEED).standard_normal((num_features, dimensions)))


def unit_rows(x: torch.Tensor, projection: torch.Tensor | None) -> torch.Tensor:
    """Projected features in double precision, each row scaled to length 1."""
    return F.normalize(x.double() if projection is None else x.double() @ projection, dim=1)


def optimum(
    features: torch.Tensor, labels: torch.Tensor, num_classes: int, model: PrivateSGC, tolerance: float
) -> torch.Tensor:
    """The weights that minimise the penalised loss, shape (num_classes, width).

    Nesterov's accelerated gradient method with the projection on ‖Θ‖ ≤ ρ. One step T(Θ) from Θ shrinks the distance to
    the optimum by 1 - λ/L, so ‖Θ - Θ*‖ ≤ L‖Θ - T(Θ)‖/λ; it ends when L‖Θ - T(Θ)‖ is at most `tolerance`.
    """
    penalty = model.regularization
    smoothness = penalty + 0.5 * float((features**2).sum())  # the Hessian of softmax is at most 1/2
    momentum = 1 - 2 / (1 + math.sqrt(smoothness / penalty))
    targets = F.one_hot(labels, num_classes).to(features.dtype)
    point = last = features.new_zeros(num_classes, features.shape[1])
    while True:
        residual = torch.softmax(features @ point.T, dim=1) - targets
        weights = point - (residual.T @ features + penalty * point) / smoothness
        weights = weights * min(1.0, model.max_norm / max(float(weights.norm()), 1e-300))
        if smoothness * float((point - weights).norm()) <= tolerance:
            return weights
        point, last = weights + momentum * (weights - last), weights


def gamma_noise(size: int, scale: float, rng: np.random.Generator) -> Floats:
    """A vector with density ∝ exp(-‖b‖/scale): its norm is Gamma(size, scale), its direction uniform."""
    direction = rng.standard_normal(size)
    return rng.gamma(size, scale) * direction / np.linalg.norm(direction)


class DPModule(nn.Module):
    """A perceptron on rows, each made of a node's features, and its neighbours' if the model uses edges."""

    projection: torch.Tensor | None

    def __init__(self, model: DPModel, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("projection", public_projection(num_features, model.dimensions))
        width = min(model.dimensions, num_features)
        self.head = nn.Sequential(nn.Linear(width, model.hidden), nn.ReLU(), nn.Linear(model.hidden, num_classes))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, shape (num_nodes, num_classes)."""
        return self.head(self.rows(x, edge_index))

    def rows(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """What the perceptron is given, shape (num_nodes, width); row i depends on node i and its neighbours alone."""
        rows = unit_rows(x, self.projection)
        if self.model.rows_changed > 0:
            source, target = edge_index[:, edge_index[0] != edge_index[1]]
            sums = rows.index_add(0, target, rows[source])
            rows = F.normalize(sums, dim=1)  # of the mean, as of the sum
        return rows.float()

    def fit(self, x: torch.Tensor, edge_index: torch.Tensor, labels: torch.Tensor, seed: int) -> None:
        """Trains the weights by DP-SGD; batches and noise come from a generator of their own."""
        if self.model.rows_changed:
            check_degrees(edge_index, self.model.rows_changed, self.model)
        # Not the seed itself: PyTorch's generator, from which the initial weights come, starts with it.
        draws = torch.Generator(x.device).manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]))
        rows = self.rows(x, edge_index)
        try:
            from opacus import GradSampleModule
        except ImportError as missing:
            raise InputError(f"DP-SGD needs Opacus: pip install 'bmpaudit[private]' ({missing})") from None
        module = GradSampleModule(self.head, loss_reduction="sum")
        adam = torch.optim.Adam(module.parameters(), lr=self.model.step_size)
        optimizer = private_optimizer(adam, self.model, draws)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Full backward hook is firing")  # rows are no parameters
            for _ in range(self.model.steps):
                is_drawn = torch.rand(len(rows), generator=draws, device=rows.device) < self.model.sampling_rate
                optimizer.zero_grad()
                F.cross_entropy(module(rows[is_drawn]), labels[is_drawn], reduction="sum").backward()
                optimizer.step()
        module.to_standard_module()


def private_optimizer(optimizer: torch.optim.Optimizer, model: DPModel, draws: torch.Generator) -> Any:
    """An optimiser that clips, and adds noise to the sum of the rows' gradients, whatever their number."""
    from opacus.optimizers import DPOptimizer

    return DPOptimizer(
        optimizer,
        noise_multiplier=model.noise,
        max_grad_norm=model.clip,
        expected_batch_size=None,
        loss_reduction="sum",
        generator=draws,
    )
