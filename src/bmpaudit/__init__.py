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
    from bmpaudit.auditing import Audit, AuditResult, Runtime, Subject, Workspace, summary_schema
    from bmpaudit.comparison.compare import compare
    from bmpaudit.estimation import Posterior
    from bmpaudit.estimation.estimate import estimate
    from bmpaudit.estimation.lower_bound import lower_bound, node_leakage
    from bmpaudit.gate import GateResult, check
    from bmpaudit.graph import DataIgnoredWarning, Graph, GraphCleanedWarning
    from bmpaudit.inference.infer import infer
    from bmpaudit.pipeline.pipeline import Pipeline, audit
    from bmpaudit.plan import AuditPlan, Gate
    from bmpaudit.samplers import prior_probabilities
    from bmpaudit.sweeps import Sweep, sweep

__version__ = version("bmpaudit")

# Loaded when first asked for: pandas, Zarr, pydantic and SciPy take long to import.
_NAMES = {
    "ErrorCounts": "attack",
    **dict.fromkeys(("Audit", "AuditResult", "Runtime", "Subject", "Workspace", "summary_schema"), "auditing"),
    "compare": "comparison.compare",
    **dict.fromkeys(("Posterior", "estimate", "lower_bound", "node_leakage"), "estimation"),
    **dict.fromkeys(("GateResult", "check"), "gate"),
    **dict.fromkeys(("DataIgnoredWarning", "Graph", "GraphCleanedWarning"), "graph"),
    "infer": "inference.infer",
    **dict.fromkeys(("Pipeline", "audit"), "pipeline.pipeline"),
    **dict.fromkeys(("AuditPlan", "Gate"), "plan"),
    "prior_probabilities": "samplers",
    **dict.fromkeys(("Sweep", "sweep"), "sweeps"),
}

__all__ = ["DataError", "DataIgnoredWarning", "GraphCleanedWarning", "InputError", "UntrustedCodeError", "__version__"]
__all__ += ["Audit", "AuditPlan", "AuditResult", "ErrorCounts", "Gate", "GateResult", "Graph", "Pipeline", "Posterior"]
__all__ += ["Runtime", "Subject", "Sweep", "Workspace", "audit", "check", "compare", "estimate", "infer", "lower_bound"]
__all__ += ["node_leakage", "prior_probabilities", "summary_schema", "sweep"]
__all__ += ["attack", "auditing", "comparison", "datasets", "estimation", "gate", "graph", "inference", "models"]
__all__ += ["pipeline", "plan", "privacy", "proof", "releases", "report", "samplers", "shadow", "sweeps"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"bmpaudit.{_NAMES[name]}"), name)
    if name in __all__:
        return import_module(f"bmpaudit.{name}")
    raise AttributeError(f"module 'bmpaudit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
