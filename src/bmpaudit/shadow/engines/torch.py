"""Shadow models in PyTorch Geometric, trained in several processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch_geometric.data import Data

from bmpaudit.graph import Graph
from bmpaudit.models import NativeModel
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.shadow.engines.processes import ProcessEngine, Task
from bmpaudit.shadow.engines.torch_trainer import TorchTrainer
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import repeat_index

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


# Shadow models in PyTorch Geometric: the built-in ones for comparison, and any of the user's own.


class TorchEngine(ProcessEngine[TorchTrainer]):
    """Trains models with PyTorch: on the CPU in several processes of one thread each, on a GPU one after another.

    Samples, noise and the initial weights of built-in models are the native engine's. Dropout, and whatever else a
    user's code draws, comes from the generators of PyTorch, NumPy and Python, seeded for each model and restored
    afterwards.
    """

    gives: ClassVar[frozenset[str]] = frozenset({"embeddings", "repeats"})  # beyond logits of one model

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not hasattr(plan.model, "torch_module"):
            raise InputError(f"the torch engine cannot train {plan.model}: it has no method torch_module")
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        trainer = TorchTrainer.from_graph(graph, plan, device)
        super().__init__(plan, trainer, trains_in_parallel=device.type == "cpu")
        self._kernel = None
        if isinstance(plan.model, NativeModel) and plan.training is not None:
            self._kernel = make_kernel(graph, plan.model, plan.training)

    @property
    def num_weights(self) -> int:
        """Numbers in the state of a module, which can be kept."""
        return self._trainer.num_weights

    def _recipe(self) -> TorchRecipe:
        return TorchRecipe(self.plan, self._trainer.num_classes, torch_settings())

    def _one_thread(self) -> AbstractContextManager[object]:
        return one_torch_thread()

    def _task(self, batch: ShadowBatch, row: int) -> Task:
        initial = None
        if self._kernel is not None:
            streams = [repeat_index(int(batch.indices[row]), repeat) for repeat in range(self.plan.num_repeats)]
            initial = np.stack([self._kernel.initial_parameters(self.plan.seed, stream) for stream in streams])
        return Task(batch.part(slice(row, row + 1)), initial)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Within the block PyTorch uses one thread: models this small gain nothing from more, and sums depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
