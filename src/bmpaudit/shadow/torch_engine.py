"""Shadow models in PyTorch Geometric: the built-in ones for comparison, and any of the user's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own name for it
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv

from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.shadow.batch import ModelState, Progress, ShadowBatch
from bmpaudit.shadow.margin import label_margin
from bmpaudit.shadow.models import GAT, GCN, BuiltInModel, Training
from bmpaudit.shadow.native_engine import make_kernel
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.torch_model import TorchModel
from bmpaudit.streams import Purpose, stream


class TorchEngine:
    """Trains one model after another with PyTorch, on a GPU where there is one.

    Samples, noise and the initial weights of built-in models are the native engine's; dropout, and whatever else a
    user's code draws, comes from PyTorch's generator, seeded for each model and put back afterwards.
    """

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        self.plan = plan
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.data = graph.to_pyg().to(self.device)
        self.num_classes = graph.num_classes
        self.labels = graph.labels
        self.kernel = make_kernel(graph, plan.model, plan.training) if isinstance(plan.model, BuiltInModel) else None

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """See `Engine.fill`; `num_threads` is what PyTorch may use within one model."""
        threads_before = torch.get_num_threads()
        torch.set_num_threads(num_threads)
        devices = [self.device] if self.device.type == "cuda" else []
        try:
            for row in range(len(batch.indices)):
                with torch.random.fork_rng(devices=devices):
                    self._fill_row(batch, row)
                progress(row + 1)
        finally:
            torch.set_num_threads(threads_before)

    def _fill_row(self, batch: ShadowBatch, row: int) -> None:
        index = int(batch.indices[row])
        nodes = torch.from_numpy(np.flatnonzero(batch.memberships[row])).to(self.device)
        if len(nodes) == 0:
            batch.state[row] = ModelState.FAILED
            return
        seed = int(stream(self.plan.seed, index, Purpose.DROPOUT).integers(2**63))
        torch.manual_seed(seed)
        module = self._new_module(index)
        sample = self.data.subgraph(nodes)
        if isinstance(self.plan.model, TorchModel) and self.plan.model.train is not None:
            self.plan.model.train(module, sample, seed)
        else:
            train_full_batch(module, sample, self.plan.training)
        module.eval()
        if not all(bool(torch.isfinite(parameter).all()) for parameter in module.parameters()):
            batch.state[row] = ModelState.FAILED
            return
        self._score(module, batch, row, index)
        if np.isfinite(batch.statistics[:, row]).all():
            batch.state[row] = ModelState.TRAINED
            return
        batch.state[row] = ModelState.FAILED
        for values in (batch.statistics, batch.logits):
            if values is not None:
                values[:, row] = np.nan
        batch.train_accuracy[row] = batch.held_out_accuracy[row] = np.nan

    def _new_module(self, index: int) -> nn.Module:
        model = self.plan.model
        if isinstance(model, TorchModel):
            made: nn.Module = model.factory(self.data.num_features, self.num_classes)
            return made.to(self.device)
        module = BuiltInModule(model, self.data.num_features, self.num_classes)
        assert self.kernel is not None  # noqa: S101 - made in __init__ for every built-in model
        module.load_flat(self.kernel.initial_parameters(self.plan.seed, index))
        return module.to(self.device)

    @torch.no_grad()
    def _score(self, module: nn.Module, batch: ShadowBatch, row: int, index: int) -> None:
        no_edges = torch.empty((2, 0), dtype=torch.long, device=self.device)
        edges = {"full": self.data.edge_index, "none": no_edges}
        clean = _logits(module, self.data.x, edges["full"])
        if clean.shape != (len(self.labels), self.num_classes):
            wanted = (len(self.labels), self.num_classes)
            raise InputError(f"the model must give logits of shape {wanted} (nodes, classes), got {clean.shape}")
        right = clean.argmax(axis=1) == self.labels
        member = batch.memberships[row]
        for accuracy, chosen in ((batch.train_accuracy, member), (batch.held_out_accuracy, ~member)):
            accuracy[row] = right[chosen].mean() if chosen.any() else np.nan
        for output in ("clean", "noisy"):  # in this order: noise, once added, stays
            chosen_views = [v for v, view in enumerate(self.plan.views) if view.output == output]
            if output == "noisy" and chosen_views:
                add_noise(last_layer(module), self.plan.noise_std, stream(self.plan.seed, index, Purpose.NOISE))
            for view_number in chosen_views:
                logits = _logits(module, self.data.x, edges[self.plan.views[view_number].edges])
                batch.statistics[view_number, row] = label_margin(logits, self.labels)
                if batch.logits is not None:
                    batch.logits[view_number, row] = logits


class BuiltInModule(nn.Module):
    """A built-in model as a PyTorch module."""

    def __init__(self, model: BuiltInModel, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.model = model
        widths, width = [], num_features
        heads = model.heads if isinstance(model, GAT) else 1
        for layer in range(model.layers):
            is_last = layer + 1 == model.layers
            widths.append((width, num_classes if is_last else model.hidden, 1 if is_last else heads))
            width = model.hidden * heads
        self.layers = nn.ModuleList([self._layer(*shape) for shape in widths])

    def _layer(self, inputs: int, units: int, heads: int) -> nn.Module:
        if isinstance(self.model, GAT):
            dropout = self.model.dropout if "attention" in self.model.dropout_on else 0.0
            return GATConv(inputs, units, heads=heads, dropout=dropout)
        return GCNConv(inputs, units) if isinstance(self.model, GCN) else nn.Linear(inputs, units)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, shape (num_nodes, num_classes)."""
        activation = F.relu if self.model.activation == "relu" else F.elu
        for number, layer in enumerate(self.layers):
            if number > 0:
                x = activation(x)
            if ("hidden" if number > 0 else "input") in self.model.dropout_on:
                x = F.dropout(x, self.model.dropout, self.training)
            x = layer(x) if isinstance(layer, nn.Linear) else layer(x, edge_index)
        return x

    def ordered_parameters(self) -> list[nn.Parameter]:
        """Parameters in the order in which the native engine lists them."""
        return [parameter for layer in self.layers for parameter in layer_parameters(layer)]

    @torch.no_grad()
    def load_flat(self, flat: np.ndarray) -> None:
        """Takes parameters from the native engine's flat list."""
        start = 0
        for parameter in self.ordered_parameters():
            values = torch.from_numpy(flat[start : start + parameter.numel()])
            parameter.copy_(values.view_as(parameter))
            start += parameter.numel()


def layer_parameters(layer: nn.Module) -> list[nn.Parameter]:
    """Parameters of a layer, those of the native engine's layers in its order."""
    all_of_them = list(layer.parameters())
    ordered = all_of_them
    if isinstance(layer, GATConv) and layer.lin is not None:
        ordered = [layer.lin.weight, layer.att_src, layer.att_dst, layer.bias]
    elif isinstance(layer, GCNConv):
        ordered = [layer.lin.weight, layer.bias]
    # A user's layer may have fewer (no bias) or more (a residual).
    return ordered if {id(p) for p in ordered} == {id(p) for p in all_of_them} else all_of_them


def train_full_batch(module: nn.Module, sample: Data, training: Training) -> None:
    """Full-batch training on one graph."""
    optimizers: dict[str, Any] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimizer = optimizers[training.optimizer](
        module.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
    )
    module.train()
    for _ in range(training.epochs):
        optimizer.zero_grad()
        F.cross_entropy(module(sample.x, sample.edge_index), sample.y).backward()
        optimizer.step()


def last_layer(module: nn.Module) -> nn.Module:
    """The layer that noise goes on: the module's own `last_layer` if it has one, else the last part with parameters.

    The last child that has parameters, and of a list or sequence of layers the last of them, and so on.
    """
    own = getattr(module, "last_layer", None)
    if isinstance(own, nn.Module):
        return own
    children = [child for child in module.children() if any(True for _ in child.parameters())]
    if not children:
        return module
    last = children[-1]
    return last_layer(last) if isinstance(last, (nn.ModuleList, nn.Sequential)) else last


@torch.no_grad()
def add_noise(layer: nn.Module, noise_std: float, rng: np.random.Generator) -> None:
    """Adds Gaussian noise to every parameter of a layer, the same as the native engine does."""
    parameters = layer_parameters(layer)
    noise = noise_std * box_muller(rng, sum(parameter.numel() for parameter in parameters))
    start = 0
    for parameter in parameters:
        values = torch.from_numpy(noise[start : start + parameter.numel()].astype(np.float32))
        parameter.add_(values.view_as(parameter).to(parameter.device))
        start += parameter.numel()


def box_muller(rng: np.random.Generator, count: int) -> np.ndarray:
    """Standard normal numbers, made of the stream's uniform ones as in `native/random.hpp`."""
    uniform = rng.random((count + 1) // 2 * 2).reshape(-1, 2)
    radius, angle = np.sqrt(-2.0 * np.log(1.0 - uniform[:, 0])), 2.0 * np.pi * uniform[:, 1]
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).ravel()[:count]


def _logits(module: nn.Module, x: torch.Tensor, edge_index: torch.Tensor) -> np.ndarray:
    logits: np.ndarray = module(x, edge_index).float().cpu().numpy()
    return logits
