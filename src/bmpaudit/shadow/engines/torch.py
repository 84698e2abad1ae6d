"""Shadow models in PyTorch Geometric: the built-in ones for comparison, and any of the user's own."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own name for it
from torch import nn
from torch_geometric.data import Data

from bmpaudit.arrays import Floats32
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.engines.last_layer import noisy_last_layer
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.shadow.engines.scoring import Question, questions_of, score_model, shown_graphs
from bmpaudit.shadow.models import NativeModel, Training
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.streams import Purpose, stream


class TorchEngine:
    """Trains one model after another with PyTorch, on a GPU where there is one.

    Samples, noise and the initial weights of built-in models are the native engine's; dropout, and whatever else a
    user's code draws, comes from PyTorch's generator, seeded for each model and restored afterwards.
    """

    trains_in_parallel: ClassVar[bool] = False

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not hasattr(plan.model, "torch_module"):
            raise InputError(f"the torch engine cannot train {plan.model}: it has no method torch_module")
        self.plan = plan
        self.graph = graph
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.data = graph.to_pyg().to(self.device)
        self.edge_indices = [edge_index_of(shown).to(self.device) for shown in shown_graphs(plan, graph)]
        self.kernel = None
        if isinstance(plan.model, NativeModel) and plan.training is not None:
            self.kernel = make_kernel(graph, plan.model, plan.training)

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """See `interfaces.Engine`; `num_threads` is what PyTorch may use within one model."""
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
        if self.plan.training is None:
            self.plan.model.train(module, sample, seed)
        else:
            train_full_batch(module, sample, self.plan.training)
        module.eval()
        if not all(bool(torch.isfinite(parameter).all()) for parameter in module.parameters()):
            batch.state[row] = ModelState.FAILED
            return
        self._keep_accuracy(module, batch, row)
        score_model(self.plan, self.graph, batch, row, self._answers(module, index), {})

    def _new_module(self, index: int) -> nn.Module:
        module: Any = self.plan.model.torch_module(self.graph.num_features, self.graph.num_classes)
        if self.kernel is not None:
            module.load_flat(self.kernel.initial_parameters(self.plan.seed, index))
        moved: nn.Module = module.to(self.device)
        return moved

    @torch.no_grad()
    def _keep_accuracy(self, module: nn.Module, batch: ShadowBatch, row: int) -> None:
        logits = self._logits(module, self.data.edge_index)
        wanted = (self.graph.num_nodes, self.graph.num_classes)
        if logits.shape != wanted:
            raise InputError(f"the model must give logits of shape {wanted} (nodes, classes), got {logits.shape}")
        right = logits.argmax(axis=1) == self.graph.labels
        member = batch.memberships[row]
        for accuracy, chosen in ((batch.train_accuracy, member), (batch.held_out_accuracy, ~member)):
            accuracy[row] = right[chosen].mean() if chosen.any() else np.nan

    @torch.no_grad()
    def _answers(self, module: nn.Module, index: int) -> dict[Question, Floats32]:
        """Logits for every question of the plan; each noise level starts from the trained last layer."""
        questions = list(dict.fromkeys(questions_of(self.plan)))
        answers = {}
        for noise_std in dict.fromkeys(question.noise_std for question in questions):
            with noisy_last_layer(module, noise_std, stream(self.plan.seed, index, Purpose.NOISE)):
                for question in questions:
                    if question.noise_std == noise_std:
                        answers[question] = self._logits(module, self.edge_indices[question.query])
        return answers

    def _logits(self, module: nn.Module, edge_index: torch.Tensor) -> Floats32:
        logits: Floats32 = module(self.data.x, edge_index).float().cpu().numpy()
        return logits


def edge_index_of(graph: Graph) -> torch.Tensor:
    """Both directions of every edge, shape (2, 2 * num_edges), as PyTorch Geometric has them."""
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    return torch.from_numpy(np.stack([source, graph.indices.astype(np.int64)]))


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
