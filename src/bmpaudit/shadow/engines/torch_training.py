"""A plan's training in PyTorch, with the native engine's draws."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own name for it
from torch import nn
from torch_geometric.data import Data

from bmpaudit.arrays import Ints
from bmpaudit.shadow.engines.draws import Neighborhoods, batches, validation_nodes
from bmpaudit.shadow.models import Training
from bmpaudit.streams import Purpose, stream


class Step(NamedTuple):
    """What one step of the optimiser is taken on.

    Attributes:
        nodes: Nodes of the sample that the module is called with; None for all.
        edge_index: Edges between them.
        in_loss: Which of them carry the loss.
    """

    nodes: torch.Tensor | None
    edge_index: torch.Tensor
    in_loss: torch.Tensor | slice


def train_on_sample(module: nn.Module, sample: Data, training: Training, seed: int, index: int) -> bool:
    """Trains a module on the graph of a sample; draws are those of model `index` of a plan with this seed.

    Returns:
        Whether there was enough to train on: a sample that is split, or a mini-batch that is normalised, needs two
        nodes.
    """
    optimizers: dict[str, Any] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimizer = optimizers[training.optimizer](
        module.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
    )
    schedule = learning_rates(optimizer, training)
    validation: Ints = np.empty(0, dtype=np.int64)
    if training.validation_share is not None:
        if sample.num_nodes == 1:
            return False
        rng = stream(seed, index, Purpose.VALIDATION)
        validation = validation_nodes(rng, sample.num_nodes, training.validation_share)
    best = BestWeights(module, sample, validation, training.patience)
    has_batch_norm = any(isinstance(part, nn.BatchNorm1d) for part in module.modules())
    for steps in epochs(sample, validation, training, seed, index):
        module.train()
        for nodes, edge_index, in_loss in steps:
            x, y = (sample.x, sample.y) if nodes is None else (sample.x[nodes], sample.y[nodes])
            if has_batch_norm and len(x) == 1:
                return False
            optimizer.zero_grad()
            logits = module(x, edge_index)
            smoothing = training.label_smoothing or 0.0
            F.cross_entropy(logits[in_loss], y[in_loss], label_smoothing=smoothing).backward()
            optimizer.step()
        schedule.step()
        if not best.is_worth_another():
            break
    best.restore()
    return True


def epochs(sample: Data, validation: Ints, training: Training, seed: int, index: int) -> Iterator[Iterator[Step]]:
    """The steps of each epoch."""
    device = sample.x.device
    learnt = np.setdiff1d(np.arange(sample.num_nodes), validation)
    edge_rng, batch_rng = (stream(seed, index, purpose) for purpose in (Purpose.EDGES, Purpose.BATCHES))
    sources, targets = sample.edge_index.cpu().numpy()
    whole = Neighborhoods.of_edges(sources, targets, sample.num_nodes)
    in_loss = torch.from_numpy(learnt).to(device) if len(validation) > 0 else slice(None)
    edge_index = sample.edge_index
    for _ in range(training.epochs):
        graph = whole.without_some(training.drop_edge, edge_rng) if training.drop_edge else whole
        if training.batch_size is None:
            if training.drop_edge:
                edge_index = torch.from_numpy(np.stack([graph.sources, graph.indices])).to(device)
            yield iter([Step(None, edge_index, in_loss)])
            continue
        yield (
            Step(
                torch.from_numpy(batch.nodes).to(device),
                torch.from_numpy(np.stack([batch.sources, batch.targets])).to(device),
                slice(batch.num_seeds),
            )
            for batch in batches(graph, learnt, training.batch_size, training.neighbors or (), batch_rng)
        )


class BestWeights:
    """Early stopping: keeps the weights with the lowest loss on the nodes for validation, if there are any."""

    def __init__(self, module: nn.Module, sample: Data, validation: Ints, patience: int | None) -> None:
        self._module, self._sample, self._patience = module, sample, patience
        self._nodes = torch.from_numpy(validation).to(sample.x.device)
        self._lowest = float("inf")
        self._epochs_without = 0
        self._kept: dict[str, Any] | None = None

    @torch.no_grad()
    def is_worth_another(self) -> bool:
        """Whether to go on after an epoch."""
        if len(self._nodes) == 0:
            return True
        self._module.eval()
        logits = self._module(self._sample.x, self._sample.edge_index)
        loss = F.cross_entropy(logits[self._nodes].double(), self._sample.y[self._nodes]).item()
        if loss < self._lowest:
            self._lowest, self._epochs_without = loss, 0
            self._kept = copy.deepcopy(self._module.state_dict())
            return True
        self._epochs_without += 1
        return self._epochs_without != self._patience

    def restore(self) -> None:
        """Gives the module its best weights."""
        if self._kept is not None:
            self._module.load_state_dict(self._kept)


def learning_rates(optimizer: torch.optim.Optimizer, training: Training) -> torch.optim.lr_scheduler.LRScheduler:
    """The schedule of a training."""
    schedulers, num_epochs = torch.optim.lr_scheduler, training.epochs
    if training.schedule == "cosine":
        return schedulers.CosineAnnealingLR(optimizer, num_epochs)
    milestones = [num_epochs // 2, 3 * num_epochs // 4] if training.schedule == "step" else []
    return schedulers.MultiStepLR(optimizer, milestones, 0.1)
