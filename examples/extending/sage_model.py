"""A model of your own: a PyTorch module that is made from (num_features, num_classes), called with (x, edge_index).

bmpaudit audit demo --model sage_model:Sage --out sage-audit
"""

import torch
from torch import nn
from torch_geometric.nn import SAGEConv


class Sage(nn.Module):
    """Two GraphSAGE layers with mean aggregation."""

    def __init__(self, num_features: int, num_classes: int, hidden: int = 16) -> None:
        super().__init__()
        self.first = SAGEConv(num_features, hidden)
        self.last = SAGEConv(hidden, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, shape (num_nodes, num_classes)."""
        return self.last(self.first(x, edge_index).relu(), edge_index)
