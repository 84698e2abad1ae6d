"""An audit of a GraphSAGE model written in plain PyTorch Geometric, with its own training loop.

    python examples/own_model.py [--data amazon_photo] [--models 100] [--out sage-audit]

The model and `train` are what one would write without bmpaudit; nothing in them knows of it. Models train in as many
processes as there are cores. `amazon_photo` is an archive in the folder that BMPAUDIT_DATA names; PyTorch Geometric's
`Amazon(root, "Photo")[0]` can be passed as it is.
"""

import argparse
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own name for it
from torch_geometric.nn import SAGEConv

from bmpaudit.auditing.finished import Audit
from bmpaudit.pipeline.pipeline import audit

EPOCHS = 50


class Sage(torch.nn.Module):
    """Two GraphSAGE layers; like any module that is audited, it is called with (x, edge_index)."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 32) -> None:
        super().__init__()
        self.first, self.last = SAGEConv(num_features, hidden), SAGEConv(hidden, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, shape (num_nodes, num_classes)."""
        hidden = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.last(hidden, edge_index)


def train(module: torch.nn.Module, data: Any, seed: int) -> None:  # noqa: ARG001 - PyTorch is seeded already
    """Trains on the sampled nodes and the edges between them, which are all that `data` holds."""
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    module.train()
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        F.cross_entropy(module(data.x, data.edge_index), data.y).backward()
        optimizer.step()


def audit_own_model(data: Any = "amazon_photo", num_models: int = 100, **settings: Any) -> Audit:
    """Audits the model; `data` may also be a `Data` object of PyTorch Geometric."""
    return audit(data, model=Sage, train=train, shadows=num_models, **settings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="amazon_photo")
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--out")
    options = parser.parse_args()
    print(audit_own_model(options.data, options.models, folder=options.out))
