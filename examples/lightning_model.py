"""An audit of a PyTorch Lightning module that its own Trainer trains.

    python examples/lightning_model.py [--data demo] [--models 100]

The Trainer writes nothing and shows nothing: there are as many trainings as shadow models.
"""

import argparse
from typing import Any

import pytorch_lightning as pl
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own name for it
from torch.utils.data import DataLoader
from torch_geometric.nn import GCNConv

from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.finished import Audit
from bmpaudit.pipeline.pipeline import audit

EPOCHS = 50


class LightningGCN(pl.LightningModule):
    """Two graph convolutions; like any module that is audited, it is called with (x, edge_index)."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 16) -> None:
        super().__init__()
        self.first, self.last = GCNConv(num_features, hidden), GCNConv(hidden, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, shape (num_nodes, num_classes)."""
        hidden = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.last(hidden, edge_index)

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        """The loss on one graph."""
        return F.cross_entropy(self(batch.x, batch.edge_index), batch.y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.01, weight_decay=5e-4)


def only_graph(graphs: list[Any]) -> Any:
    """The batch of a loader whose data set is one graph."""
    return graphs[0]


def train(module: pl.LightningModule, data: Any, seed: int) -> None:  # noqa: ARG001 - PyTorch is seeded already
    """Trains a module on the graph that a sample induces."""
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader([data], collate_fn=only_graph))


def audit_lightning(data: Any = "demo", num_models: int = 100) -> Audit:
    """Audits the module."""
    return audit(data, model=LightningGCN, train=train, shadows=num_models, runtime=Runtime(quiet=True))


def main() -> None:
    """Runs the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="demo")
    parser.add_argument("--models", type=int, default=100)
    options = parser.parse_args()
    print(audit_lightning(options.data, options.models))


if __name__ == "__main__":
    main()
