"""Shadow models in PyTorch Geometric, trained in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import ClassVar

import numpy as np
import torch

from bmpaudit.graph import Graph
from bmpaudit.models import NativeModel
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.shadow.engines.processes import OneModel, ProcessEngine
from bmpaudit.shadow.engines.torch_trainer import TorchTrainer
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import repeat_index


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

    def _preparation(self) -> Callable[[], None]:
        return partial(
            _apply,
            torch.get_default_dtype(),
            torch.get_float32_matmul_precision(),
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )

    def _one_thread(self) -> AbstractContextManager[object]:
        return one_torch_thread()

    def _model(self, batch: ShadowBatch, row: int) -> OneModel:
        initial = None
        if self._kernel is not None:
            streams = [repeat_index(int(batch.indices[row]), repeat) for repeat in range(self.plan.num_repeats)]
            initial = np.stack([self._kernel.initial_parameters(self.plan.seed, stream) for stream in streams])
        return OneModel(batch.part(slice(row, row + 1)), initial)


def _apply(dtype: torch.dtype, precision: str, is_deterministic: bool, warn_only: bool) -> None:
    """Gives PyTorch another process's settings that change what a model computes, and one thread."""
    torch.set_num_threads(1)
    torch.set_default_dtype(dtype)
    torch.set_float32_matmul_precision(precision)
    torch.use_deterministic_algorithms(is_deterministic, warn_only=warn_only)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Within the block PyTorch uses one thread: models this small gain nothing from more, and sums depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
