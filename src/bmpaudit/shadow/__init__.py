"""Shadow models: what an adversary who knows the recipe can train for themselves."""

from bmpaudit.shadow.batch import ModelState
from bmpaudit.shadow.plan import ShadowPlan, View
from bmpaudit.shadow.runs import ProbabilitiesConvertedWarning, ShadowRuns
from bmpaudit.shadow.store import ShadowStore
from bmpaudit.shadow.train import Cost, estimate_cost, import_runs, train_range, train_shadows

__all__ = [
    "Cost",
    "ModelState",
    "ProbabilitiesConvertedWarning",
    "ShadowPlan",
    "ShadowRuns",
    "ShadowStore",
    "View",
    "estimate_cost",
    "import_runs",
    "train_range",
    "train_shadows",
]
