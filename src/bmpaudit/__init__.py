"""bmpaudit: how surely can someone who sees a trained graph neural network tell which nodes it was trained on?"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from bmpaudit.errors import DataError, InputError, UntrustedCodeError

if TYPE_CHECKING:
    from bmpaudit import attack, auditing, datasets, estimation, graph, paper, privacy, proof, report, samplers, shadow
    from bmpaudit.attack import ErrorCounts
    from bmpaudit.auditing import Audit, AuditPlan, Gate, GateResult, Pipeline, Runtime, Subject, Sweep, Workspace
    from bmpaudit.auditing.checking import check
    from bmpaudit.auditing.comparison import compare
    from bmpaudit.auditing.infer_model import infer
    from bmpaudit.auditing.run import audit
    from bmpaudit.auditing.summary_schema import summary_schema
    from bmpaudit.auditing.sweep import sweep
    from bmpaudit.estimation import Posterior
    from bmpaudit.estimation.estimate import estimate
    from bmpaudit.estimation.lower_bound import lower_bound
    from bmpaudit.estimation.node_leakage import node_leakage
    from bmpaudit.graph import DataIgnoredWarning, Graph, GraphCleanedWarning
    from bmpaudit.samplers import prior_probabilities

__version__ = version("bmpaudit")

# Loaded when first asked for: pandas, Zarr, pydantic and SciPy take long to import.
_PACKAGES = (
    "attack",
    "auditing",
    "datasets",
    "estimation",
    "graph",
    "paper",
    "privacy",
    "proof",
    "report",
    "samplers",
    "shadow",
)
_NAMES = {
    **dict.fromkeys(
        (
            *("Audit", "AuditPlan", "Gate", "GateResult", "Pipeline", "Runtime", "Subject", "Sweep", "Workspace"),
            *("audit", "check", "compare", "infer", "summary_schema", "sweep"),
        ),
        "auditing",
    ),
    "ErrorCounts": "attack",
    **dict.fromkeys(("Posterior", "estimate", "lower_bound", "node_leakage"), "estimation"),
    **dict.fromkeys(("DataIgnoredWarning", "Graph", "GraphCleanedWarning"), "graph"),
    "prior_probabilities": "samplers",
}

__all__ = [
    "Audit",
    "AuditPlan",
    "DataError",
    "DataIgnoredWarning",
    "ErrorCounts",
    "Gate",
    "GateResult",
    "Graph",
    "GraphCleanedWarning",
    "InputError",
    "Pipeline",
    "Posterior",
    "Runtime",
    "Subject",
    "Sweep",
    "UntrustedCodeError",
    "Workspace",
    "__version__",
    "attack",
    "audit",
    "auditing",
    "check",
    "compare",
    "datasets",
    "estimate",
    "estimation",
    "graph",
    "infer",
    "lower_bound",
    "node_leakage",
    "paper",
    "prior_probabilities",
    "privacy",
    "proof",
    "report",
    "samplers",
    "shadow",
    "summary_schema",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"bmpaudit.{name}")
    if name in _NAMES:
        return getattr(import_module(f"bmpaudit.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'bmpaudit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
