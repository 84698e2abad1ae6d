"""Plain PyTorch Geometric loops for the ways of training that the native engine knows, as people write them."""

import copy
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import dropout_edge

from bmpaudit.models import Training
from bmpaudit.samplers.draw import compressed_rows
from bmpaudit.shadow.engines.torch import Neighborhoods, batches
from bmpaudit.util.streams import stream

EPOCHS = 100
BATCH_SIZE, NEIGHBORS = 128, (10, 10)

Loop = Callable[[nn.Module, Data], None]


def _optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def full_batch(model: nn.Module, sample: Data) -> None:
    """All nodes at once."""
    optimizer = _optimizer(model)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        F.cross_entropy(model(sample.x, sample.edge_index), sample.y).backward()
        optimizer.step()


def drop_edge(model: nn.Module, sample: Data) -> None:
    """DropEdge by PyTorch Geometric's `dropout_edge`."""
    optimizer = _optimizer(model)
    for _ in range(EPOCHS):
        edge_index, _ = dropout_edge(sample.edge_index, 0.2, force_undirected=True)
        optimizer.zero_grad()
        F.cross_entropy(model(sample.x, edge_index), sample.y).backward()
        optimizer.step()


def early_stopping(model: nn.Module, sample: Data) -> None:
    """A tenth of the nodes for validation; all epochs are trained, so that both sides do the same work."""
    optimizer = _optimizer(model)
    order = torch.randperm(sample.num_nodes)
    validation, learnt = order[: sample.num_nodes // 10], order[sample.num_nodes // 10 :]
    lowest, best = float("inf"), model.state_dict()
    for _ in range(EPOCHS):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(sample.x, sample.edge_index)[learnt], sample.y[learnt]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            loss = F.cross_entropy(model(sample.x, sample.edge_index)[validation], sample.y[validation]).item()
        if loss < lowest:
            lowest, best = loss, copy.deepcopy(model.state_dict())
    model.load_state_dict(best)


class MiniBatches:
    """Mini-batches that are at hand: sampling, which `NeighborLoader` does in C++, costs this side nothing."""

    def __init__(self) -> None:
        self._batches: list[tuple[torch.Tensor, torch.Tensor, int]] = []

    def prepare(self, sample: Data) -> None:
        """Draws the batches of one epoch, which serve all of them."""
        graph = Neighborhoods(*compressed_rows(sample.edge_index.numpy().T, sample.num_nodes))
        self._batches = [
            (torch.from_numpy(b.nodes), torch.from_numpy(np.stack([b.sources, b.targets])), b.num_seeds)
            for b in batches(graph, np.arange(sample.num_nodes), BATCH_SIZE, NEIGHBORS, stream(0, 0))
        ]

    def __call__(self, model: nn.Module, sample: Data) -> None:
        """Trains on them."""
        optimizer = _optimizer(model)
        for _ in range(EPOCHS):
            for nodes, edge_index, num_seeds in self._batches:
                optimizer.zero_grad()
                logits = model(sample.x[nodes], edge_index)
                F.cross_entropy(logits[:num_seeds], sample.y[nodes[:num_seeds]]).backward()
                optimizer.step()


MINI_BATCHES = MiniBatches()

# Each way of training with the plain loop that does the same.
TRAININGS: dict[str, tuple[Training, Loop]] = {
    "full batch": (Training(EPOCHS), full_batch),
    "DropEdge": (Training(EPOCHS, drop_edge=0.2), drop_edge),
    "early stopping": (Training(EPOCHS, validation_share=0.1), early_stopping),
    "mini-batches": (Training(EPOCHS, batch_size=BATCH_SIZE, neighbors=NEIGHBORS), MINI_BATCHES),
}
