"""Whom does one released model give away?

    python examples/infer_released.py [--models 300]

Somebody trained a model as the plan says and gave it out. An audit of the same plan is the reference; the answer names
nodes, and says whether the model behaves as if it had been trained that way.
"""

import argparse

import torch
from torch_geometric.nn import GCNConv

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime
from bmpaudit.graph.graph import Graph
from bmpaudit.inference.infer import Inference, infer
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.samplers import Uniform, draw_memberships

EPOCHS = 100


class GCN(torch.nn.Module):
    """Two graph convolutions, as in the plan: 16 hidden units, dropout on the hidden layer."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.first, self.last = GCNConv(num_features, 16), GCNConv(16, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, shape (num_nodes, num_classes)."""
        hidden = torch.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.last(hidden, edge_index)


def released_model(graph: Graph, seed: int) -> tuple[GCN, list[int]]:
    """A model trained with PyTorch on a random quarter of the nodes, and who they were."""
    (members,) = draw_memberships(graph, Uniform(0.25), 1, seed=seed)
    data = graph.to_pyg().subgraph(torch.from_numpy(members))
    torch.manual_seed(seed)
    model = GCN(graph.num_features, graph.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data.x, data.edge_index), data.y).backward()
        optimizer.step()
    return model.eval(), members.nonzero()[0].tolist()


def infer_released(num_models: int = 300, seed: int = 42) -> Inference:
    """Audits the plan, then looks at one model; the truth, which we happen to know, is used to score the answer."""
    graph = datasets.load("demo")
    reference = audit("demo", shadows=num_models, definitions="bmp-r", runtime=Runtime(quiet=True))
    model, members = released_model(graph, seed)
    return infer(reference, model, truth=members)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=300)
    print(infer_released(parser.parse_args().models))
