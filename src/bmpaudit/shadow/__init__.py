"""Shadow models: what an adversary who knows the recipe can train for themselves."""

from bmpaudit.shadow.batch import ModelState
from bmpaudit.shadow.cost import Cost, estimate_cost
from bmpaudit.shadow.margin import label_margin
from bmpaudit.shadow.models import GAT, GCN, MLP, Training
from bmpaudit.shadow.plan import ALL_VIEWS, QueryView, ShadowPlan
from bmpaudit.shadow.pool import train_shadows
from bmpaudit.shadow.runs import ShadowRuns
from bmpaudit.shadow.store import ShadowStore
from bmpaudit.shadow.torch_model import TorchModel

__all__ = [
    "ALL_VIEWS",
    "GAT",
    "GCN",
    "MLP",
    "Cost",
    "ModelState",
    "QueryView",
    "ShadowPlan",
    "ShadowRuns",
    "ShadowStore",
    "TorchModel",
    "Training",
    "estimate_cost",
    "label_margin",
    "train_shadows",
]
