"""Parts as a user writes them, found as `own_parts:Name`."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.nn import SAGEConv

from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.releases import OutputRelease, label_margin
from bmpaudit.shadow import ShadowPlan
from bmpaudit.shadow.batch import ModelState, ShadowBatch


@dataclass(frozen=True)
class Thirds:
    """Every third node."""

    offset: int = 0

    def sample(self, graph: Graph, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG002
        return np.arange(self.offset, graph.num_nodes, 3)


@dataclass(frozen=True)
class Rounded(OutputRelease):
    """Logits with few digits."""

    digits: int = 0

    def outputs(self, logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG002
        return logits.round(self.digits)


class NoisyOutputs(OutputRelease):
    def outputs(self, logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return logits + rng.normal(size=logits.shape)


@dataclass(frozen=True)
class SomeEdges:
    """The edges between nodes of small numbers."""

    below: int = 30

    def graph(self, graph: Graph) -> Graph:
        edges = graph.edges
        return Graph.from_edges(edges[(edges < self.below).all(axis=1)], graph.features, graph.labels)


def first_class(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:  # noqa: ARG001
    first: np.ndarray = outputs[..., 0]
    return first


class Sage(nn.Module):
    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([SAGEConv(num_features, 8), SAGEConv(8, num_classes)])
        self.norm = nn.Identity()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        x = nn.functional.dropout(self.layers[0](x, edge_index).relu(), 0.5, self.training)
        out: torch.Tensor = self.layers[1](x, edge_index)
        return out


def wide_sage(num_features: int, num_classes: int) -> nn.Module:
    return Sage(num_features, num_classes)


@dataclass(frozen=True)
class SageOfWidth:
    """A model with settings."""

    width: int = 4

    def torch_module(self, num_features: int, num_classes: int) -> nn.Module:
        return nn.ModuleList([SAGEConv(num_features, self.width), SAGEConv(self.width, num_classes)])


def train_by_hand(module: nn.Module, data: Any, seed: int) -> None:
    assert seed >= 0
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(data.x, data.edge_index), data.y).backward()
        optimizer.step()


class ConstantEngine:
    """Trains nothing: the statistics are the numbers of the models."""

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        self.num_nodes = graph.num_nodes
        self.plan = plan

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:  # noqa: ARG002
        batch.statistics[:] = batch.indices[None, :, None]
        batch.train_accuracy[:] = batch.held_out_accuracy[:] = 1.0
        batch.state[:] = ModelState.TRAINED
        progress(len(batch.indices))


WIDTH = 4
"""A setting that somebody may change after the import."""


class Linear(nn.Module):
    """Ignores the edges."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(num_features, WIDTH), nn.Dropout(), nn.Linear(WIDTH, num_classes))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        out: torch.Tensor = self.layers(x)
        return out


def noting_margin(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The label margin, with a note of the process that has computed it."""
    with Path(os.environ["NOTES"]).open("a") as notes:
        notes.write(f"{os.getpid()}\n")
    return label_margin(outputs, labels)


CALLS = [0]


def _is_second_call_elsewhere() -> bool:
    """In another process than the one that has started it, after the trial."""
    CALLS[0] += 1
    return CALLS[0] > 1 and str(os.getpid()) != os.environ["FIRST_PROCESS"]


def train_with_failures(module: nn.Module, data: Any, seed: int) -> None:
    if _is_second_call_elsewhere():
        raise ZeroDivisionError("of the\nuser's own")
    train_by_hand(module, data, seed)


def train_until_killed(module: nn.Module, data: Any, seed: int) -> None:
    if _is_second_call_elsewhere():
        os.kill(os.getpid(), signal.SIGKILL)
    train_by_hand(module, data, seed)
