"""bmpaudit: how surely can someone who sees a trained graph neural network tell which nodes it was trained on?"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from bmpaudit import datasets, privacy, samplers
from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph, GraphCleanedWarning
from bmpaudit.samplers import prior_probabilities

if TYPE_CHECKING:
    from bmpaudit.attack import ErrorCounts
    from bmpaudit.auditing.audit import Audit, audit
    from bmpaudit.estimation import Posterior
    from bmpaudit.estimation.estimate import estimate
    from bmpaudit.estimation.lower_bound import lower_bound
    from bmpaudit.estimation.node_leakage import node_leakage
    from bmpaudit.plan import AuditPlan, Runtime

__version__ = version("bmpaudit")

# These need pandas, Zarr or pydantic, which take long to load: they wait until they are asked for.
_LATER = {
    "Audit": "bmpaudit.auditing",
    "AuditPlan": "bmpaudit.plan",
    "ErrorCounts": "bmpaudit.attack",
    "Posterior": "bmpaudit.estimation",
    "Runtime": "bmpaudit.plan",
    "audit": "bmpaudit.auditing",
    "estimate": "bmpaudit.estimation",
    "lower_bound": "bmpaudit.estimation",
    "node_leakage": "bmpaudit.estimation",
}

__all__ = [
    "Audit",
    "AuditPlan",
    "DataError",
    "ErrorCounts",
    "Graph",
    "GraphCleanedWarning",
    "InputError",
    "Posterior",
    "Runtime",
    "__version__",
    "audit",
    "datasets",
    "estimate",
    "lower_bound",
    "node_leakage",
    "prior_probabilities",
    "privacy",
    "samplers",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'bmpaudit' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
