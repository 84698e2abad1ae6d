"""bmpaudit: how surely can someone who sees a trained graph neural network tell which nodes it was trained on?"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from bmpaudit.util.errors import DataError, InputError, UntrustedCodeError

if TYPE_CHECKING:
    from bmpaudit import (
        attack,
        auditing,
        comparison,
        datasets,
        estimation,
        gate,
        graph,
        inference,
        models,
        plan,
        privacy,
        proof,
        releases,
        report,
        samplers,
        shadow,
        sweeps,
    )
    from bmpaudit.attack import ErrorCounts
    from bmpaudit.auditing import Audit, Runtime, Subject, Workspace
    from bmpaudit.auditing.result import AuditResult, summary_schema
    from bmpaudit.comparison.compare import compare
    from bmpaudit.estimation import Posterior
    from bmpaudit.estimation.estimate import estimate
    from bmpaudit.estimation.lower_bound import lower_bound
    from bmpaudit.estimation.node_leakage import node_leakage
    from bmpaudit.gate import GateResult, check
    from bmpaudit.graph import DataIgnoredWarning, Graph, GraphCleanedWarning
    from bmpaudit.inference.infer import infer
    from bmpaudit.pipeline.pipeline import Pipeline, audit
    from bmpaudit.plan import AuditPlan, Gate
    from bmpaudit.samplers import prior_probabilities
    from bmpaudit.sweeps import Sweep, sweep

__version__ = version("bmpaudit")

# Loaded when first asked for: pandas, Zarr, pydantic and SciPy take long to import.
_PACKAGES = (
    *("attack", "auditing", "comparison", "datasets", "estimation", "gate", "graph", "inference", "models", "pipeline"),
    *("plan", "privacy", "proof", "releases", "report", "samplers", "shadow", "sweeps"),
)
_NAMES = {
    "ErrorCounts": "attack",
    **dict.fromkeys(("Audit", "AuditResult", "Runtime", "Subject", "Workspace", "summary_schema"), "auditing"),
    "compare": "comparison",
    **dict.fromkeys(("Posterior", "estimate", "lower_bound", "node_leakage"), "estimation"),
    **dict.fromkeys(("GateResult", "check"), "gate"),
    **dict.fromkeys(("DataIgnoredWarning", "Graph", "GraphCleanedWarning"), "graph"),
    "infer": "inference",
    **dict.fromkeys(("Pipeline", "audit"), "pipeline"),
    **dict.fromkeys(("AuditPlan", "Gate"), "plan"),
    "prior_probabilities": "samplers",
    **dict.fromkeys(("Sweep", "sweep"), "sweeps"),
}

__all__ = [
    "Audit",
    "AuditPlan",
    "AuditResult",
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
    "comparison",
    "datasets",
    "estimate",
    "estimation",
    "gate",
    "graph",
    "infer",
    "inference",
    "lower_bound",
    "models",
    "node_leakage",
    "pipeline",
    "plan",
    "prior_probabilities",
    "privacy",
    "proof",
    "releases",
    "report",
    "samplers",
    "shadow",
    "summary_schema",
    "sweep",
    "sweeps",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"bmpaudit.{name}")
    if name in _NAMES:
        return getattr(import_module(f"bmpaudit.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'bmpaudit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
