"""Graphs from and to PyTorch Geometric."""

from typing import Any

import numpy as np
import scipy.sparse

from bmpaudit.errors import InputError
from bmpaudit.graph.graph import Graph


def from_pyg(data: Any) -> Graph:
    """See `Graph.from_pyg`."""
    for name in ("x", "edge_index", "y"):
        if getattr(data, name, None) is None:
            raise InputError(f"the PyG data must have {name}, got none")
    x = data.x.detach().cpu()
    if x.is_sparse or str(x.layout) == "torch.sparse_csr":
        entries = x.to_sparse_coo().coalesce()
        rows, columns = entries.indices().numpy()
        features = scipy.sparse.coo_array((entries.values().numpy(), (rows, columns)), shape=tuple(x.shape))
    else:
        features = x.numpy()
    pairs = data.edge_index.detach().cpu().numpy().T
    labels = data.y.detach().cpu().numpy()
    if labels.ndim == 2 and labels.shape[1] == 1:  # OGB stores labels as a column
        labels = labels[:, 0]
    return Graph.from_edges(pairs, features, labels, both_ways_expected=True)


def to_pyg(graph: Graph) -> Any:
    """See `Graph.to_pyg`."""
    try:
        import torch
        from torch_geometric.data import Data
    except ImportError as missing:
        raise InputError(f"to_pyg needs PyTorch Geometric: pip install 'bmpaudit[torch]' ({missing})") from None
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    return Data(
        x=torch.tensor(graph.dense_features),
        edge_index=torch.tensor(np.stack([source, graph.indices.astype(np.int64)])),
        y=torch.tensor(graph.labels),
    )
