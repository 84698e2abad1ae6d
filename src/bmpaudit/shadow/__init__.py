"""Shadow models: what an adversary who knows the recipe can train for themselves."""

from bmpaudit.shadow.batch import ModelState
from bmpaudit.shadow.cost import Cost, estimate_cost
from bmpaudit.shadow.importing import import_runs
from bmpaudit.shadow.margin import label_margin
from bmpaudit.shadow.models import (
    APPNP,
    DPGCN,
    DPMLP,
    GAT,
    GCN,
    GIN,
    MLP,
    SAGE,
    SGC,
    PrivateSGC,
    SklearnModel,
    TorchModel,
    TrainedElsewhere,
    Training,
)
from bmpaudit.shadow.plan import ShadowPlan, View
from bmpaudit.shadow.pool import train_shadows
from bmpaudit.shadow.probe import probe_scores
from bmpaudit.shadow.queries import FullEdges, NoEdges
from bmpaudit.shadow.ranges import train_range
from bmpaudit.shadow.releases import (
    Clean,
    Embeddings,
    Ensemble,
    LabelOnly,
    NoisyLastLayer,
    NoisyOutputs,
    OutputRelease,
    Rounded,
    Temperature,
    TopClasses,
)
from bmpaudit.shadow.runs import ProbabilitiesConvertedWarning, ShadowRuns
from bmpaudit.shadow.store import ShadowStore

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
    "Clean",
    "Cost",
    "Embeddings",
    "Ensemble",
    "FullEdges",
    "LabelOnly",
    "ModelState",
    "NoEdges",
    "NoisyLastLayer",
    "NoisyOutputs",
    "OutputRelease",
    "PrivateSGC",
    "ProbabilitiesConvertedWarning",
    "Rounded",
    "ShadowPlan",
    "ShadowRuns",
    "ShadowStore",
    "SklearnModel",
    "Temperature",
    "TopClasses",
    "TorchModel",
    "TrainedElsewhere",
    "Training",
    "View",
    "estimate_cost",
    "import_runs",
    "label_margin",
    "probe_scores",
    "train_range",
    "train_shadows",
]
