"""`PrivateSGC` in PyTorch: its features, its optimum and its noise. Importing this imports torch."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own name for it
from torch import nn

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.shadow.models.private_sgc import PrivateSGC

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
        logits: torch.Tensor = self.linear(self.features(x, edge_index).to(self.linear.weight.dtype))
        return logits

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
        largest = int(torch.bincount(edge_index[0]).max()) if edge_index.shape[1] else 0
        if largest > self.model.max_degree:
            raise InputError(
                f"a node of the training graph must have at most max_degree={self.model.max_degree} neighbours, "
                f"got {largest}: take samples of PrivateSGC.training_graph"
            )
        features = self.features(x, edge_index)
        weights = optimum(features, labels, self.linear.out_features, self.model, self.model.gradient_tolerance)
        noise = gamma_noise(weights.numel(), self.model.noise_scale, np.random.default_rng(seed))
        self.linear.weight.copy_(weights + torch.from_numpy(noise).view_as(weights).to(weights.device))


def public_projection(num_features: int, dimensions: int) -> torch.Tensor | None:
    """A random matrix that takes features to fewer dimensions, shape (num_features, dimensions); None for not fewer."""
    if dimensions >= num_features:
        return None
    rng = np.random.default_rng(_PROJECTION_SEED)
    return torch.from_numpy(rng.standard_normal((num_features, dimensions)))


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
    noise: Floats = rng.gamma(size, scale) * direction / np.linalg.norm(direction)
    return noise
