"""`DPMLP` and `DPGCN` in PyTorch, with Opacus. Importing this imports torch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own name for it
from torch import nn

from bmpaudit.errors import InputError
from bmpaudit.shadow.models.dp_model import DPModel
from bmpaudit.shadow.models.private_module import public_projection, unit_rows

try:
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer
except ImportError as missing:
    raise InputError(f"DP-SGD needs Opacus: pip install 'bmpaudit[private]' ({missing})") from None


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
        logits: torch.Tensor = self.head(self.rows(x, edge_index))
        return logits

    def rows(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """What the perceptron is given, shape (num_nodes, width); row i depends on node i and its neighbours alone."""
        rows = unit_rows(x, self.projection)
        if self.model.rows_changed > 0:
            source, target = edge_index[:, edge_index[0] != edge_index[1]]
            sums = rows.index_add(0, target, rows[source])
            rows = F.normalize(sums, dim=1)  # of the mean, as of the sum
        return rows.float()

    def fit(self, x: torch.Tensor, edge_index: torch.Tensor, labels: torch.Tensor, seed: int) -> None:
        """Trains the weights."""
        most = self.model.rows_changed
        largest = int(torch.bincount(edge_index[0]).max()) if most and edge_index.shape[1] else 0
        if largest > most:
            raise InputError(
                f"a node of the training graph must have at most max_degree={most} neighbours, got {largest}: take "
                "samples of DPGCN.training_graph"
            )
        # Not the seed itself: PyTorch's generator, from which the initial weights come, starts with it.
        draws = torch.Generator(x.device).manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]))
        train_privately(self.head, self.rows(x, edge_index), labels, self.model, draws)


def train_privately(
    head: nn.Module, rows: torch.Tensor, labels: torch.Tensor, model: DPModel, draws: torch.Generator
) -> None:
    """DP-SGD on rows; batches and noise come from `draws`."""
    module = GradSampleModule(head, loss_reduction="sum")
    optimizer = private_optimizer(torch.optim.Adam(module.parameters(), lr=model.step_size), model, draws)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Full backward hook is firing")  # rows are no parameters
        for _ in range(model.steps):
            is_drawn = torch.rand(len(rows), generator=draws, device=rows.device) < model.sampling_rate
            optimizer.zero_grad()
            F.cross_entropy(module(rows[is_drawn]), labels[is_drawn], reduction="sum").backward()
            optimizer.step()
    module.to_standard_module()


def private_optimizer(optimizer: torch.optim.Optimizer, model: DPModel, draws: torch.Generator) -> Any:
    """An optimiser that clips, and adds noise to the sum of the rows' gradients, whatever their number."""
    return DPOptimizer(
        optimizer,
        noise_multiplier=model.noise,
        max_grad_norm=model.clip,
        expected_batch_size=None,
        loss_reduction="sum",
        generator=draws,
    )
