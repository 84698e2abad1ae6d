"""How another process makes the trainer of PyTorch models that this one has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from bmpaudit.shadow.engines.torch_trainer import TorchTrainer
from bmpaudit.shadow.plan import ShadowPlan

GRAPH_FILE = "graph.pt"


@dataclass(frozen=True, eq=False)
class TorchRecipe:
    """See `Recipe`.

    Attributes:
        plan: What to train.
        num_classes: Number of classes.
        settings: See `torch_settings`.
    """

    plan: ShadowPlan
    num_classes: int
    settings: tuple[Any, ...]

    def save(self, trainer: TorchTrainer, folder: Path) -> None:
        """Writes the graph to a file that all processes map into their memory."""
        tensors = {"x": trainer.data.x, "edge_index": trainer.data.edge_index, "y": trainer.data.y}
        torch.save({**tensors, "edge_indices": trainer.edge_indices}, folder / GRAPH_FILE)

    def load(self, folder: Path) -> TorchTrainer:
        """Gives PyTorch the settings of the first process, one thread, and the graph."""
        dtype, precision, is_deterministic, warn_only = self.settings
        torch.set_num_threads(1)
        torch.set_default_dtype(dtype)
        torch.set_float32_matmul_precision(precision)
        torch.use_deterministic_algorithms(is_deterministic, warn_only=warn_only)
        tensors = torch.load(folder / GRAPH_FILE, mmap=True, weights_only=True)
        edge_indices = tensors.pop("edge_indices")
        return TorchTrainer(self.plan, Data(**tensors), edge_indices, tensors["y"].numpy(), self.num_classes)


def torch_settings() -> tuple[Any, ...]:
    """PyTorch's settings for a whole process that change what a model computes."""
    return (
        torch.get_default_dtype(),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
