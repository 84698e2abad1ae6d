"""Graphs from and to PyTorch Geometric."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.errors import InputError
from bmpaudit.graph.features import NEEDED
from bmpaudit.graph.graph import Graph

IGNORED = ("train_mask", "val_mask", "test_mask", "edge_weight", "edge_attr")


class DataIgnoredWarning(UserWarning):
    """Parts of the data were left out, because a `Graph` has no place for them; the message names them."""


def from_pyg(data: Any) -> Graph:
    """See `Graph.from_pyg`."""
    for name in ("x", "edge_index", "y"):
        if getattr(data, name, None) is None:
            remedy = f": {NEEDED}" if name == "x" else ""
            raise InputError(f"the PyG data must have {name}, got none{remedy}")
    edge_index = _to_numpy(data.edge_index)
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise InputError(f"edge_index must have shape (2, num_edges), got {edge_index.shape}")
    labels = _to_numpy(data.y)
    if labels.ndim == 2 and labels.shape[1] == 1:  # OGB stores labels as a column
        labels = labels[:, 0]
    graph = Graph.from_edges(edge_index.T, _features(data.x), labels, both_ways_expected=True)
    ignored = [name for name in IGNORED if getattr(data, name, None) is not None]
    if ignored:
        reason = " (a sampler chooses the training nodes)" if ignored[0].endswith("_mask") else ""
        warnings.warn(f"PyG data: {', '.join(ignored)} ignored{reason}", DataIgnoredWarning, stacklevel=3)
    return graph


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


def _features(x: Any) -> Any:
    if not (getattr(x, "is_sparse", False) or str(getattr(x, "layout", "")) == "torch.sparse_csr"):
        return _to_numpy(x)
    entries = x.detach().cpu().to_sparse_coo().coalesce()
    rows, columns = entries.indices().numpy()
    return scipy.sparse.coo_array((_to_numpy(entries.values()), (rows, columns)), shape=tuple(x.shape))


def _to_numpy(tensor: Any) -> npt.NDArray[Any]:
    if not hasattr(tensor, "detach"):  # an array or a list
        return np.asarray(tensor)
    tensor = tensor.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()  # NumPy has no bfloat16
