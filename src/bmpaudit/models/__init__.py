"""What is trained, and how."""

from bmpaudit.models.gnn import APPNP, GAT, GCN, GIN, MLP, SAGE, SGC, NativeModel, Training
from bmpaudit.models.own import SklearnModel, TorchModel, TrainedElsewhere, as_model
from bmpaudit.models.private import DPGCN, DPMLP, PrivateSGC

__all__ = [
    "APPNP",
    "DPGCN",
    "DPMLP",
    "GAT",
    "GCN",
    "GIN",
    "MLP",
    "SAGE",
    "SGC",
    "NativeModel",
    "PrivateSGC",
    "SklearnModel",
    "TorchModel",
    "TrainedElsewhere",
    "Training",
    "as_model",
]
