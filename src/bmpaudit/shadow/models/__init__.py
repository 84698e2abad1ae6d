"""What is trained, and how: one file for each model."""

from bmpaudit.shadow.models.appnp import APPNP
from bmpaudit.shadow.models.base import NativeModel
from bmpaudit.shadow.models.dp_gcn import DPGCN
from bmpaudit.shadow.models.dp_mlp import DPMLP
from bmpaudit.shadow.models.elsewhere import TrainedElsewhere
from bmpaudit.shadow.models.gat import GAT
from bmpaudit.shadow.models.gcn import GCN
from bmpaudit.shadow.models.gin import GIN
from bmpaudit.shadow.models.mlp import MLP
from bmpaudit.shadow.models.own_model import as_model
from bmpaudit.shadow.models.private_sgc import PrivateSGC
from bmpaudit.shadow.models.sage import SAGE
from bmpaudit.shadow.models.sgc import SGC
from bmpaudit.shadow.models.sklearn_model import SklearnModel
from bmpaudit.shadow.models.torch_model import TorchModel
from bmpaudit.shadow.models.training import Training

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
